//! Public bug reports about installing, upgrading and what nodes run, replayed on the sandbox. Each test names its report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod images;
mod objects;
mod order;

use common::Sandbox;
use common::platform::{HOST, of_people};
use scantling_release::Tree;
use serde_json::{Value, json};

/// A release of its manifests and nothing else.
fn lab(version: &str, follows: &str, more: &str, files: &[(&str, &str)]) -> Tree {
    let file = format!(
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: lab\nversion: {version}\nfollows: [{follows}]\nnamespace: platform\nmanifests: [manifests]\n{more}"
    );
    let mut tree = Tree::from([("release.yaml".to_owned(), file.into_bytes())]);
    tree.extend(
        files.iter().map(|(path, text)| (format!("manifests/{path}"), (*text).to_owned().into_bytes())),
    );
    tree
}

/// A Deployment of one container.
fn deployment(name: &str, image: &str, policy: &str) -> String {
    let policy = if policy.is_empty() { String::new() } else { format!(", imagePullPolicy: {policy}") };
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers: [{{name: main, image: '{HOST}/{image}'{policy}}}]\n"
    )
}

/// The same as a person makes it.
fn deployment_of_people(name: &str, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "platform"},
        "spec": {"selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers":
                [{"name": "main", "image": format!("{HOST}/{image}"), "imagePullPolicy": "IfNotPresent"}]}}}})
}

/// A definition of a kind of namespaced objects without types.
fn definition(kind: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.lab.example.com}}\nspec:\n  group: lab.example.com\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n"
    )
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/platform/deployments";

/// The namespace of the platform, made by somebody.
fn namespace(sandbox: &Sandbox) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}});
    of_people(sandbox, "/api/v1/namespaces", &object);
}

/// The image of a Deployment's only container.
fn image_of(deployment: &Value) -> String {
    deployment.pointer("/spec/template/spec/containers/0/image").unwrap().as_str().unwrap().to_owned()
}

/// Pods that stay and whose name begins like this, with the `imageID` of their first container.
fn running(sandbox: &Sandbox, prefix: &str) -> Vec<(String, String)> {
    sandbox.now(|world| {
        let pods = world.objects().filter(|(key, _)| key.kind == "Pod" && key.name.starts_with(prefix));
        let pods = pods.filter(|(_, pod)| pod.pointer("/metadata/deletionTimestamp").is_none());
        pods.map(|(key, pod)| {
            let id = pod.pointer("/status/containerStatuses/0/imageID").and_then(Value::as_str);
            (key.name.clone(), id.unwrap_or_default().to_owned())
        })
        .collect()
    })
}
