//! What nodes have and run.

use std::time::Duration;

use http::Method;
use scantling_endpoint::{Keyring, Mirrors};
use scantling_plan::Outcome;
use scantling_registry::{RegistryClient, transport_from_fn};
use scantling_registry_server::RegistryServer;
use scantling_run::{RunError, Stage, upgrade};
use scantling_sandbox::Flavour;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::common::platform::{HOST, brought, gone_back, key, of_people, options, outcomes, release, well};
use crate::common::{Sandbox, push, world};
use crate::{DEPLOYMENTS, deployment, deployment_of_people, image_of, lab, namespace, running};

/// keel-hq/keel#803: a tag moves in the registry, and no restart of a pod brings what it leads to by then.
#[tokio::test(start_paused = true)]
async fn a_moved_tag_is_brought_by_its_digest_and_no_restart_brings_it() {
    let mut registry = RegistryServer::new();
    let old = push(&mut registry, HOST, "lab/app", "main", &[("app", "1")]);
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
    sandbox.now(|w| w.preload("node-1", &format!("{HOST}/lab/app:main"))).unwrap();
    let app = deployment("app", "lab/app:main", "IfNotPresent");
    brought(&sandbox, &lab("1.0.0", "", "", &[("app.yaml", &app)])).await;
    let new = sandbox.now(|w| push(w.registry(), HOST, "lab/app", "main", &[("app", "2")]));
    assert_ne!(old, new);

    // Without a digest the node runs what it has under the name.
    of_people(&sandbox, DEPLOYMENTS, &deployment_of_people("naive", "lab/app:main"));
    sleep(Duration::from_mins(1)).await;
    let naive = running(&sandbox, "naive-");
    assert!(naive.iter().all(|(_, id)| id.contains(old.hex())) && !naive.is_empty(), "{naive:?}");

    // The same text is another image now.
    let report = brought(&sandbox, &lab("2.0.0", "1.0.0", "", &[("app.yaml", &app)])).await;
    assert_eq!(outcomes(&report)["Deployment platform/app"], Outcome::Updated);
    let written = image_of(&sandbox.object(&key("Deployment", "app")).unwrap());
    assert!(written.ends_with(&format!("@{new}")), "{written}");
    assert!(report.verified.iter().all(|v| v.answer == "same" && v.running.contains(new.hex())));
    let pods = running(&sandbox, "app-");
    assert!(pods.iter().all(|(_, id)| id.contains(new.hex())) && !pods.is_empty(), "{pods:?}");
}

/// `TonicAI/tonic_helm_charts#16`: the pull policy that the server chose for the first tag stays when the tag changes.
#[tokio::test(start_paused = true)]
async fn an_upgraded_object_has_the_pull_policy_of_a_fresh_one() {
    let sandbox = || {
        let mut registry = RegistryServer::new();
        push(&mut registry, HOST, "lab/ui", "1.0", &[("ui", "1")]);
        push(&mut registry, HOST, "lab/ui", "latest", &[("ui", "2")]);
        Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry)
    };
    let with = |version: &str, follows: &str, tag: &str| {
        lab(version, follows, "", &[("ui.yaml", &deployment("ui", &format!("lab/ui:{tag}"), ""))])
    };
    let container = |sandbox: &Sandbox| {
        sandbox.object(&key("Deployment", "ui")).unwrap()["spec"]["template"]["spec"]["containers"][0].clone()
    };
    let (upgraded, fresh) = (sandbox(), sandbox());
    brought(&upgraded, &with("1.0.0", "", "1.0")).await;
    brought(&upgraded, &with("2.0.0", "1.0.0", "latest")).await;
    brought(&fresh, &with("2.0.0", "1.0.0", "latest")).await;
    assert_eq!(container(&upgraded), container(&fresh));
    assert_eq!(container(&fresh)["imagePullPolicy"], "IfNotPresent");

    // What was applied by other means has the policy of its tag: the plan says that it stays.
    let adopted = sandbox();
    namespace(&adopted);
    let mut theirs = deployment_of_people("ui", "lab/ui:latest");
    theirs["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("imagePullPolicy");
    let note = theirs.to_string();
    theirs["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": note});
    let path = format!("{DEPLOYMENTS}?fieldManager=kubectl-client-side-apply");
    let (status, answer) = adopted.act(Method::POST, &path, "application/json", &theirs);
    assert_eq!(status, 201, "{answer}");
    sleep(Duration::from_mins(1)).await;
    let report = brought(&adopted, &with("2.0.0", "1.0.0", "latest")).await;
    let outcome = report.outcomes.iter().find(|o| o.key == key("Deployment", "ui")).unwrap();
    assert_eq!(outcome.outcome, Outcome::Adopted);
    assert_eq!(container(&adopted)["imagePullPolicy"], "Always");
    let policy = outcome.kept.iter().find(|k| k.field.ends_with(".imagePullPolicy")).unwrap();
    assert_eq!(policy.owners, ["kubectl-client-side-apply"]);
}

/// google/k8s-digester#25: a job writes the tag and a hook the digest, for ever in turn.
#[tokio::test(start_paused = true)]
async fn a_hook_that_writes_digests_and_a_release_do_not_toggle() {
    let mut registry = RegistryServer::new();
    let digest = push(&mut registry, HOST, "sys/proxy", "latest", &[("proxy", "1")]);
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
    let tree = lab("1.0.0", "", "", &[("proxy.yaml", &deployment("proxy", "sys/proxy:latest", ""))]);
    let hook = |image: &str| {
        let patch =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}});
        let at = format!("{DEPLOYMENTS}/proxy?fieldManager=hook");
        let media = "application/strategic-merge-patch+json";
        let (status, answer) = sandbox.act(Method::PATCH, &at, media, &patch);
        assert_eq!(status, 200, "{answer}");
    };
    let proxy = || sandbox.object(&key("Deployment", "proxy")).unwrap();
    brought(&sandbox, &tree).await;
    let generation = proxy()["metadata"]["generation"].clone();
    for _ in 0..12 {
        if !image_of(&proxy()).contains('@') {
            hook(&format!("{HOST}/sys/proxy:latest@{digest}"));
        }
        assert_eq!(brought(&sandbox, &tree).await.writes, 0);
    }
    assert_eq!(proxy()["metadata"]["generation"], generation);
    let sets = sandbox.now(|w| w.objects().filter(|(k, _)| k.kind == "ReplicaSet").count());
    assert_eq!(sets, 1);
    // A hook that takes digests out again is somebody who changes a field.
    hook(&format!("{HOST}/sys/proxy:latest"));
    sandbox.take_writes();
    let (ended, _) = sandbox.upgrade(&release(&tree), &options(&tree), 1).await.unwrap();
    let Err(RunError::Refused { report, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(report.findings[0].code.as_str(), "SCN0801");
    assert!(sandbox.take_writes().is_empty());
}

/// kubernetes/kubernetes#51017: two tags of one digest, and the runtime shows the name of the other.
#[tokio::test(start_paused = true)]
async fn the_name_that_a_runtime_shows_decides_nothing() {
    let mut registry = RegistryServer::new();
    let digest = push(&mut registry, HOST, "t/test", "staging", &[("t", "1")]);
    assert_eq!(push(&mut registry, HOST, "t/test", "production", &[("t", "1")]), digest);
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
    let files = [
        ("p.yaml", deployment("p", "t/test:production", "")),
        ("s.yaml", deployment("s", "t/test:staging", "")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let report = brought(&sandbox, &lab("1.0.0", "", "", &files)).await;
    assert_eq!(report.findings, []);
    assert_eq!(report.verified.len(), 2);
    assert!(report.verified.iter().all(|v| v.answer == "same"), "{:?}", report.verified);
    for name in ["p", "s"] {
        let image = image_of(&sandbox.object(&key("Deployment", name)).unwrap());
        assert_eq!(image, format!("{HOST}/t/test@{digest}"));
    }
}

/// openkruise/kruise#1419: a node loses an image that was brought to it earlier.
#[tokio::test(start_paused = true)]
async fn what_a_node_has_lost_is_pulled_again() {
    for lost in [true, false] {
        let mut registry = RegistryServer::new();
        let first = push(&mut registry, HOST, "controller", "1", &[("c", "1")]);
        push(&mut registry, HOST, "controller", "2", &[("c", "2")]);
        let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
        let with = |version: &str, follows: &str, tag: &str| {
            lab(version, follows, "", &[("c.yaml", &deployment("c", &format!("controller:{tag}"), ""))])
        };
        brought(&sandbox, &with("1.0.0", "", "1")).await;
        brought(&sandbox, &with("2.0.0", "1.0.0", "2")).await;
        let image = format!("{HOST}/controller@{first}");
        if lost {
            sandbox.now(|w| w.remove_cached_image("node-1", &image)).unwrap();
        }
        sleep(Duration::from_mins(5)).await;
        let report = well(gone_back(&sandbox, None).await.unwrap());
        let pulled = report.prepulled.get("node-1").cloned().unwrap_or_default();
        assert_eq!(pulled, if lost { vec![image] } else { vec![] });
        let pods = running(&sandbox, "c-");
        assert!(pods.iter().all(|(_, id)| id.contains(first.hex())) && !pods.is_empty(), "{pods:?}");
    }
}

/// openkruise/kruise#547: bringing an image to a node that has it already is reported as a failure.
#[tokio::test(start_paused = true)]
async fn what_a_node_has_already_is_neither_pulled_nor_a_failure() {
    let mut registry = RegistryServer::new();
    let digest = push(&mut registry, HOST, "controller", "1", &[("c", "1")]);
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["n1", "n2"]), registry);
    let image = format!("{HOST}/controller@{digest}");
    sandbox.now(|w| w.preload("n1", &image)).unwrap();
    sleep(Duration::from_mins(5)).await;
    let tree = lab("1.0.0", "", "", &[("c.yaml", &deployment("c", "controller:1", ""))]);
    let report = brought(&sandbox, &tree).await;
    assert_eq!(report.findings, []);
    assert_eq!(report.prepulled.keys().collect::<Vec<_>>(), ["n2"]);
    let nodes = report.plan.unwrap().nodes;
    let n1 = nodes.iter().find(|n| n.node == "n1");
    assert!(n1.is_none_or(|n| n.pulls.is_empty() && n.left_out.is_none()), "{n1:?}");
}

fn store(version: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: store}}\nspec:\n  replicas: 3\n  serviceName: store\n  selector: {{matchLabels: {{app: store}}}}\n  template:\n    metadata: {{labels: {{app: store}}}}\n    spec:\n      containers: [{{name: main, image: '{HOST}/s:{version}', imagePullPolicy: Always}}]\n"
    )
}

/// kubernetes/kubernetes#67250: the pod that a wrong template broke keeps the corrected one from ever arriving.
#[tokio::test(start_paused = true)]
async fn going_back_replaces_the_pod_that_a_stateful_set_waits_for() {
    let mut registry = RegistryServer::new();
    push(&mut registry, HOST, "s", "1", &[("s", "1")]);
    let second = push(&mut registry, HOST, "s", "2", &[("s", "2")]);
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
    let tree =
        |version: &str, follows: &str, tag: &str| lab(version, follows, "", &[("s.yaml", &store(tag))]);
    brought(&sandbox, &tree("1.0.0", "", "1")).await;
    let uid = |name: &str| {
        let pod = sandbox.object(&key("Pod", name)).unwrap();
        assert_eq!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Running"), "{name}");
        pod["metadata"]["uid"].clone()
    };
    let before = (uid("store-0"), uid("store-1"));

    // The image vanishes between the prepull and the pod that needs it.
    let environment = sandbox.environment(1);
    let two = tree("2.0.0", "1.0.0", "2");
    let mut options_two = options(&two);
    options_two.waits.rollout = Duration::from_mins(1);
    let release_two = release(&two);
    let inner = sandbox.clone();
    let ended = upgrade(&environment, &release_two, &options_two, &mut |event| {
        if event.stage == Stage::Apply {
            inner.now(|w| w.registry().remove(HOST, "s", &second.to_string()));
        }
    })
    .await;
    let Err(RunError::Stopped { report, .. }) = ended else { panic!("{ended:?}") };
    assert!(report.findings.iter().any(|f| f.code.as_str() == "SCN0805"), "{:#?}", report.findings);
    sandbox.take_writes();

    let report = well(gone_back(&sandbox, None).await.unwrap());
    let deleted: Vec<String> = sandbox
        .take_writes()
        .into_iter()
        .filter(|w| w.starts_with("DELETE") && w.contains("/pods/store"))
        .collect();
    assert_eq!(deleted, ["DELETE /api/v1/namespaces/platform/pods/store-2"]);
    assert_eq!((uid("store-0"), uid("store-1")), before);
    uid("store-2");
    let told: Vec<String> =
        report.events.iter().map(|e| e.what.to_string()).filter(|t| t.contains("store-2")).collect();
    assert!(told.iter().any(|t| t.contains("pod store-2 deleted")), "{told:?}");
    let running = running(&sandbox, "store-");
    assert_eq!(running.len(), 3);
    assert!(running.iter().all(|(_, id)| !id.contains(second.hex())), "{running:?}");
}

/// kubernetes/kubernetes#116867: a cache keeps what a tag led to, and nodes run one or the other image.
#[tokio::test(start_paused = true)]
async fn what_is_written_is_what_the_named_registry_has_and_the_cache_is_told() {
    const CACHE: &str = "cache.example.net";
    let rules = format!("[[registry]]\nlocation = '{HOST}'\n[[registry.mirror]]\nlocation = '{CACHE}'\n");
    let mut mirrors = Mirrors::new();
    mirrors.add_registries_conf("registries.conf", &rules).unwrap();
    let mut registry = RegistryServer::new();
    let new = push(&mut registry, HOST, "lab/app", "rolling", &[("app", "2")]);
    let old = push(&mut registry, CACHE, "lab/app", "rolling", &[("app", "1")]);
    let mut config = world(Flavour::Kubernetes, &["node-1"]);
    config.mirrors = mirrors.clone();
    let sandbox = Sandbox::new(config, registry);
    let client = |mirrors: &Mirrors| {
        let inner = sandbox.clone();
        let transport =
            transport_from_fn(move |host, request| Ok(inner.now(|w| w.registry().handle(host, request))));
        RegistryClient::new(
            transport,
            mirrors.clone(),
            Keyring::new(),
            scantling_registry::Options::default(),
        )
    };
    let tree = lab("1.0.0", "", "", &[("app.yaml", &deployment("app", "lab/app:rolling", ""))]);
    let mut environment = sandbox.environment(1);
    environment.registry = client(&mirrors);
    let report = well(upgrade(&environment, &release(&tree), &options(&tree), &mut |_| {}).await);
    let finding = report.findings.iter().find(|f| f.code.as_str() == "SCN0208").unwrap();
    for part in [format!("{CACHE}/lab/app:rolling is {old}"), format!("{HOST}/lab/app:rolling is {new}")] {
        assert!(finding.message.contains(&part), "{}", finding.message);
    }
    let written = image_of(&sandbox.object(&key("Deployment", "app")).unwrap());
    assert_eq!(written, format!("{HOST}/lab/app@{new}"));
    assert!(report.verified.iter().all(|v| v.answer == "same") && !report.verified.is_empty());

    // Two caches, and no answer from the registry itself: nobody can say which one is meant.
    let rules = format!("{rules}[[registry.mirror]]\nlocation = 'second.example.net'\n")
        .replace(&format!("location = '{HOST}'\n"), &format!("location = '{HOST}'\nblocked = true\n"));
    let mut blind = Mirrors::new();
    blind.add_registries_conf("registries.conf", &rules).unwrap();
    sandbox.now(|w| push(w.registry(), "second.example.net", "lab/app", "rolling", &[("app", "3")]));
    environment.registry = client(&blind);
    sandbox.take_writes();
    let ended = upgrade(&environment, &release(&tree), &options(&tree), &mut |_| {}).await;
    let Err(RunError::Refused { why, report }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("mirrors disagree"), "{why}");
    assert!(report.findings.iter().any(|f| f.code.as_str() == "SCN0208"), "{:?}", report.findings);
    assert!(sandbox.take_writes().is_empty());
}
