//! What a run says of models: who is concerned before, and what their pods run after.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::Sandbox;
use common::platform::{HOST, brought, of_people, options, release, sandbox, tree, well};
use scantling_api::ObjectKey;
use scantling_cluster::DriveSettings;
use scantling_reconcile::{DEFINITIONS, Definition, Known, RECONCILERS, Roll};
use scantling_run::plan;
use serde_json::{Value, json};
use tokio::sync::watch;

/// A release with a runtime.
fn with_runtime(version: &str, follows: &str) -> scantling_release::Tree {
    let runtime = format!(
        "apiVersion: serving.kserve.io/v1alpha1\nkind: ClusterServingRuntime\nmetadata: {{name: sk}}\nspec:\n  supportedModelFormats: [{{name: sklearn, version: '1', autoSelect: true}}]\n  protocolVersions: [v2]\n  containers:\n  - {{name: kserve-container, image: '{HOST}/controller:{version}', ports: [{{containerPort: 8080, protocol: TCP}}]}}\n"
    );
    // Whether a kind lives in namespaces, a release says by its definition.
    let definition = DEFINITIONS
        .iter()
        .map(Definition::to_value)
        .find(|definition| definition["spec"]["names"]["kind"] == "ClusterServingRuntime")
        .unwrap();
    let definition = definition.to_string();
    tree(version, follows, &[("manifests/runtime.yaml", &runtime), ("manifests/kind.yaml", &definition)])
}

/// The operator's reconcilers at work, for as long as something is done beside them.
async fn reconciled<T>(sandbox: &Sandbox, beside: impl Future<Output = T>) -> T {
    let environment = sandbox.environment(3);
    let settings = DriveSettings {
        reconcilers: RECONCILERS,
        namespace: "platform",
        known: watch::channel(Some(Arc::new(Known::default()))).1,
        look: &|_| {},
        clock: environment.clock,
    };
    let mut done = None;
    let user = async { done = Some(beside.await) };
    environment.cluster.drive(&settings, &mut |_| {}, user).await.unwrap();
    done.unwrap()
}

fn predictor(sandbox: &Sandbox, name: &str) -> Option<Value> {
    sandbox.object(&ObjectKey::namespaced("apps", "Deployment", "anna", format!("{name}-predictor")))
}

#[tokio::test(start_paused = true)]
async fn a_model_that_updates_by_hand_waits_and_is_not_broken() {
    let sandbox = sandbox();
    brought(&sandbox, &with_runtime("1.0.0", "")).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "anna"}});
    of_people(&sandbox, "/api/v1/namespaces", &namespace);
    for (name, by_hand) in [("auto", "false"), ("by-hand", "true")] {
        let model = json!({
            "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
            "metadata": {"name": name, "annotations": {"serving.kserve.io/disable-auto-update": by_hand}},
            "spec": {"predictor": {"minReplicas": 2, "model": {"modelFormat": {"name": "sklearn"}, "protocolVersion": "v2"}}},
        });
        of_people(&sandbox, "/apis/serving.kserve.io/v1beta1/namespaces/anna/inferenceservices", &model);
    }
    reconciled(&sandbox, tokio::time::sleep(Duration::from_secs(30))).await;
    assert!(predictor(&sandbox, "auto").is_some() && predictor(&sandbox, "by-hand").is_some());

    // Nothing changes for models: their pods are held against the release.
    let again = brought(&sandbox, &with_runtime("1.0.0", "")).await;
    assert_eq!(again.writes, 0);
    let of_models = |report: &scantling_run::RunReport, name: &str| -> Vec<String> {
        let seen = report.verified.iter().filter(|seen| seen.pod.starts_with(&format!("anna/{name}-")));
        seen.map(|seen| seen.answer.clone()).collect()
    };
    for name in ["auto", "by-hand"] {
        assert_eq!(of_models(&again, name), ["same", "same"], "{name}: {:#?}", again.verified);
    }

    let two = with_runtime("2.0.0", "1.0.0");
    let planned = well(plan(&sandbox.environment(1), &release(&two), &options(&two), &mut |_| {}).await);
    let rolls: Vec<(String, bool)> = planned
        .plan
        .unwrap()
        .models
        .into_iter()
        .map(|model| (model.service.name, matches!(model.roll, Some(Roll::Waits { .. }))))
        .collect();
    assert_eq!(rolls, [("auto".to_owned(), false), ("by-hand".to_owned(), true)]);

    let report = brought(&sandbox, &two).await;
    assert_eq!(of_models(&report, "by-hand"), ["update pending", "update pending"]);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    reconciled(&sandbox, tokio::time::sleep(Duration::from_mins(1))).await;
    let after = brought(&sandbox, &two).await;
    assert_eq!(of_models(&after, "auto"), ["same", "same"], "{:#?}", after.verified);
    assert_eq!(of_models(&after, "by-hand"), ["update pending", "update pending"]);
    assert_eq!(after.writes, 0);
}
