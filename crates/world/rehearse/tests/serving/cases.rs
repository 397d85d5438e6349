//! Public reports about serving models, replayed.

use serde_json::json;

use crate::stage::*;

/// kserve/kserve#3683: a changed runtime does not reach predictors that run.
#[tokio::test(start_paused = true)]
async fn a_changed_runtime_reaches_running_predictors() {
    let stage = Stage::new().await;
    for name in ["m1", "m2"] {
        stage.put(stage.model(name)).await;
    }
    stage.run(60).await;
    stage.put(stage.runtime("mlserver", "2")).await;
    stage.run(90).await;
    for name in ["m1", "m2"] {
        let pods = stage.ready_pods(name);
        assert_eq!(pods.len(), 1, "{name}");
        let running = pods[0]["status"]["containerStatuses"][0]["imageID"].as_str().unwrap();
        assert_eq!(running.split('@').nth(1), stage.image("mlserver", "2").split('@').nth(1), "{name}");
    }
}

/// kserve/kserve#2045: a service of an older way gets an image that is only a tag.
#[tokio::test(start_paused = true)]
async fn an_empty_image_is_refused_and_not_rendered() {
    let stage = Stage::new().await;
    let mut runtime = stage.runtime("mlserver", "1");
    runtime["spec"]["containers"][0]["image"] = json!(":v0.7.0");
    stage.put(runtime).await;
    stage.put(stage.model("iris")).await;
    // The older way to write it: the runtime's version stands in the service.
    let mut old = stage.model("old");
    old["spec"]["predictor"] = json!({"sklearn": {"storageUri": "https://models.test/iris.joblib", "protocolVersion": "v2", "runtimeVersion": "v0.7.0"}});
    stage.put(old).await;
    stage.run(30).await;
    assert_eq!(stage.condition("iris", "ImageResolved"), ("False".to_owned(), "ImageMalformed".to_owned()));
    let (_, reason, message) = stage.told("old", "RuntimeResolved");
    assert_eq!(reason, "NotSupported");
    assert!(message.contains("runtimeVersion") && message.contains("name a runtime"), "{message}");
    for name in ["iris", "old"] {
        assert!(stage.deployment(name).is_none(), "{name}: nothing half-made");
        assert_eq!(stage.condition(name, "Ready").0, "False", "{name}");
    }
}

/// kserve/modelmesh-serving#486: every runtime restarts because tags were renamed, though the content is the same.
#[tokio::test(start_paused = true)]
async fn another_tag_of_the_same_digest_restarts_nothing() {
    let stage = Stage::new().await;
    let tagged = |tag: &str| {
        let mut runtime = stage.runtime("mlserver", "1");
        let pinned = stage.image("mlserver", "1");
        let (name, digest) = pinned.split_once('@').unwrap();
        runtime["spec"]["containers"][0]["image"] = json!(format!("{name}:{tag}@{digest}"));
        runtime
    };
    stage.put(tagged("v0.11.1")).await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let before = stage.deployment("iris").unwrap();
    let pod = stage.ready_pods("iris")[0]["metadata"]["uid"].clone();
    stage.put(tagged("v0.11.2")).await;
    let written = stage.run(60).await;
    assert_eq!(written, Vec::<String>::new());
    assert_eq!(stage.deployment("iris").unwrap()["metadata"]["generation"], before["metadata"]["generation"]);
    assert_eq!(stage.ready_pods("iris")[0]["metadata"]["uid"], pod);
}

/// kserve/kserve#3376: an image that is declared elsewhere than in the runtime changes, and pods keep the old one.
#[tokio::test(start_paused = true)]
async fn an_image_that_is_declared_elsewhere_reaches_pods_too() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    stage.operator("2").await;
    stage.run(60).await;
    // It is told, and reaches them when their owner wants it to.
    assert!(stage.told("iris", "RolloutPending").2.contains(&stage.image("operator", "2")));
    stage.edit("iris", json!({"metadata": {"annotations": {"scantling.dev/roll": "now"}}})).await;
    assert_eq!(stage.gaps("iris", 60).await, 0);
    let pods = stage.ready_pods("iris");
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0]["spec"]["initContainers"][0]["image"], stage.image("operator", "2"));
}
