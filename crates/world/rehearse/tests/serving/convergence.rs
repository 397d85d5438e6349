//! Whatever happens to the reconciler and its objects, the end is the same.

use std::time::Duration;

use scantling_rehearse::{Gate, Kill};
use scantling_sandbox::ApiFaults;
use serde_json::json;

use crate::stage::*;

/// Two models, of which one is changed while it runs.
async fn story(stage: &Stage) {
    stage.put(stage.model("iris")).await;
    stage.put(stage.model("wine")).await;
}

async fn undisturbed() -> Vec<(scantling_api::ObjectKey, serde_json::Value)> {
    let stage = Stage::new().await;
    story(&stage).await;
    stage.run(60).await;
    stage.made()
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_killed_at_any_write_is_continued() {
    let expected = undisturbed().await;
    for kill in (1..=10).flat_map(|n| [Kill::Before(n), Kill::After(n)]) {
        let stage = Stage::new().await;
        story(&stage).await;
        stage.run_as(&Gate::killing(kill), 3, Duration::from_mins(1)).await;
        stage.run(60).await;
        assert_eq!(stage.made(), expected, "{kill:?}");
        assert_eq!(stage.run(100).await, Vec::<String>::new(), "{kill:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_at_once_do_no_harm() {
    let expected = undisturbed().await;
    let stage = Stage::new().await;
    story(&stage).await;
    let time = Duration::from_mins(1);
    let (gate_a, gate_b) = (Gate::default(), Gate::default());
    tokio::join!(stage.run_as(&gate_a, 3, time), stage.run_as(&gate_b, 4, time));
    assert_eq!(stage.made(), expected);
    assert_eq!(stage.run(100).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn lost_answers_refusals_and_cut_watches_do_no_harm() {
    let expected = undisturbed().await;
    for faults in [
        ApiFaults { lost_responses: 300, ..ApiFaults::default() },
        ApiFaults { unavailable: 300, ..ApiFaults::default() },
        ApiFaults { watch_cut_after: Some(700), ..ApiFaults::default() },
        ApiFaults { watch_cut_after: Some(900), lost_responses: 200, unavailable: 200, latency: 300 },
    ] {
        let stage = Stage::new().await;
        story(&stage).await;
        stage.sandbox.with(|world| world.faults().set("scantling", faults.clone()));
        stage.run(300).await;
        stage.sandbox.with(|world| world.faults().set("scantling", ApiFaults::default()));
        stage.run(300).await;
        assert_eq!(stage.made(), expected, "{faults:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_or_edited_underneath_comes_back() {
    let stage = Stage::new().await;
    story(&stage).await;
    stage.run(60).await;
    let expected = stage.made();
    for (group, kind) in [("apps", "Deployment"), ("", "Service"), ("networking.k8s.io", "NetworkPolicy")] {
        stage.delete(group, kind, "iris-predictor").await;
        stage.run(60).await;
        assert_eq!(stage.made(), expected, "{kind} was deleted");
    }
    let container = json!({"name": "kserve-container", "image": "registry.test/other:1"});
    for (kind, patch) in [
        (("apps/v1", "Deployment"), json!({"spec": {"replicas": 3}})),
        (("apps/v1", "Deployment"), json!({"spec": {"template": {"spec": {"containers": [container]}}}})),
        (("v1", "Service"), json!({"spec": {"selector": {"app": "theirs"}}})),
        (("networking.k8s.io/v1", "NetworkPolicy"), json!({"spec": {"ingress": [{}]}})),
    ] {
        stage.edit_own(kind, "iris-predictor", patch.clone()).await;
        stage.run(90).await;
        assert_eq!(stage.made(), expected, "{kind:?}: {patch}");
    }
}
