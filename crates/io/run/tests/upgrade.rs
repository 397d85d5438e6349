//! Whole runs against the sandbox: install, upgrade, refuse, be killed and go on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;

use common::{Cut, Sandbox, push, release, world};
use http::Method;
use scantling_api::ObjectKey;
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_release::Release;
use scantling_run::{Options, RunError, RunEvent, RunReport, SYSTEM_NAMESPACE, State, What, status, upgrade};
use scantling_sandbox::Flavour;
use serde_json::{Value, json};

const HOST: &str = "registry.example.com";

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: platform}\n";

fn release_file(version: &str, follows: &str) -> String {
    format!(
        r#"apiVersion: scantling.dev/v1alpha1
kind: Release
name: platform
version: {version}
follows: [{follows}]
namespace: platform
manifests: [manifests]
generated:
- {{kind: Secret, name: etcd-passwords, key: root, length: 24}}
- {{kind: Secret, name: model-serving-etcd, key: etcd_connection, jsonPointer: /password, sameAs: etcd-passwords/root}}
ownership:
- {{kind: ConfigMap, name: runtimes, field: '.data["override-config"]', rule: keep}}
"#
    )
}

const SECRETS: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: etcd-passwords}
---
apiVersion: v1
kind: Secret
metadata: {name: model-serving-etcd}
stringData:
  etcd_connection: '{"endpoints": "http://etcd:2379", "userid": "root"}'
"#;

fn config(data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: runtimes}}\ndata:\n  default-config: {data}\n"
    )
}

fn deployment(image: &str) -> String {
    format!(
        r"apiVersion: apps/v1
kind: Deployment
metadata: {{name: controller}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: controller}}}}
  template:
    metadata: {{labels: {{app: controller}}}}
    spec:
      containers:
      - name: main
        image: {HOST}/{image}
"
    )
}

fn one() -> Release {
    release(&[
        ("release.yaml", &release_file("1.0.0", "")),
        ("manifests/0-namespace.yaml", NAMESPACE),
        ("manifests/config.yaml", &config("one")),
        (
            "manifests/old.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: only-in-one}\ndata: {a: b}\n",
        ),
        ("manifests/secrets.yaml", SECRETS),
        ("manifests/deployment.yaml", &deployment("controller:1")),
    ])
}

fn two() -> Release {
    release(&[
        ("release.yaml", &release_file("2.0.0", "1.0.0")),
        ("manifests/0-namespace.yaml", NAMESPACE),
        ("manifests/config.yaml", &config("two")),
        ("manifests/secrets.yaml", SECRETS),
        ("manifests/deployment.yaml", &deployment("controller:2")),
    ])
}

fn sandbox() -> Sandbox {
    let mut registry = RegistryServer::new();
    push(&mut registry, HOST, "controller", "1", &[("controller", "1.0")]);
    push(&mut registry, HOST, "controller", "2", &[("controller", "2.0")]);
    Sandbox::new(world(Flavour::Kubernetes, &["node-1", "node-2"]), registry)
}

async fn done(sandbox: &Sandbox, release: &Release) -> RunReport {
    match sandbox.upgrade(release, &Options::default(), 1).await {
        Some((Ok(report), _)) => report,
        Some((Err(error), events)) => {
            for event in events {
                println!("{event}");
            }
            panic!("{error}: {:#?}", error.report().findings)
        }
        None => panic!("cut off"),
    }
}

fn key(kind: &str, name: &str) -> ObjectKey {
    let group = if kind == "Deployment" { "apps" } else { "" };
    ObjectKey::namespaced(group, kind, "platform", name)
}

fn outcomes(report: &RunReport) -> BTreeMap<String, Outcome> {
    report.outcomes.iter().map(|o| (o.key.to_string(), o.outcome)).collect()
}

/// What two ways to the same release must agree on: every object but for what differs from run to run.
fn comparable(sandbox: &Sandbox) -> BTreeMap<ObjectKey, Value> {
    let all = sandbox.now(|w| w.objects().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>());
    all.into_iter()
        .filter(|(key, _)| {
            !matches!(
                key.kind.as_str(),
                "Event" | "Pod" | "ReplicaSet" | "Node" | "Lease" | "EndpointSlice" | "Endpoints"
            )
        })
        .filter(|(key, _)| key.namespace.as_deref() != Some(SYSTEM_NAMESPACE))
        .map(|(key, mut object)| {
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
                object["metadata"].as_object_mut().unwrap().remove(field);
            }
            object.as_object_mut().unwrap().remove("status");
            if let Some(annotations) =
                object["metadata"].get_mut("annotations").and_then(Value::as_object_mut)
            {
                annotations.remove("deployment.kubernetes.io/revision");
            }
            (key, object)
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_fresh_install_is_whole_and_a_second_run_writes_nothing() {
    let sandbox = sandbox();
    let report = done(&sandbox, &one()).await;
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(report.from, None);
    let outcomes = outcomes(&report);
    for name in
        ["ConfigMap platform/runtimes", "Secret platform/etcd-passwords", "Deployment platform/controller"]
    {
        assert_eq!(outcomes.get(name), Some(&Outcome::Created), "{outcomes:?}");
    }
    let deployment = sandbox.object(&key("Deployment", "controller")).unwrap();
    let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
    assert!(image.contains("@sha256:"), "{image}");
    assert_eq!(report.verified.len(), 2);
    assert!(report.verified.iter().all(|v| v.answer == "same"), "{:?}", report.verified);
    assert_eq!(report.prepulled.len(), 2, "{:?}", report.prepulled);
    assert_eq!(sandbox.take_writes().len(), report.writes);

    let again = done(&sandbox, &one()).await;
    assert_eq!(again.writes, 0, "{:?}", sandbox.take_writes());
    assert_eq!(again.from.as_deref(), Some("1.0.0"));
    assert!(again.outcomes.iter().all(|o| o.outcome == Outcome::Unchanged), "{:#?}", again.outcomes);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_pulled_is_refused_before_anything_is_written() {
    let sandbox = sandbox();
    let broken = release(&[
        ("release.yaml", &release_file("1.0.0", "")),
        ("manifests/a.yaml", &deployment("never-published:1")),
    ]);
    let (ended, _) = sandbox.upgrade(&broken, &Options::default(), 1).await.unwrap();
    let Err(RunError::Refused { why, report }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("never-published"), "{why}");
    assert_eq!(report.findings[0].code.as_str(), "SCN0202", "{:#?}", report.findings);
    assert_eq!(report.findings[0].place.file.as_ref().unwrap().path, "manifests/a.yaml");
    assert_eq!(report.writes, 0);
    assert!(sandbox.take_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_moves_what_is_the_releases_and_keeps_what_is_the_users() {
    let sandbox = sandbox();
    done(&sandbox, &one()).await;
    let password =
        |name: &str, field: &str| sandbox.object(&key("Secret", name)).unwrap()["data"][field].clone();
    let root = password("etcd-passwords", "root");
    let connection = password("model-serving-etcd", "etcd_connection");
    let (status, answer) = sandbox.act(
        Method::PATCH,
        "/api/v1/namespaces/platform/configmaps/runtimes?fieldManager=kubectl-edit",
        "application/merge-patch+json",
        &json!({"data": {"my-own": "mine"}}),
    );
    assert_eq!(status, 200, "{answer}");

    let report = done(&sandbox, &two()).await;
    assert_eq!(report.from.as_deref(), Some("1.0.0"));
    let data = sandbox.object(&key("ConfigMap", "runtimes")).unwrap()["data"].clone();
    assert_eq!(data, json!({"default-config": "two", "my-own": "mine"}));
    let of_config = report.outcomes.iter().find(|o| o.key.name == "runtimes").unwrap();
    assert_eq!(of_config.kept[0].field, ".data.my-own");
    assert_eq!(of_config.kept[0].owners, ["kubectl-edit"]);
    assert_eq!(outcomes(&report)["ConfigMap platform/only-in-one"], Outcome::Pruned);
    assert_eq!(sandbox.object(&key("ConfigMap", "only-in-one")), None);
    assert_eq!(password("etcd-passwords", "root"), root);
    assert_eq!(password("model-serving-etcd", "etcd_connection"), connection);
    assert!(report.verified.iter().all(|v| v.answer == "same"), "{:?}", report.verified);

    let fresh = self::sandbox();
    done(&fresh, &two()).await;
    let mut upgraded = comparable(&sandbox);
    upgraded.get_mut(&key("ConfigMap", "runtimes")).unwrap()["data"]
        .as_object_mut()
        .unwrap()
        .remove("my-own");
    assert_eq!(upgraded, comparable(&fresh));
}

#[tokio::test(start_paused = true)]
async fn a_changed_field_without_a_rule_stops_the_run_before_it_writes() {
    let sandbox = sandbox();
    done(&sandbox, &one()).await;
    sandbox.act(
        Method::PATCH,
        "/api/v1/namespaces/platform/configmaps/runtimes?fieldManager=kubectl-edit",
        "application/merge-patch+json",
        &json!({"data": {"default-config": "mine"}}),
    );
    sandbox.take_writes();
    let (ended, _) = sandbox.upgrade(&two(), &Options::default(), 1).await.unwrap();
    let Err(RunError::Refused { report, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(report.findings[0].code.as_str(), "SCN0801");
    assert_eq!(report.findings[0].place.field.as_deref(), Some(".data.default-config"));
    assert!(sandbox.take_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_plan_than_the_approved_one_is_refused() {
    let sandbox = sandbox();
    done(&sandbox, &one()).await;
    let planned = || async {
        let options = Options { dry_run: true, ..Options::default() };
        sandbox.upgrade(&two(), &options, 1).await.unwrap().0.unwrap().plan.unwrap().digest()
    };
    let approved = planned().await;
    assert_eq!(approved, planned().await, "the same plan twice");
    // What was to be updated would be created now.
    sandbox.act(
        Method::DELETE,
        "/api/v1/namespaces/platform/configmaps/runtimes",
        "application/json",
        &Value::Null,
    );
    sandbox.take_writes();
    let options = Options { approved: Some(approved), ..Options::default() };
    let (ended, _) = sandbox.upgrade(&two(), &options, 1).await.unwrap();
    let Err(RunError::Refused { why, .. }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("moved since the plan was shown"), "{why}");
    assert!(sandbox.take_writes().is_empty());
    let options = Options { approved: Some(planned().await), ..Options::default() };
    assert!(sandbox.upgrade(&two(), &options, 1).await.unwrap().0.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_asked_to_stop_gives_its_lease_back_and_is_continued_at_once() {
    let sandbox = sandbox();
    let (ask, stop) = tokio::sync::watch::channel(false);
    let environment = sandbox.environment(1);
    let options = Options { stop: Some(stop), holder: "cli/first".to_owned(), ..Options::default() };
    // Asked while the workload rolls out.
    let mut sink = |event: RunEvent| {
        if matches!(event.what, What::Waiting { .. }) {
            ask.send(true).unwrap();
        }
    };
    let ended = upgrade(&environment, &one(), &options, &mut sink).await;
    let Err(RunError::Stopped { why, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(why, "it was asked to");
    let found = status(&environment).await.unwrap();
    assert!(found.open.is_some() && found.holder.is_none() && found.last.is_none(), "{found:?}");
    let options = Options { holder: "cli/second".to_owned(), ..Options::default() };
    let started = tokio::time::Instant::now();
    let report = upgrade(&environment, &one(), &options, &mut |_| {}).await.unwrap();
    assert!(report.continued);
    assert!(started.elapsed() < std::time::Duration::from_secs(15), "nobody's lease is waited for");
}

/// Installs the two secrets by hand.
fn secrets(sandbox: &Sandbox, root: Option<&str>, connection: Option<&str>) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}});
    sandbox.act(Method::POST, "/api/v1/namespaces?fieldManager=oc", "application/json", &namespace);
    let made = [
        root.map(|p| ("etcd-passwords", json!({ "root": p }))),
        connection.map(|p| {
            let text = json!({"endpoints": "http://etcd:2379", "userid": "root", "password": p}).to_string();
            ("model-serving-etcd", json!({ "etcd_connection": text }))
        }),
    ];
    for (name, data) in made.into_iter().flatten() {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        let path = "/api/v1/namespaces/platform/secrets?fieldManager=oc";
        let (status, answer) = sandbox.act(Method::POST, path, "application/json", &secret);
        assert_eq!(status, 201, "{answer}");
    }
}

fn decoded(value: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn coupled_secrets_end_equal_whatever_half_of_them_existed() {
    for (root, connection) in [(Some("p"), Some("p")), (Some("p"), None), (None, Some("p")), (None, None)] {
        let sandbox = sandbox();
        secrets(&sandbox, root, connection);
        let report = done(&sandbox, &one()).await;
        let read =
            |name: &str, field: &str| decoded(&sandbox.object(&key("Secret", name)).unwrap()["data"][field]);
        let one = read("etcd-passwords", "root");
        let other: Value = serde_json::from_str(&read("model-serving-etcd", "etcd_connection")).unwrap();
        assert_eq!(other["password"], json!(one), "{root:?} {connection:?}");
        assert_eq!(other["endpoints"], "http://etcd:2379");
        if root.or(connection).is_some() {
            assert_eq!(one, "p");
        } else {
            assert_eq!(one.len(), 24);
        }
        let text = serde_json::to_string(&report).unwrap();
        assert!(one.len() < 2 || !text.contains(&one), "the password is in the report");
    }
}

#[tokio::test(start_paused = true)]
async fn coupled_secrets_that_disagree_are_refused_without_telling_them() {
    let sandbox = sandbox();
    secrets(&sandbox, Some("first-value"), Some("second-value"));
    sandbox.take_writes();
    let (ended, _) = sandbox.upgrade(&one(), &Options::default(), 1).await.unwrap();
    let Err(RunError::Refused { report, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(report.findings[0].code.as_str(), "SCN0802");
    let text = serde_json::to_string(&report).unwrap();
    assert!(!text.contains("first-value") && !text.contains("second-value"));
    assert!(sandbox.take_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_killed_at_any_write_is_continued_to_the_same_end() {
    let whole = sandbox();
    done(&whole, &one()).await;
    whole.take_writes();
    let writes = done(&whole, &two()).await.writes;
    let expected = comparable(&whole);
    assert!(writes > 5);
    for n in 1..=writes {
        for cut in [Cut::Before(n), Cut::After(n)] {
            let sandbox = sandbox();
            done(&sandbox, &one()).await;
            sandbox.cut(Some(cut));
            assert!(sandbox.upgrade(&two(), &Options::default(), 1).await.is_none(), "{cut:?}");
            sandbox.cut(None);
            done(&sandbox, &two()).await;
            assert_eq!(comparable(&sandbox), expected, "{cut:?}");
            let again = done(&sandbox, &two()).await;
            assert_eq!(again.writes, 0, "{cut:?}");
            let state = State::stored_in(&sandbox.environment(1).cluster).await.unwrap().unwrap();
            assert_eq!(state.version, "2.0.0");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_events() {
    let run = async || {
        let sandbox = sandbox();
        let (_, events) = sandbox.upgrade(&one(), &Options::default(), 3).await.unwrap();
        serde_json::to_string(&events).unwrap()
    };
    assert_eq!(run().await, run().await);
}

/// Creates a `ConfigMap` as a person does, before Scantling has ever been there.
fn created_by_hand(sandbox: &Sandbox, name: &str, data: &Value) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}});
    sandbox.act(
        Method::POST,
        "/api/v1/namespaces?fieldManager=kubectl-create",
        "application/json",
        &namespace,
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    let path = "/api/v1/namespaces/platform/configmaps?fieldManager=kubectl-create";
    let (status, answer) = sandbox.act(Method::POST, path, "application/json", &map);
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_a_person_created_is_not_overwritten_by_adoption() {
    let sandbox = sandbox();
    created_by_hand(&sandbox, "runtimes", &json!({"default-config": "old", "team": "ours"}));
    sandbox.take_writes();
    // Neither without knowing what was installed, nor when that did not have this value.
    for installed in [None, Some(one())] {
        let options = Options { installed, ..Options::default() };
        let (ended, _) = sandbox.upgrade(&two(), &options, 1).await.unwrap();
        let Err(RunError::Refused { why, report }) = ended else { panic!("{ended:?}") };
        assert!(why.contains("ConfigMap platform/runtimes") && why.contains("kubectl-create"), "{why}");
        assert_eq!(report.findings[0].place.field.as_deref(), Some(".data.default-config"));
        assert!(sandbox.take_writes().is_empty());
    }
    sandbox.act(
        Method::PATCH,
        "/api/v1/namespaces/platform/configmaps/runtimes?fieldManager=kubectl-edit",
        "application/merge-patch+json",
        &json!({"data": {"default-config": "two"}}),
    );
    let report = done(&sandbox, &two()).await;
    assert_eq!(outcomes(&report)["ConfigMap platform/runtimes"], Outcome::Adopted);
    let data = sandbox.object(&key("ConfigMap", "runtimes")).unwrap()["data"].clone();
    assert_eq!(data, json!({"default-config": "two", "team": "ours"}));
}

#[tokio::test(start_paused = true)]
async fn what_a_person_creates_where_a_killed_run_would_have_is_never_pruned() {
    let path = "/api/v1/namespaces/platform/configmaps/only-in-one";
    let whole = sandbox();
    done(&whole, &one()).await;
    let write = whole.take_all_writes().iter().position(|w| w.ends_with(path)).unwrap() + 1;
    let (ours, theirs) = (Cut::After(write), Cut::Before(write));
    for (cut, expected) in [(theirs, Outcome::KeptByUser), (ours, Outcome::Pruned)] {
        let sandbox = sandbox();
        sandbox.cut(Some(cut));
        assert!(sandbox.upgrade(&one(), &Options::default(), 1).await.is_none());
        sandbox.cut(None);
        if cut == theirs {
            created_by_hand(&sandbox, "only-in-one", &json!({"a": "b"}));
        }
        done(&sandbox, &one()).await;
        let report = done(&sandbox, &two()).await;
        assert_eq!(outcomes(&report)["ConfigMap platform/only-in-one"], expected);
        let there = sandbox.object(&key("ConfigMap", "only-in-one")).is_some();
        assert_eq!(there, expected == Outcome::KeptByUser);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_and_cannot_be_read_is_refused() {
    let journal = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/scantling-journal");
    for (half, field, value) in [("data", "format", "2"), ("binaryData", "creates", "AAAA")] {
        let sandbox = sandbox();
        done(&sandbox, &one()).await;
        let patch = json!({half: {field: value}});
        sandbox.act(Method::PATCH, &journal, "application/merge-patch+json", &patch);
        sandbox.take_writes();
        let (ended, _) = sandbox.upgrade(&two(), &Options::default(), 1).await.unwrap();
        let Err(RunError::Refused { why, .. }) = ended else { panic!("{ended:?}") };
        assert!(why.contains("scantling-journal"), "{why}");
        assert!(sandbox.take_writes().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_was_installed_by_other_means_must_be_followed_too() {
    let stranger = release(&[
        ("release.yaml", &release_file("0.9.0", "")),
        ("manifests/0-namespace.yaml", NAMESPACE),
        ("manifests/secrets.yaml", SECRETS),
        ("manifests/config.yaml", &config("one")),
    ]);
    let sandbox = sandbox();
    let options = Options { installed: Some(stranger), ..Options::default() };
    let (ended, _) = sandbox.upgrade(&two(), &options, 1).await.unwrap();
    let Err(RunError::Refused { why, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(why, "the cluster has platform 0.9.0, and 2.0.0 follows only 1.0.0");
    assert!(sandbox.take_writes().is_empty());
}
