//! Models through their life.

use serde_json::json;

use crate::stage::*;

#[tokio::test(start_paused = true)]
async fn a_model_is_served_and_then_left_alone() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    assert_eq!(
        stage.condition("iris", "Ready"),
        ("True".to_owned(), "Ready".to_owned()),
        "{:#}",
        stage.find("serving.kserve.io", "InferenceService", "iris").unwrap()["status"]
    );
    for kind in
        ["RuntimeResolved", "ImageResolved", "StorageReady", "Pinned", "PredictorReady", "IngressReady"]
    {
        assert_eq!(stage.condition("iris", kind).0, "True", "{kind}");
    }
    assert_eq!(stage.condition("iris", "RolloutPending"), ("False".to_owned(), "UpToDate".to_owned()));
    let service = stage.find("serving.kserve.io", "InferenceService", "iris").unwrap();
    let status = &service["status"];
    assert_eq!(status["url"], "http://iris-predictor.team.svc");
    assert_eq!(status["clusterServingRuntimeName"], "mlserver");
    assert_eq!(status["deploymentMode"], "Standard");
    assert_eq!(status["modelStatus"]["transitionStatus"], "UpToDate");
    assert_eq!(
        status["modelStatus"]["states"],
        json!({"activeModelState": "Loaded", "targetModelState": "Loaded"})
    );
    assert_eq!(status["modelStatus"]["copies"], json!({"failedCopies": 0, "totalCopies": 1}));
    assert_eq!(status["observedGeneration"], service["metadata"]["generation"]);
    let deployment = stage.deployment("iris").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], stage.image("mlserver", "1"));
    assert_eq!(pod["containers"][0]["args"], json!(["--name=iris"]));
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/mnt/models");
    assert_eq!(pod["initContainers"][0]["image"], stage.image("operator", "1"));
    assert_eq!(
        pod["initContainers"][0]["args"],
        json!(["fetch-model", "https://models.test/iris.joblib", "/mnt/models"])
    );
    let rolling = json!({"maxUnavailable": 0, "maxSurge": 1});
    assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"], rolling);
    let address = stage.find("", "Service", "iris-predictor").unwrap();
    assert_eq!(address["spec"]["ports"][0]["targetPort"], "serving");
    assert_eq!(
        pod["containers"][0]["ports"][0],
        json!({"containerPort": 8080, "protocol": "TCP", "name": "serving"})
    );
    let policy = stage.find("networking.k8s.io", "NetworkPolicy", "iris-predictor").unwrap();
    assert_eq!(policy["spec"]["podSelector"]["matchLabels"], json!({"app": "isvc.iris-predictor"}));
    assert!(stage.events("iris").is_empty(), "{:?}", stage.events("iris"));
    // A second party finds nothing to do, and nor does the first when it comes back.
    assert_eq!(stage.run(300).await, Vec::<String>::new());
    // What was made goes with the model.
    stage.delete("serving.kserve.io", "InferenceService", "iris").await;
    stage.run(60).await;
    for (group, kind) in [("apps", "Deployment"), ("", "Service"), ("networking.k8s.io", "NetworkPolicy")] {
        assert!(stage.find(group, kind, "iris-predictor").is_none(), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_stops_starts_and_scales_as_its_owner_says() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    stage.edit("iris", json!({"metadata": {"annotations": {"serving.kserve.io/stop": "true"}}})).await;
    stage.run(60).await;
    assert_eq!(stage.deployment("iris").unwrap()["spec"]["replicas"], 0);
    assert_eq!(stage.condition("iris", "Stopped").0, "True");
    assert_eq!(stage.condition("iris", "Ready"), ("False".to_owned(), "Stopped".to_owned()));
    stage.edit("iris", json!({"metadata": {"annotations": {"serving.kserve.io/stop": null}}, "spec": {"predictor": {"minReplicas": 2}}})).await;
    stage.run(60).await;
    assert_eq!(stage.ready_pods("iris").len(), 2);
    assert_eq!(stage.condition("iris", "Stopped").0, "");
    // An autoscaler of the user's own takes over from what there is, and is not fought.
    stage
        .edit("iris", json!({"metadata": {"annotations": {"serving.kserve.io/autoscalerClass": "external"}}}))
        .await;
    stage.run(60).await;
    assert_eq!(stage.ready_pods("iris").len(), 2, "as many as before");
    stage.edit_own(("apps/v1", "Deployment"), "iris-predictor", json!({"spec": {"replicas": 3}})).await;
    let written = stage.run(60).await;
    assert!(
        written.iter().all(|write| write == "patch InferenceService team/iris"),
        "pods are counted: {written:?}"
    );
    assert_eq!(stage.ready_pods("iris").len(), 3);
    stage.put(stage.runtime("mlserver", "2")).await;
    stage.run(90).await;
    assert_eq!(stage.ready_pods("iris").len(), 3, "a new image leaves the number");
    // A stop is the owner's, and a start begins with what is written; also where an update waits.
    for waits in [false, true] {
        let stop = |value: serde_json::Value| {
            let keep = if waits { json!("true") } else { json!(null) };
            json!({"metadata": {"annotations": {"serving.kserve.io/stop": value, "serving.kserve.io/disable-auto-update": keep}}})
        };
        stage.edit("iris", stop(json!("true"))).await;
        stage.run(60).await;
        assert!(stage.ready_pods("iris").is_empty());
        stage.edit("iris", stop(json!(null))).await;
        stage.run(60).await;
        assert_eq!(stage.ready_pods("iris").len(), 2, "waits: {waits}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolved_runtime_stays_until_it_is_gone() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let before = stage.deployment("iris").unwrap();
    // Newer, and of higher priority: for a new model it is the first choice, for a running one it is none.
    let mut newer = stage.runtime("newer", "2");
    newer["spec"]["supportedModelFormats"][0]["priority"] = json!(5);
    stage.put(newer).await;
    stage.put(stage.model("other")).await;
    stage.run(60).await;
    assert_eq!(stage.deployment("iris").unwrap()["spec"], before["spec"]);
    let status = |name: &str| {
        stage.find("serving.kserve.io", "InferenceService", name).unwrap()["status"]["clusterServingRuntimeName"].clone()
    };
    assert_eq!((status("iris"), status("other")), (json!("mlserver"), json!("newer")));
    // It goes: the other one takes over, which is told.
    stage.delete("serving.kserve.io", "ClusterServingRuntime", "mlserver").await;
    assert_eq!(stage.gaps("iris", 60).await, 0);
    assert_eq!(status("iris"), "newer");
    assert!(stage.events("iris").contains(&"RuntimeReselected".to_owned()));
    // The last one goes: pods stay, and a condition says what is missing.
    stage.delete("serving.kserve.io", "ClusterServingRuntime", "newer").await;
    stage.run(60).await;
    assert_eq!(
        stage.condition("iris", "RuntimeResolved"),
        ("False".to_owned(), "NoSupportingRuntime".to_owned())
    );
    assert_eq!(stage.condition("iris", "RolloutPending"), ("True".to_owned(), "Blocked".to_owned()));
    assert_eq!(stage.condition("iris", "Ready").0, "True", "it still answers");
    assert_eq!(stage.ready_pods("iris").len(), 1);
    assert!(stage.events("iris").contains(&"NoSupportingRuntime".to_owned()));
    assert_eq!(stage.run(200).await, Vec::<String>::new());
}
