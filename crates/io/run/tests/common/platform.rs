//! A small platform in three versions, and what can be done with it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    missing_docs
)]

use std::collections::BTreeMap;

use http::Method;
use scantling_api::ObjectKey;
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_release::{Release, Settings, Tree};
use scantling_run::{Bundle, Options, RunError, RunReport, SYSTEM_NAMESPACE, rollback, uninstall};
use scantling_sandbox::Flavour;
use serde_json::Value;

use super::{Sandbox, push, world};

pub const HOST: &str = "registry.example.com";

pub fn tree(version: &str, follows: &str, extra: &[(&str, &str)]) -> Tree {
    let file = format!(
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: platform\nversion: {version}\nfollows: [{follows}]\nnamespace: platform\nmanifests: [manifests]\noperator: {{kind: Deployment, name: zz-operator}}\ngenerated:\n- {{kind: Secret, name: password, key: root, length: 24}}\n"
    );
    let workload = |name: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: main, image: '{HOST}/controller:{version}'}}\n"
        )
    };
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {{kind: Thing, plural: things}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{f{}: {{type: string}}}}}}}}}}}}\n",
        version.replace('.', "")
    );
    let mut files: Vec<(String, String)> = vec![
        ("release.yaml".into(), file),
        ("manifests/crd.yaml".into(), definition),
        ("manifests/secret.yaml".into(), "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\n".into()),
        (
            "manifests/config.yaml".into(),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config}}\ndata: {{version: '{version}'}}\n"
            ),
        ),
        (
            "manifests/renamed.yaml".into(),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: only-in-{version}}}\ndata: {{a: b}}\n"
            ),
        ),
        ("manifests/a.yaml".into(), workload("a-controller")),
        ("manifests/z.yaml".into(), workload("zz-operator")),
    ];
    files.extend(extra.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect()
}

pub fn release(tree: &Tree) -> Release {
    Release::read(tree, &Settings::default()).unwrap_or_else(|e| panic!("{e}"))
}

pub fn one() -> Tree {
    tree("1.0.0", "", &[])
}

pub fn two() -> Tree {
    tree("2.0.0", "1.0.0", &[])
}

pub fn sandbox() -> Sandbox {
    let mut registry = RegistryServer::new();
    for version in ["1.0.0", "2.0.0", "3.0.0"] {
        push(&mut registry, HOST, "controller", version, &[("controller", version)]);
    }
    Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry)
}

pub fn options(tree: &Tree) -> Options {
    Options {
        bundle: Some(Bundle::of(tree.clone(), Settings::default(), None)),
        holder: "cli/test".to_owned(),
        ..Options::default()
    }
}

pub fn well(ended: Result<RunReport, RunError>) -> RunReport {
    match ended {
        Ok(report) => report,
        Err(error) => {
            for event in &error.report().events {
                println!("{event}");
            }
            panic!("{error}: {:#?}", error.report().findings)
        }
    }
}

pub async fn brought(sandbox: &Sandbox, tree: &Tree) -> RunReport {
    let (ended, _) = sandbox.upgrade(&release(tree), &options(tree), 1).await.expect("cut off");
    well(ended)
}

pub async fn gone_back(sandbox: &Sandbox, to: Option<&str>) -> Option<Result<RunReport, RunError>> {
    let environment = sandbox.environment(1);
    let options = options(&one());
    sandbox.until_killed(rollback(&environment, to, &options, &mut |_| {})).await
}

pub async fn taken_away(sandbox: &Sandbox) -> Option<Result<RunReport, RunError>> {
    let environment = sandbox.environment(1);
    sandbox.until_killed(uninstall(&environment, &options(&one()), &mut |_| {})).await
}

pub fn key(kind: &str, name: &str) -> ObjectKey {
    let group = if kind == "Deployment" { "apps" } else { "" };
    ObjectKey::namespaced(group, kind, "platform", name)
}

pub fn outcomes(report: &RunReport) -> BTreeMap<String, Outcome> {
    report.outcomes.iter().map(|o| (o.key.to_string(), o.outcome)).collect()
}

/// Every object but for what differs from run to run, and what the cluster makes of itself.
pub fn comparable(sandbox: &Sandbox) -> BTreeMap<ObjectKey, Value> {
    let all = sandbox.now(|w| w.objects().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>());
    let noise = ["Event", "Pod", "ReplicaSet", "Node", "Lease", "EndpointSlice", "Endpoints"];
    all.into_iter()
        .filter(|(key, _)| !noise.contains(&key.kind.as_str()))
        .filter(|(key, _)| key.namespace.as_deref() != Some(SYSTEM_NAMESPACE))
        .map(|(key, mut object)| {
            let metadata = object["metadata"].as_object_mut().unwrap();
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
                metadata.remove(field);
            }
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove("deployment.kubernetes.io/revision");
            }
            object.as_object_mut().unwrap().remove("status");
            (key, object)
        })
        .collect()
}

pub fn of_people(sandbox: &Sandbox, path: &str, object: &Value) {
    let (status, answer) =
        sandbox.act(Method::POST, &format!("{path}?fieldManager=kubectl-create"), "application/json", object);
    assert_eq!(status, 201, "{answer}");
}

/// What is there when the release has been gone back to: as before, but for definitions.
pub fn as_before(mut expected: BTreeMap<ObjectKey, Value>, sandbox: &Sandbox) {
    let definition =
        ObjectKey::cluster("apiextensions.k8s.io", "CustomResourceDefinition", "things.example.com");
    let mut found = comparable(sandbox);
    let kept = found.remove(&definition).unwrap();
    assert!(kept.to_string().contains("f200"), "the newer definition stays");
    expected.remove(&definition);
    assert_eq!(found, expected);
}
