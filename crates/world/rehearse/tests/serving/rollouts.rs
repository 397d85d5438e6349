//! How changes reach pods.

use std::time::Duration;

use scantling_observed::View as _;
use scantling_reconcile::serving::{Roll, rollout};
use serde_json::{Value, json};

use crate::stage::*;

/// What a plan would say about a model if an object was written.
fn forecast(stage: &Stage, object: Value) -> scantling_reconcile::serving::Forecast {
    let mut observed = stage.observed();
    let mut object = object;
    object["metadata"]["uid"] = json!("of the future");
    observed.insert(object).unwrap();
    let found =
        observed.all::<scantling_observed::InferenceService<'_>>().find(|service| service.name() == "iris");
    rollout(&observed, found.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_new_image_comes_without_a_gap() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let told = forecast(&stage, stage.runtime("mlserver", "2"));
    assert_eq!(told.roll, Some(Roll::Surge));
    assert_eq!(told.image, Some(stage.image("mlserver", "1")));
    assert_eq!(told.wanted_image, Some(stage.image("mlserver", "2")));
    stage.put(stage.runtime("mlserver", "2")).await;
    assert_eq!(stage.gaps("iris", 60).await, 0);
    let pods = stage.ready_pods("iris");
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0]["spec"]["containers"][0]["image"], stage.image("mlserver", "2"));
    assert!(stage.events("iris").contains(&"RollingOut".to_owned()));
    assert_eq!(forecast(&stage, stage.runtime("mlserver", "2")).roll, Some(Roll::Unchanged));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_takes_nobody_down() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let mut broken = stage.runtime("mlserver", "2");
    broken["spec"]["containers"][0]["image"] = json!(format!("{HOST}/mlserver@sha256:{}", "0".repeat(64)));
    stage.put(broken).await;
    assert_eq!(stage.gaps("iris", 120).await, 0);
    assert_eq!(stage.condition("iris", "Ready").0, "True");
    assert_eq!(stage.condition("iris", "RolloutPending").0, "True");
    let status =
        &stage.find("serving.kserve.io", "InferenceService", "iris").unwrap()["status"]["modelStatus"];
    assert_eq!(status["transitionStatus"], "BlockedByFailedLoad");
    assert_eq!(status["lastFailureInfo"]["reason"], "RuntimeUnhealthy");
    assert_eq!(status["states"], json!({"activeModelState": "Loaded", "targetModelState": "FailedToLoad"}));
    stage.put(stage.runtime("mlserver", "1")).await;
    assert_eq!(stage.gaps("iris", 60).await, 0);
    assert_eq!(stage.condition("iris", "RolloutPending").0, "False");
}

#[tokio::test(start_paused = true)]
async fn an_update_waits_where_its_owner_wants_it_to() {
    let key = "serving.kserve.io/disable-auto-update";
    for who in ["service", "runtime", "platform"] {
        let stage = Stage::new().await;
        stage.put(stage.model("iris")).await;
        stage.run(60).await;
        let mut runtime = stage.runtime("mlserver", "2");
        match who {
            "service" => stage.edit("iris", json!({"metadata": {"annotations": {key: "true"}}})).await,
            "runtime" => runtime["metadata"]["annotations"] = json!({key: "true"}),
            _ => {
                stage
                    .put(json!({
                        "apiVersion": "scantling.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "platform"},
                        "spec": {"models": {"roll": "manual"}},
                    }))
                    .await;
            }
        }
        let before = stage.deployment("iris").unwrap();
        stage.put(runtime).await;
        stage.run(60).await;
        assert_eq!(stage.deployment("iris").unwrap()["spec"], before["spec"], "{who}");
        let (status, reason, message) = stage.told("iris", "RolloutPending");
        assert_eq!((status.as_str(), reason.as_str()), ("True", "WaitsForOwner"), "{who}");
        assert!(message.contains(&stage.image("mlserver", "2")) && message.contains("kubectl"), "{message}");
        assert_eq!(stage.run(100).await, Vec::<String>::new(), "{who}");
        // The number of pods is the owner's to change all the same.
        stage.edit("iris", json!({"spec": {"predictor": {"minReplicas": 2}}})).await;
        stage.run(60).await;
        let pods = stage.ready_pods("iris");
        let old = |pod: &Value| pod["spec"]["containers"][0]["image"] == stage.image("mlserver", "1");
        assert!(pods.len() == 2 && pods.iter().all(old), "{who}");
        stage.edit("iris", json!({"metadata": {"annotations": {"scantling.dev/roll": "1"}}})).await;
        assert_eq!(stage.gaps("iris", 60).await, 0);
        let pods = stage.ready_pods("iris");
        assert!(pods.len() == 2 && !pods.iter().any(old), "{who}");
        assert_eq!(stage.condition("iris", "RolloutPending").1, "UpToDate", "{who}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_room_a_gap_is_announced() {
    for room in ["gpu", "claim"] {
        let stage = Stage::new().await;
        let mut model = stage.model("iris");
        let spec = &mut model["spec"]["predictor"]["model"];
        if room == "gpu" {
            spec["resources"] = json!({"limits": {"nvidia.com/gpu": "1"}});
        } else {
            spec["storageUri"] = json!("pvc://models/iris");
            stage
                .put(json!({
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": TEAM},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }))
                .await;
        }
        stage.put(model).await;
        stage.run(60).await;
        assert_eq!(stage.ready_pods("iris").len(), 1, "{room}: {:?}", stage.told("iris", "PredictorReady"));
        let told = forecast(&stage, stage.runtime("mlserver", "2"));
        assert!(matches!(told.roll, Some(Roll::Recreate { .. })), "{room}: {told:?}");
        stage.put(stage.runtime("mlserver", "2")).await;
        assert!(stage.gaps("iris", 90).await > 0, "{room}");
        let pods = stage.ready_pods("iris");
        assert_eq!(pods.len(), 1, "{room}: it does not deadlock");
        assert_eq!(pods[0]["spec"]["containers"][0]["image"], stage.image("mlserver", "2"), "{room}");
        assert!(
            stage.events("iris").contains(&"Recreating".to_owned()),
            "{room}: {:?}",
            stage.events("iris")
        );
        assert_eq!(stage.condition("iris", "Ready").0, "True", "{room}");
    }
}

/// Names, images that fetch and images that serve of a model's pods.
fn running(stage: &Stage, model: &str) -> Vec<(Value, Value, Value)> {
    let pods = stage.ready_pods(model);
    let parts = |pod: &Value| {
        let spec = &pod["spec"];
        (
            pod["metadata"]["name"].clone(),
            spec["initContainers"][0]["image"].clone(),
            spec["containers"][0]["image"].clone(),
        )
    };
    pods.iter().map(parts).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_operator_replaces_no_pods_and_its_image_comes_with_the_next_change() {
    for reason in ["a runtime", "the owner", "a stop", "a change of the model"] {
        let stage = Stage::new().await;
        stage.put(stage.model("iris")).await;
        stage.run(60).await;
        let before = running(&stage, "iris");
        assert_eq!((before.len(), &before[0].1), (1, &json!(stage.image("operator", "1"))));
        let deployment = stage.deployment("iris").unwrap();
        stage.operator("2").await;
        assert_eq!(stage.run(200).await, ["patch InferenceService team/iris"], "it is told");
        assert!(stage.told("iris", "RolloutPending").2.contains(&stage.image("operator", "2")));
        assert_eq!(running(&stage, "iris"), before);
        assert_eq!(stage.deployment("iris").unwrap()["metadata"], deployment["metadata"]);
        assert_eq!(stage.condition("iris", "RolloutPending").1, "UpToDate");
        assert_eq!(forecast(&stage, stage.runtime("mlserver", "1")).roll, Some(Roll::Unchanged));
        // One that is made now has the new image at once, and one that scales keeps what it has.
        stage.put(stage.model("wine")).await;
        stage.edit("iris", json!({"spec": {"predictor": {"minReplicas": 2}}})).await;
        stage.run(60).await;
        assert_eq!(running(&stage, "wine")[0].1, stage.image("operator", "2"));
        let pods = running(&stage, "iris");
        assert!(pods.len() == 2 && pods.iter().all(|pod| pod.1 == before[0].1), "{reason}: {pods:?}");
        match reason {
            "a runtime" => stage.put(stage.runtime("mlserver", "2")).await,
            "the owner" => {
                stage.edit("iris", json!({"metadata": {"annotations": {"scantling.dev/roll": "1"}}})).await;
            }
            "a stop" => {
                let stop =
                    |value: Value| json!({"metadata": {"annotations": {"serving.kserve.io/stop": value}}});
                stage.edit("iris", stop(json!("true"))).await;
                stage.run(60).await;
                stage.edit("iris", stop(Value::Null)).await;
            }
            _ => {
                let uri = "https://models.test/other.joblib";
                stage.edit("iris", json!({"spec": {"predictor": {"model": {"storageUri": uri}}}})).await;
            }
        }
        stage.run(90).await;
        let pods = running(&stage, "iris");
        let new = stage.image("operator", "2");
        assert!(pods.len() == 2 && pods.iter().all(|pod| pod.1 == new), "{reason}: {pods:?}");
        assert_eq!(stage.told("iris", "RolloutPending").2, "pods run what is declared");
        assert_eq!(stage.run(100).await, Vec::<String>::new(), "{reason}");
    }
}

/// The runtime, whose server listens on this port.
fn listening(stage: &Stage, tag: &str, port: Value) -> Value {
    let mut runtime = stage.runtime("mlserver", tag);
    runtime["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = port["containerPort"].clone();
    runtime["spec"]["containers"][0]["ports"] = json!([port]);
    runtime
}

#[tokio::test(start_paused = true)]
async fn a_server_that_listens_elsewhere_is_found_before_and_after() {
    for waits in [false, true] {
        let stage = Stage::new().await;
        stage.put(stage.model("iris")).await;
        stage.run(60).await;
        if waits {
            let keep = json!({"serving.kserve.io/disable-auto-update": "true"});
            stage.edit("iris", json!({"metadata": {"annotations": keep}})).await;
        }
        stage.put(listening(&stage, "2", json!({"containerPort": 8090, "protocol": "TCP"}))).await;
        assert_eq!(stage.gaps("iris", 60).await, 0, "waits: {waits}");
        let open = || {
            let policy = stage.find("networking.k8s.io", "NetworkPolicy", "iris-predictor").unwrap();
            policy["spec"]["ingress"][1]["ports"].clone()
        };
        let only = |number: u16| json!([{"port": number, "protocol": "TCP"}]);
        assert_eq!(open(), only(if waits { 8080 } else { 8090 }), "waits: {waits}");
        if waits {
            stage.edit("iris", json!({"metadata": {"annotations": {"scantling.dev/roll": "1"}}})).await;
            assert_eq!(stage.gaps("iris", 60).await, 0);
            assert_eq!(open(), only(8090));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_called_otherwise_is_an_announced_gap() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let renamed = listening(&stage, "2", json!({"containerPort": 8080, "name": "h2c", "protocol": "TCP"}));
    let told = forecast(&stage, renamed.clone());
    assert!(matches!(&told.roll, Some(Roll::Recreate { why }) if why.contains("h2c")), "{told:?}");
    stage.put(renamed).await;
    stage.run(90).await;
    assert!(stage.events("iris").contains(&"Recreating".to_owned()));
    assert!(stage.answers("iris"));
}

#[tokio::test(start_paused = true)]
async fn models_that_need_the_same_devices_get_new_pods_one_after_the_other() {
    // Three have their device, one is free.
    let stage = Stage::with_gpus(4).await;
    let names = ["a", "b", "c"];
    for name in names {
        let mut model = stage.model(name);
        model["spec"]["predictor"]["model"]["resources"] = json!({"limits": {"nvidia.com/gpu": "1"}});
        stage.put(model).await;
    }
    stage.run(60).await;
    assert!(names.iter().all(|name| stage.answers(name)));
    stage.put(stage.runtime("mlserver", "2")).await;
    let look = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stage.told("b", "RolloutPending")
    };
    let (queued, gaps) = tokio::join!(look, stage.gaps_of(&names, 200));
    assert_eq!((queued.0.as_str(), queued.1.as_str()), ("True", "Queued"), "{queued:?}");
    assert!(queued.2.contains("team/a") && queued.2.contains("nvidia.com/gpu"), "{queued:?}");
    assert_eq!(gaps, 0);
    for name in names {
        let pods = running(&stage, name);
        assert!(pods.len() == 1 && pods[0].2 == stage.image("mlserver", "2"), "{name}: {pods:?}");
        assert!(!stage.events(name).contains(&"Recreating".to_owned()), "{name}");
    }
    assert_eq!(stage.run(100).await, Vec::<String>::new());
}
