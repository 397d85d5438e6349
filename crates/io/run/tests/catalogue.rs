//! The catalogue that a release lists: what becomes of it on either flavour, and of what a release no longer lists.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;

use common::{INTERNAL, Sandbox, push, release, world};
use http::Method;
use scantling_api::ObjectKey;
use scantling_image::Digest;
use scantling_registry_server::RegistryServer;
use scantling_release::Release;
use scantling_run::{Options, RunReport};
use scantling_sandbox::Flavour;
use serde_json::{Value, json};

const HOST: &str = "registry.test";
const NS: &str = "scantling";

/// A release whose stream `lab` has these tags: name, and what is said of it.
fn of(version: &str, follows: &[&str], tags: &[(&str, &str)]) -> Release {
    let tags: Vec<String> = tags
        .iter()
        .map(|(tag, more)| {
            format!(
                "    - {{name: \"{tag}\", image: \"{HOST}/lab:{tag}\", shows: [Python, numpy, pandas]{more}}}"
            )
        })
        .collect();
    let follows = json!(follows);
    let text = format!(
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: platform\nversion: \"{version}\"\nfollows: {follows}\n\
         namespace: {NS}\nmanifests: [manifests]\ncatalogue:\n  images:\n  - name: lab\n    title: Lab\n    about: numbers\n    tags:\n{}\n",
        tags.join("\n")
    );
    let config = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: text}}\ndata: {{version: \"{version}\"}}\n"
    );
    release(&[("release.yaml", &text), ("manifests/config.yaml", &config)])
}

/// A cluster, and what the registry's tags lead to.
fn sandbox(flavour: Flavour) -> (Sandbox, BTreeMap<&'static str, Digest>) {
    let mut registry = RegistryServer::new();
    let mut images = BTreeMap::new();
    for (tag, version) in [("1.2", "1.2.0"), ("2023.1", "1.23.5"), ("2023.2", "1.26.0")] {
        images.insert(tag, push(&mut registry, HOST, "lab", tag, &[("numpy", version)]));
    }
    let mut config = world(flavour, &["worker-1"]);
    config.internal_registry = (flavour == Flavour::OpenShift).then(|| INTERNAL.to_owned());
    (Sandbox::new(config, registry), images)
}

async fn done(sandbox: &Sandbox, release: &Release) -> RunReport {
    let (ended, events) = sandbox.upgrade(release, &Options::default(), 1).await.unwrap();
    ended.unwrap_or_else(|error| panic!("{error:?}\n{events:#?}"))
}

fn entry(sandbox: &Sandbox, tag: &str) -> Option<Value> {
    sandbox.object(&ObjectKey::namespaced("scantling.dev", "NotebookImage", NS, format!("lab-{tag}")))
}

const RECOMMENDED: &str = ", recommended: true";

fn one() -> Release {
    of("1", &[], &[("2023.1", RECOMMENDED), ("1.2", "")])
}

/// opendatahub-io/notebooks#373: after an upgrade two tags are the recommended one; a fresh installation is right.
#[tokio::test(start_paused = true)]
async fn one_tag_of_a_stream_is_recommended_after_an_upgrade_as_after_an_installation() {
    let two = of("2", &["1"], &[("2023.2", RECOMMENDED), ("2023.1", ""), ("1.2", ", outdated: true")]);
    let (upgraded, images) = sandbox(Flavour::OpenShift);
    done(&upgraded, &one()).await;
    done(&upgraded, &two).await;
    let (fresh, _) = sandbox(Flavour::OpenShift);
    done(&fresh, &two).await;
    for sandbox in [&upgraded, &fresh] {
        let stream =
            sandbox.object(&ObjectKey::namespaced("image.openshift.io", "ImageStream", NS, "lab")).unwrap();
        let tags = stream["spec"]["tags"].as_array().unwrap();
        let with = |annotation: &str| -> Vec<&str> {
            let marked = tags.iter().filter(|tag| tag["annotations"][annotation] == "true");
            marked.map(|tag| tag["name"].as_str().unwrap()).collect()
        };
        assert_eq!(with("opendatahub.io/workbench-image-recommended"), ["2023.2"]);
        assert_eq!(with("opendatahub.io/image-tag-outdated"), ["1.2"]);
        let newest = tags.iter().find(|tag| tag["name"] == "2023.2").unwrap();
        assert_eq!(newest["importPolicy"]["importMode"], "PreserveOriginal");
        assert_eq!(
            newest["annotations"]["opendatahub.io/notebook-python-dependencies"],
            r#"[{"name":"numpy","version":"1.26.0"}]"#
        );
        let recommended: Vec<bool> = ["2023.2", "2023.1", "1.2"]
            .map(|tag| entry(sandbox, tag).unwrap()["spec"]["recommended"] == true)
            .to_vec();
        assert_eq!(recommended, [true, false, false]);
        let spec = entry(sandbox, "2023.2").unwrap()["spec"].clone();
        assert!(spec["image"].as_str().unwrap().ends_with(&images["2023.2"].to_string()));
        assert_eq!(
            spec["packages"],
            json!([{"name": "Python", "version": "3.8"}, {"name": "numpy", "version": "1.26.0"}])
        );
        let aliases = spec["aliases"].as_array().unwrap();
        assert!(aliases.contains(&json!(format!("{INTERNAL}/{NS}/lab:2023.2"))), "{aliases:?}");
    }
    // pandas is to be shown, and no image has it: that is said, and nothing is made up.
    let report = done(&fresh, &two).await;
    assert!(report.findings.iter().any(|f| f.code.as_str() == "SCN0502"), "{:#?}", report.findings);
    assert_eq!(report.writes, 0, "{:?}", fresh.take_writes());
}

fn notebook(sandbox: &Sandbox, name: &str, selection: &str, started: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "anna"}});
    sandbox.act(Method::POST, "/api/v1/namespaces", "application/json", &namespace);
    let body = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
        "metadata": {"name": name, "annotations": {"notebooks.opendatahub.io/last-image-selection": selection}},
        "spec": {"template": {"spec": {"containers": [{"name": name, "image": "lab"}]}}},
    });
    let path = "/apis/kubeflow.org/v1/namespaces/anna/notebooks";
    let (status, answer) = sandbox.act(Method::POST, path, "application/json", &body);
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = sandbox.act(
        Method::PATCH,
        &format!("{path}/{name}/status"),
        "application/merge-patch+json",
        &json!({"status": {"startedImage": started}}),
    );
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_retired_image_stays_as_outdated_while_somebody_uses_it() {
    let two = of("2", &["1"], &[("2023.2", RECOMMENDED)]);
    let (sandbox, images) = sandbox(Flavour::Kubernetes);
    done(&sandbox, &one()).await;
    // One selects a tag that goes, another was started from it and has selected something else since.
    notebook(&sandbox, "selects", "lab:2023.1", "");
    notebook(&sandbox, "started", "lab:2023.2", &format!("{HOST}/lab@{}", images["2023.1"]));
    done(&sandbox, &two).await;
    let kept = entry(&sandbox, "2023.1").unwrap();
    assert_eq!((&kept["spec"]["outdated"], &kept["spec"]["recommended"]), (&json!(true), &Value::Null));
    assert!(kept["spec"]["image"].as_str().unwrap().ends_with(&images["2023.1"].to_string()));
    assert_eq!(
        kept["spec"]["packages"],
        json!([{"name": "Python", "version": "3.8"}, {"name": "numpy", "version": "1.23.5"}])
    );
    assert!(entry(&sandbox, "1.2").is_none(), "nobody uses it");
    sandbox.take_writes();
    let again = done(&sandbox, &two).await;
    assert_eq!(again.writes, 0, "{:?}", sandbox.take_writes());
    for name in ["selects", "started"] {
        let path = format!("/apis/kubeflow.org/v1/namespaces/anna/notebooks/{name}");
        sandbox.act(Method::DELETE, &path, "application/json", &json!({}));
    }
    done(&sandbox, &two).await;
    assert!(entry(&sandbox, "2023.1").is_none(), "the last user has gone");
}

#[tokio::test(start_paused = true)]
async fn a_retired_image_that_left_its_registry_is_told() {
    let two = of("2", &["1"], &[("2023.2", RECOMMENDED)]);
    let (sandbox, images) = sandbox(Flavour::Kubernetes);
    done(&sandbox, &one()).await;
    notebook(&sandbox, "selects", "lab:2023.1", "");
    sandbox.now(|world| world.registry().remove(HOST, "lab", &images["2023.1"].to_string()));
    let report = done(&sandbox, &two).await;
    let found = report.findings.iter().find(|f| f.code.as_str() == "SCN0812").unwrap();
    assert!(found.message.contains("lab:2023.1"), "{}", found.message);
    assert!(entry(&sandbox, "2023.1").is_some());
}
