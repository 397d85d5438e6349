//! What nodes do to a run: unready, full, of another platform, cut off from a registry.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Sandbox, push, release, world};
use scantling_endpoint::{Keyring, Mirrors};
use scantling_registry_server::{Access, RegistryServer};
use scantling_release::Release;
use scantling_run::{Options, RunError, RunReport, Stage, read_registry_rules};
use scantling_sandbox::Flavour;
use serde_json::json;

const HOST: &str = "registry.example.com";

fn one() -> Release {
    release(&[
        (
            "release.yaml",
            "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: p\nversion: 1.0.0\nnamespace: p\nmanifests: [a.yaml]\n",
        ),
        (
            "a.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: \"registry.example.com/c:1\"}]}\n",
        ),
    ])
}

fn registry() -> RegistryServer {
    let mut registry = RegistryServer::new();
    push(&mut registry, HOST, "c", "1", &[("c", "1.0")]);
    registry
}

async fn run(sandbox: &Sandbox) -> Result<RunReport, RunError> {
    sandbox.upgrade(&one(), &Options::default(), 1).await.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn one_bad_node_is_told_and_does_not_hold_up_the_run() {
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["good", "bad"]), registry());
    sandbox.now(|w| w.set_node_up("bad", false)).unwrap();
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
    let report = run(&sandbox).await.unwrap();
    let codes: Vec<_> = report.findings.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, ["SCN0804"], "{:#?}", report.findings);
    assert_eq!(report.prepulled.keys().collect::<Vec<_>>(), ["good"]);
    assert!(report.verified.iter().all(|v| v.answer == "same"));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_no_node_can_pull_stops_the_run_before_any_workload_needs_it() {
    // The client asks without credentials from a place that may; the nodes get none.
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["a", "b"]), registry());
    let release = one();
    let environment = sandbox.environment(1);
    let options = Options::default();
    let mut cut = false;
    let inner = sandbox.clone();
    let ended = scantling_run::upgrade(&environment, &release, &options, &mut |event| {
        // After the gate has passed, the registry closes.
        if event.stage == Stage::Plan && !cut {
            cut = true;
            let credentials = Access::Basic { accounts: std::collections::BTreeMap::default() };
            inner.now(|w| w.registry().access(HOST, "", credentials));
        }
    })
    .await;
    let Err(RunError::Stopped { stage, report, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(stage, Stage::Prepull);
    assert!(report.findings.iter().any(|f| f.code.as_str() == "SCN0203"), "{:#?}", report.findings);
    let workloads =
        sandbox.now(|w| w.objects().filter(|(k, _)| matches!(k.kind.as_str(), "Deployment" | "Pod")).count());
    assert_eq!(workloads, 0);
}

#[tokio::test(start_paused = true)]
async fn the_clusters_own_rules_about_registries_are_read() {
    let sandbox = Sandbox::new(world(Flavour::OpenShift, &["a"]), registry());
    let mirror = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": {"name": "m"},
        "spec": {"imageDigestMirrors": [{"source": "quay.io/a", "mirrors": ["mirror.example.com/a"]}]},
    });
    let path = "/apis/config.openshift.io/v1/imagedigestmirrorsets";
    let (status, answer) = sandbox.act(http::Method::POST, path, "application/json", &mirror);
    assert_eq!(status, 201, "{answer}");
    let (mut mirrors, mut keyring) = (Mirrors::new(), Keyring::new());
    let cluster = sandbox.environment(1).cluster;
    let unread = read_registry_rules(&cluster, Some("default"), &mut mirrors, &mut keyring).await.unwrap();
    assert_eq!(unread, Vec::<String>::new());
    let pinned = format!("quay.io/a/b@sha256:{}", "0".repeat(64));
    let reference = scantling_image::Reference::parse(&pinned).unwrap();
    let hosts: Vec<String> =
        scantling_endpoint::attempts(&reference, &mirrors, &keyring).into_iter().map(|a| a.host).collect();
    assert_eq!(hosts, ["mirror.example.com", "quay.io"]);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_no_node_has_in_time_stops_the_run_although_nobody_complains() {
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["a", "b"]), registry());
    let mut options = Options::default();
    options.waits.prepull = std::time::Duration::ZERO;
    let ended = sandbox.upgrade(&one(), &options, 1).await.unwrap().0;
    let Err(RunError::Stopped { stage, report, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(stage, Stage::Prepull);
    let refused = report.findings.iter().find(|f| f.code.as_str() == "SCN0203").unwrap();
    assert!(refused.message.contains("the pull did not end in time"), "{refused:#?}");
    let workloads =
        sandbox.now(|w| w.objects().filter(|(k, _)| matches!(k.kind.as_str(), "Deployment" | "Pod")).count());
    assert_eq!(workloads, 0);
}

/// Drains and autoscalers take pods and nodes away while a run waits for them.
#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_removes_is_made_again_and_a_node_that_is_gone_is_not_waited_for() {
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["a", "b", "c"]), registry());
    sandbox.before(http::Method::GET, "/p/pods", |sandbox| {
        let pods: Vec<(String, String)> = sandbox.now(|w| {
            let pods = w.objects().filter(|(key, _)| key.kind == "Pod" && key.name.contains("prepull"));
            pods.map(|(key, pod)| (key.name.clone(), pod["spec"]["nodeName"].as_str().unwrap().to_owned()))
                .collect()
        });
        assert_eq!(pods.len(), 3);
        for (pod, node) in pods {
            let remove = |path: String| {
                let now = json!({"gracePeriodSeconds": 0});
                let (status, answer) = sandbox.act(http::Method::DELETE, &path, "application/json", &now);
                assert_eq!(status, 200, "{answer}");
            };
            if node != "a" {
                remove(format!("/api/v1/namespaces/p/pods/{pod}"));
            }
            if node == "c" {
                remove("/api/v1/nodes/c".to_owned());
            }
        }
    });
    let started = tokio::time::Instant::now();
    let report = run(&sandbox).await.unwrap();
    assert!(started.elapsed() < std::time::Duration::from_mins(5), "{:?}", started.elapsed());
    assert_eq!(report.prepulled.keys().collect::<Vec<_>>(), ["a", "b"]);
    let told: Vec<&str> = report.findings.iter().map(|f| f.message.as_str()).collect();
    assert!(told.iter().any(|m| m.contains("node c") && m.contains("the node is gone")), "{told:#?}");
}

/// Releases bring quotas, and those of a namespace count the pods that pull as well.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_admit_the_pods_that_pull_does_not_hold_up_the_run() {
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["a"]), registry());
    sandbox.mutate("/p/pods/scantling-prepull-", |pod| pod["spec"]["restartPolicy"] = json!("Whenever"));
    let report = run(&sandbox).await.unwrap();
    let told: Vec<&str> = report.findings.iter().map(|f| f.message.as_str()).collect();
    assert!(told.iter().any(|m| m.contains("did not admit the pod that pulls")), "{told:#?}");
    assert!(report.verified.iter().all(|v| v.answer == "same") && !report.verified.is_empty());
}
