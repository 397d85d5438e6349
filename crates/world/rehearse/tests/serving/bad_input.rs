//! What cannot be served: a condition and an event with the fix, nothing half-made, others unaffected.

use scantling_observed::Observed;
use scantling_reconcile::{Action, Context, Known, Met, SERVING};
use serde_json::{Value, json};

use crate::stage::*;

/// A model that is changed by a merge patch.
fn changed(stage: &Stage, patch: &Value) -> Value {
    let mut model = stage.model("bad");
    merge(&mut model, patch);
    model
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in patch {
        merge(&mut into[name.as_str()], value);
    }
}

fn model(fields: Value) -> Value {
    json!({"spec": {"predictor": {"model": fields}}})
}

fn storage(uri: &str) -> Value {
    model(json!({"storageUri": uri}))
}

fn annotated(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_served_is_told_with_the_fix() {
    let stage = Stage::new().await;
    let mut disabled = stage.runtime("disabled", "1");
    disabled["spec"]["disabled"] = json!(true);
    let mut many = stage.runtime("many", "1");
    many["spec"]["multiModel"] = json!(true);
    let mut nameless = stage.runtime("nameless", "1");
    nameless["spec"]["containers"][0]["name"] = json!("server");
    nameless["spec"]["supportedModelFormats"][0]["autoSelect"] = json!(false);
    let mut asking = stage.runtime("asking", "1");
    asking["spec"]["containers"][0]["args"] = json!(["--team={{.Labels.team}}"]);
    asking["spec"]["supportedModelFormats"][0]["autoSelect"] = json!(false);
    for runtime in [disabled, many, nameless, asking] {
        stage.put(runtime).await;
    }
    let half = json!({"AWS_ACCESS_KEY_ID": "aWQ=", "AWS_SECRET_ACCESS_KEY": "", "AWS_S3_BUCKET": "Yg=="});
    stage.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "half", "namespace": TEAM}, "data": half})).await;
    // Of another namespace: it must not be found.
    stage.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "scantling"}, "data": half})).await;
    stage
        .put(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "storage-config", "namespace": TEAM},
            "data": {"anybody": "eyJ0eXBlIjoiczMiLCJ2ZXJpZnlfc3NsIjoiMCJ9", "open": "eyJ0eXBlIjoiczMiLCJhbm9ueW1vdXMiOnRydWV9", "broken": "Z2VoZWlt", "gs": "eyJ0eXBlIjoiZ3MifQ==", "keyless": "eyJ0eXBlIjoiczMiLCJhY2Nlc3Nfa2V5X2lkIjoiZ2VoZWltIn0="},
        }))
        .await;
    let connection = |key: &str| model(json!({"storageUri": null, "storage": {"key": key, "path": "iris"}}));
    let cases: &[(&str, Value, &str, &str, &str)] = &[
        (
            "a mode",
            annotated("serving.kserve.io/deploymentMode", "Serverless"),
            "RuntimeResolved",
            "ModeNotSupported",
            "write Standard",
        ),
        (
            "a transformer",
            json!({"spec": {"transformer": {"containers": [{"name": "x"}]}}}),
            "RuntimeResolved",
            "NotSupported",
            "change requests in the client",
        ),
        (
            "a canary",
            json!({"spec": {"predictor": {"canaryTrafficPercent": 10}}}),
            "RuntimeResolved",
            "NotSupported",
            "second InferenceService",
        ),
        (
            "an unknown field",
            model(json!({"wings": 2})),
            "RuntimeResolved",
            "NotSupported",
            "spec.predictor.model.wings is not known",
        ),
        (
            "no pods",
            json!({"spec": {"predictor": {"minReplicas": 0}}}),
            "RuntimeResolved",
            "NotSupported",
            "serving.kserve.io/stop",
        ),
        (
            "a format",
            model(json!({"modelFormat": {"name": "caffe"}})),
            "RuntimeResolved",
            "NoSupportingRuntime",
            "formats that are served here sklearn 1",
        ),
        (
            "a version",
            model(json!({"modelFormat": {"name": "sklearn", "version": "0"}})),
            "RuntimeResolved",
            "NoSupportingRuntime",
            "sklearn 1",
        ),
        (
            "a protocol",
            model(json!({"protocolVersion": "v1"})),
            "RuntimeResolved",
            "NoSupportingRuntime",
            "write that into model.protocolVersion",
        ),
        (
            "no runtime",
            model(json!({"runtime": "nobody"})),
            "RuntimeResolved",
            "RuntimeNotFound",
            "name one of asking, mlserver, nameless",
        ),
        (
            "a disabled one",
            model(json!({"runtime": "disabled"})),
            "RuntimeResolved",
            "RuntimeDisabled",
            "enable it, or name another",
        ),
        (
            "one for many",
            model(json!({"runtime": "many"})),
            "RuntimeResolved",
            "RuntimeNotSupported",
            "name another",
        ),
        (
            "no container",
            model(json!({"runtime": "nameless"})),
            "RuntimeResolved",
            "RuntimeMalformed",
            "kserve-container",
        ),
        (
            "a placeholder",
            model(json!({"runtime": "asking"})),
            "RuntimeResolved",
            "PlaceholderUnknown",
            "the label \"team\"",
        ),
        (
            "a namespace",
            annotated("scantling.dev/allow-from", "A B"),
            "RuntimeResolved",
            "AnnotationMalformed",
            "names of namespaces",
        ),
        (
            "authentication",
            annotated("security.opendatahub.io/enable-auth", "true"),
            "RuntimeResolved",
            "NotSupported",
            "scantling.dev/allow-from",
        ),
        ("a scheme", storage("gs://b/iris"), "StorageReady", "UriNotSupported", "copy the model to S3"),
        ("no scheme", storage("iris"), "StorageReady", "UriNotSupported", "pvc://CLAIM/PATH"),
        (
            "a password",
            storage("https://u:geheim@h/iris"),
            "StorageReady",
            "SecretInUri",
            "put the model into S3",
        ),
        (
            "no claim",
            storage("pvc://nothing/iris"),
            "StorageReady",
            "ClaimMissing",
            "make it, or correct storageUri",
        ),
        ("a way out", storage("pvc://nothing/../x"), "StorageReady", "UriMalformed", "leaves the claim"),
        (
            "no connection",
            connection("nobody"),
            "StorageReady",
            "SecretMissing",
            "make a Secret of this name",
        ),
        (
            "another namespace's",
            connection("theirs"),
            "StorageReady",
            "SecretMissing",
            "make a Secret of this name",
        ),
        ("half a secret", connection("half"), "StorageReady", "SecretMalformed", "AWS_SECRET_ACCESS_KEY"),
        ("no JSON", connection("broken"), "StorageReady", "SecretMalformed", "no JSON object"),
        ("another kind", connection("gs"), "StorageReady", "SecretMalformed", "only s3"),
        (
            "anybody",
            connection("anybody"),
            "StorageReady",
            "TlsNotVerified",
            "a certificate of a known authority",
        ),
        (
            "no bucket, and no keys needed",
            connection("open"),
            "StorageReady",
            "SecretMalformed",
            "no \"bucket\"",
        ),
        ("no key in it", connection("keyless"), "StorageReady", "SecretMalformed", "secret_access_key"),
    ];
    stage.put(stage.model("good")).await;
    stage.run(60).await;
    let good = stage.deployment("good").unwrap();
    for (what, patch, condition, reason, fix) in cases {
        stage.put(changed(&stage, patch)).await;
        stage.run(10).await;
        let (status, found, message) = stage.told("bad", condition);
        assert_eq!((status.as_str(), found.as_str()), ("False", *reason), "{what}: {message}");
        assert!(message.contains(fix) && !message.contains("geheim"), "{what}: {message}");
        assert!(stage.events("bad").contains(&(*reason).to_owned()), "{what}: {:?}", stage.events("bad"));
        assert_eq!(stage.condition("bad", "Ready").0, "False", "{what}");
        for (group, kind) in [("apps", "Deployment"), ("", "Service"), ("networking.k8s.io", "NetworkPolicy")]
        {
            assert!(stage.find(group, kind, "bad-predictor").is_none(), "{what}: a {kind} is half-made");
        }
        assert_eq!(stage.run(100).await, Vec::<String>::new(), "{what}");
        stage.delete("serving.kserve.io", "InferenceService", "bad").await;
    }
    assert_eq!(stage.deployment("good").unwrap()["metadata"]["generation"], good["metadata"]["generation"]);
    assert_eq!(stage.condition("good", "Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn names_that_cannot_be_are_refused() {
    let stage = Stage::new().await;
    let long = "x".repeat(49);
    for (name, reason) in [(long.as_str(), "NameTooLong"), ("1iris", "NameInvalid"), ("a.b", "NameInvalid")] {
        stage.put(stage.model(name)).await;
        stage.run(10).await;
        assert_eq!(stage.condition(name, "RuntimeResolved"), ("False".to_owned(), reason.to_owned()));
        assert!(stage.deployment(name).is_none());
    }
    stage.put(stage.model(&"x".repeat(48))).await;
    stage.run(60).await;
    assert_eq!(stage.condition(&"x".repeat(48), "Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_not_taken() {
    let stage = Stage::new().await;
    let ports = json!([{"port": 80, "protocol": "TCP"}]);
    stage
        .put(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "iris-predictor", "namespace": TEAM}, "spec": {"selector": {"app": "theirs"}, "ports": ports}}))
        .await;
    stage.put(stage.model("iris")).await;
    stage.run(30).await;
    let (_, reason, message) = stage.told("iris", "RuntimeResolved");
    assert_eq!(reason, "ForeignObject");
    assert!(message.contains("Service team/iris-predictor"), "{message}");
    assert!(stage.deployment("iris").is_none());
    let service = stage.find("", "Service", "iris-predictor").unwrap();
    assert_eq!(service["spec"]["selector"], json!({"app": "theirs"}));
    // The way is free again.
    stage.delete("", "Service", "iris-predictor").await;
    stage.run(60).await;
    assert_eq!(stage.condition("iris", "Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_mistake_in_a_running_model_leaves_its_pods() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let before = stage.deployment("iris").unwrap()["metadata"]["generation"].clone();
    stage.edit("iris", storage("gs://b/iris")).await;
    assert_eq!(stage.gaps("iris", 30).await, 0);
    assert_eq!(stage.condition("iris", "StorageReady").1, "UriNotSupported");
    let (status, reason, message) = stage.told("iris", "RolloutPending");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Blocked"));
    assert!(message.contains("gs://"), "{message}");
    assert_eq!(stage.deployment("iris").unwrap()["metadata"]["generation"], before);
    assert_eq!(stage.condition("iris", "Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn fields_that_change_nothing_are_named() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.edit("iris", json!({"spec": {"predictor": {"maxReplicas": 3, "timeout": 60}}})).await;
    stage.run(60).await;
    let (status, _, message) = stage.told("iris", "FieldsIgnored");
    assert_eq!(status, "True");
    assert!(
        message.contains("maxReplicas")
            && message.contains("timeout")
            && message.contains("HorizontalPodAutoscaler"),
        "{message}"
    );
    assert_eq!(stage.condition("iris", "Ready").0, "True");
}

/// What the reconciler tells about `iris` in a cluster that was changed by hand: status and reason of a condition, and everything it writes.
fn told_of(observed: &Observed, kind: &str) -> (String, String, String) {
    let known = Known::default();
    let context = Context {
        now: "2026-01-01T01:00:00Z",
        namespace: "scantling",
        images: &known.images,
        platform: None,
        last_uses: &known.last_uses,
        met: &Met::default(),
    };
    let actions = (SERVING.reconcile)(observed, &context);
    let conditions = actions.iter().find_map(|action| match action {
        Action::PatchStatus { status, .. } => status["conditions"].as_array().cloned(),
        _ => None,
    });
    let found = conditions.unwrap().into_iter().find(|condition| condition["type"] == kind).unwrap();
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("reason"), text("message"), serde_json::to_string(&actions).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_quota_and_a_model_that_is_not_there_are_told() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let mut observed = stage.observed();
    let mut deployment = stage.deployment("iris").unwrap();
    deployment["status"]["conditions"] = json!([
        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": ""},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "pods \"x\" is forbidden: exceeded quota: team"},
    ]);
    observed.insert(deployment.clone()).unwrap();
    let (reason, message, written) = told_of(&observed, "PredictorReady");
    assert_eq!(reason, "QuotaExceeded");
    assert!(message.contains("exceeded quota: team; ask for less in model.resources"), "{message}");
    assert!(written.contains("\"reason\":\"QuotaExceeded\""), "an event");
    // Why a pod waits is said in the cluster's own word.
    let mut pod = stage.ready_pods("iris")[0].clone();
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    pod["status"]["containerStatuses"] = json!([{
        "name": "kserve-container", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\": manifest unknown"}},
    }]);
    let waiting = pod.clone();
    observed.insert(pod).unwrap();
    let mut without_quota = deployment.clone();
    without_quota["status"]["conditions"][1]["status"] = json!("False");
    observed.insert(without_quota).unwrap();
    let (reason, message, _) = told_of(&observed, "PredictorReady");
    assert_eq!(reason, "ImagePullBackOff");
    assert!(
        message.ends_with(
            "container kserve-container: ImagePullBackOff: Back-off pulling image \"x\": manifest unknown"
        ),
        "{message}"
    );
    let mut unplaced = waiting;
    unplaced["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient cpu."},
    ]});
    observed.insert(unplaced).unwrap();
    let (reason, message, _) = told_of(&observed, "PredictorReady");
    assert_eq!(reason, "Unschedulable");
    assert!(message.contains("Unschedulable: 0/2 nodes"), "{message}");
    observed.insert(deployment.clone()).unwrap();
    // The init container has ended with an error; its last words are repeated.
    let mut pod = stage.ready_pods("iris")[0].clone();
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    pod["status"]["initContainerStatuses"] = json!([{
        "name": "storage-initializer", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "again: it answers 500\nerror: there is nothing at https://models.test/iris.joblib\n"}},
    }]);
    observed.insert(pod).unwrap();
    deployment["status"]["conditions"][1]["status"] = json!("False");
    observed.insert(deployment).unwrap();
    let (reason, message, written) = told_of(&observed, "StorageReady");
    assert_eq!(reason, "ModelNotFetched");
    assert!(message.contains("ended with 3 (CrashLoopBackOff)"), "{message}");
    assert!(message.ends_with("there is nothing at https://models.test/iris.joblib"), "{message}");
    assert!(written.contains("ModelLoadFailed") && written.contains("FailedToLoad"), "{written}");
}

#[tokio::test(start_paused = true)]
async fn secrets_are_passed_by_reference_only() {
    let stage = Stage::new().await;
    let secret = |name: &str, data: Value, annotations: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": TEAM, "annotations": annotations}, "data": data});
    let keys = json!({"AWS_ACCESS_KEY_ID": "Z2VoZWlt", "AWS_SECRET_ACCESS_KEY": "Z2VoZWlt", "AWS_S3_BUCKET": "Z2VoZWlt"});
    stage.put(secret("connection", keys.clone(), json!({}))).await;
    let endpoint =
        json!({"serving.kserve.io/s3-endpoint": "minio:9000", "serving.kserve.io/s3-usehttps": "0"});
    stage.put(secret("of-account", keys, endpoint)).await;
    stage
        .put(json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "models", "namespace": TEAM},
            "secrets": [{"name": "of-account"}],
        }))
        .await;
    let mut by_key = stage.model("by-key");
    by_key["spec"]["predictor"]["model"]["storageUri"] = Value::Null;
    by_key["spec"]["predictor"]["model"]["storage"] = json!({"key": "connection", "path": "iris/v1"});
    let mut by_account = stage.model("by-account");
    by_account["spec"]["predictor"]["model"]["storageUri"] = json!("s3://models/iris");
    by_account["spec"]["predictor"]["serviceAccountName"] = json!("models");
    stage.put(by_key).await;
    stage.put(by_account).await;
    stage.run(60).await;
    for (name, secret, uri, extra) in [
        ("by-key", "connection", "s3:///iris/v1", None),
        (
            "by-account",
            "of-account",
            "s3://models/iris",
            Some(json!({"name": "AWS_ENDPOINT_URL", "value": "http://minio:9000"})),
        ),
    ] {
        let deployment = stage.deployment(name).unwrap();
        let init = &deployment["spec"]["template"]["spec"]["initContainers"][0];
        assert_eq!(init["args"][1], uri);
        let env = init["env"].as_array().unwrap();
        let reference = json!({"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": secret, "key": "AWS_SECRET_ACCESS_KEY"}}});
        assert!(env.contains(&reference), "{env:?}");
        assert!(extra.is_none_or(|extra| env.contains(&extra)), "{env:?}");
        assert_eq!(stage.condition(name, "Ready").0, "True", "{name}");
        let service = stage.find("serving.kserve.io", "InferenceService", name).unwrap();
        for object in [&deployment, &service] {
            assert!(!object.to_string().contains("geheim") && !object.to_string().contains("Z2VoZWlt"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_refused_can_be_stopped_and_started_and_stays_guarded() {
    let stage = Stage::new().await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let template = stage.deployment("iris").unwrap()["spec"]["template"].clone();
    stage.edit("iris", storage("gs://b/iris")).await;
    stage.delete("networking.k8s.io", "NetworkPolicy", "iris-predictor").await;
    stage.run(30).await;
    assert_eq!(stage.condition("iris", "StorageReady").1, "UriNotSupported");
    assert!(stage.answers("iris"), "the policy is there again");
    stage.edit("iris", annotated("serving.kserve.io/stop", "true")).await;
    stage.run(60).await;
    assert!(stage.ready_pods("iris").is_empty());
    assert_eq!(stage.condition("iris", "PredictorReady").1, "Stopped");
    stage.edit("iris", json!({"metadata": {"annotations": {"serving.kserve.io/stop": null}}})).await;
    stage.run(60).await;
    assert!(stage.answers("iris"));
    assert_eq!(stage.deployment("iris").unwrap()["spec"]["template"], template);
    assert_eq!(stage.condition("iris", "StorageReady").1, "UriNotSupported");
    assert_eq!(stage.run(100).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_told_and_keeps_back_nobody_else() {
    let stage = Stage::new().await;
    let mut bad = stage.model("fraud");
    bad["spec"]["predictor"]["model"]["ports"] = json!([{"containerPort": 99_999, "protocol": "TCP"}]);
    stage.put(bad).await;
    stage.put(stage.model("fraud-v2")).await;
    stage.run(60).await;
    assert_eq!(stage.condition("fraud-v2", "Ready").0, "True", "its name begins like the other's");
    let (status, reason, message) = stage.told("fraud", "PredictorReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Refused"), "{message}");
    assert!(message.contains("99999"), "{message}");
    assert!(stage.events("fraud").contains(&"Refused".to_owned()), "{:?}", stage.events("fraud"));
    assert!(stage.deployment("fraud").is_none());
    let number = |port: u16| model(json!({"ports": [{"containerPort": port, "protocol": "TCP"}]}));
    stage.edit("fraud", number(8080)).await;
    stage.run(60).await;
    assert_eq!(stage.condition("fraud", "Ready").0, "True");
    // Where pods run already, they stay, and the condition about the rollout says why.
    stage.edit("fraud", number(0)).await;
    assert_eq!(stage.gaps("fraud", 30).await, 0);
    let (status, reason, message) = stage.told("fraud", "RolloutPending");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Refused"), "{message}");
    assert_eq!(stage.condition("fraud", "Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_runtimes_fields_that_change_nothing_are_named() {
    let stage = Stage::new().await;
    let mut runtime = stage.runtime("mlserver", "1");
    runtime["spec"]["grpcDataEndpoint"] = json!("port:8001");
    stage.put(runtime).await;
    stage.put(stage.model("iris")).await;
    stage.run(60).await;
    let (status, _, message) = stage.told("iris", "FieldsIgnored");
    assert_eq!(status, "True");
    assert!(message.contains("ClusterServingRuntime mlserver: spec.grpcDataEndpoint"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_read_when_it_is_named_and_only_then() {
    let stage = Stage::new().await;
    let keys = json!({"AWS_ACCESS_KEY_ID": "aQ==", "AWS_SECRET_ACCESS_KEY": "aQ==", "AWS_S3_BUCKET": "Yg==", "other": "Z2VoZWlt"});
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": TEAM}, "data": keys});
    stage.put(secret("unrelated")).await;
    let mut iris = stage.model("iris");
    iris["spec"]["predictor"]["model"]["storageUri"] = Value::Null;
    iris["spec"]["predictor"]["model"]["storage"] = json!({"key": "connection", "path": "iris"});
    stage.put(iris).await;
    let seen = std::sync::Mutex::new(std::collections::BTreeMap::new());
    let look = |observed: &Observed| {
        let secrets = observed.of_kind("", "Secret").map(|(key, secret)| (key.name.clone(), secret.clone()));
        seen.lock().unwrap().extend(secrets);
    };
    let end = async {
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        assert_eq!(stage.condition("iris", "StorageReady").1, "SecretMissing");
        assert!(seen.lock().unwrap().is_empty());
        stage.put(secret("connection")).await;
        // Nothing else happens that would be a reason to look.
        tokio::time::sleep(std::time::Duration::from_secs(125)).await;
        assert_eq!(stage.condition("iris", "Ready").0, "True");
        // It is taken away, which is no reason for pods to go.
        stage.delete("", "Secret", "connection").await;
        tokio::time::sleep(std::time::Duration::from_secs(125)).await;
        assert_eq!(stage.condition("iris", "StorageReady").1, "SecretMissing");
        assert!(stage.answers("iris"));
    };
    stage.look_while(&look, end).await;
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["connection"]);
    assert!(!seen["connection"].to_string().contains("Z2VoZWlt"), "what is no data connection is not kept");
    // A plan, which reads no secrets, takes the storage to be what it was.
    stage.put(secret("connection")).await;
    stage.run(60).await;
    let mut observed = stage.observed();
    let keys: Vec<_> = observed.of_kind("", "Secret").map(|(key, _)| key.clone()).collect();
    for key in keys {
        observed.remove(&key);
    }
    let service = observed.all::<scantling_observed::InferenceService<'_>>().next().unwrap();
    let told = scantling_reconcile::rollout(&observed, service);
    assert_eq!((told.roll, told.refused), (Some(scantling_reconcile::Roll::Unchanged), None));
}
