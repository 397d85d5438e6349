//! Runs on the OpenShift flavour: imports, builds upon each other, the catalogue, notebooks, adoption.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{Cut, INTERNAL, Sandbox, description, push, release, world};
use http::Method;
use scantling_api::ObjectKey;
use scantling_cluster::DriveSettings;
use scantling_image::Digest;
use scantling_plan::Outcome;
use scantling_reconcile::{Known, RECONCILERS};
use scantling_registry_server::RegistryServer;
use scantling_release::Release;
use scantling_run::{Options, RunError, RunReport, Stage, State, What};
use scantling_sandbox::{BuildRecipe, Flavour};
use serde_json::{Value, json};
use tokio::sync::watch;

const HOST: &str = "quay.example.com";
const NS: &str = "applications";

struct Content<'a> {
    version: &'a str,
    follows: &'a str,
    minimal: &'a str,
    git_ref: &'a str,
    tensorflow: &'a str,
    extra: &'a str,
}

const ONE: Content<'_> = Content {
    version: "1.3.0",
    follows: "",
    minimal: "1",
    git_ref: "nb-4",
    tensorflow: "2.4.1",
    extra: "old",
};
const TWO: Content<'_> = Content {
    version: "1.5.0",
    follows: "1.3.0",
    minimal: "2",
    git_ref: "nb-5",
    tensorflow: "2.7",
    extra: "new",
};

fn files(content: &Content<'_>) -> Vec<(String, String)> {
    let Content { version, follows, minimal, git_ref, tensorflow, extra } = content;
    let stream = |name: &str, tag: &str, from: &str, claim: (&str, &str)| {
        format!(
            r#"apiVersion: image.openshift.io/v1
kind: ImageStream
metadata:
  name: {name}
  labels: {{opendatahub.io/notebook-image: "true"}}
  annotations: {{opendatahub.io/notebook-image-name: {name}}}
spec:
  lookupPolicy: {{local: true}}
  tags:
  - name: {tag}
{from}    annotations:
      opendatahub.io/notebook-python-dependencies: '[{{"name":"{}","version":"{}"}}]'
"#,
            claim.0, claim.1
        )
    };
    let import = format!(
        "    from: {{kind: DockerImage, name: \"{HOST}/minimal:{minimal}\"}}\n    referencePolicy: {{type: Local}}\n"
    );
    vec![
        (
            "release.yaml".to_owned(),
            format!(
                r"apiVersion: scantling.dev/v1alpha1
kind: Release
name: platform
version: {version}
follows: [{follows}]
namespace: {NS}
manifests: [manifests]
catalogue: {{imageStreamLabel: opendatahub.io/notebook-image=true}}
"
            ),
        ),
        (
            "manifests/0.yaml".to_owned(),
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NS}}}\n"),
        ),
        (
            "manifests/config.yaml".to_owned(),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: spawner}}\ndata: {{{extra}: x, text: {version}}}\n"
            ),
        ),
        ("manifests/minimal.yaml".to_owned(), stream("minimal", "py3.8", &import, ("notebook", "6.4"))),
        (
            "manifests/tensorflow.yaml".to_owned(),
            stream("tensorflow", "py3.8-cuda", "", ("TensorFlow", tensorflow)),
        ),
        (
            "manifests/build.yaml".to_owned(),
            format!(
                r#"apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {{name: tensorflow}}
spec:
  source: {{type: Git, git: {{uri: "https://git.example.com/tensorflow", ref: {git_ref}}}}}
  strategy:
    type: Source
    sourceStrategy: {{from: {{kind: ImageStreamTag, name: "minimal:py3.8"}}}}
  output: {{to: {{kind: ImageStreamTag, name: "tensorflow:py3.8-cuda"}}}}
  triggers:
  - type: ImageChange
    imageChange: {{}}
"#
            ),
        ),
    ]
}

fn of(content: &Content<'_>) -> Release {
    let files = files(content);
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    release(&borrowed)
}

fn sandbox() -> Sandbox {
    let mut registry = RegistryServer::new();
    push(&mut registry, HOST, "minimal", "1", &[("notebook", "6.4.4"), ("jupyterlab", "3.0.16")]);
    push(&mut registry, HOST, "minimal", "2", &[("notebook", "6.4.6"), ("jupyterlab", "3.2.4")]);
    let mut config = world(Flavour::OpenShift, &["worker-1", "worker-2"]);
    config.internal_registry = Some(INTERNAL.to_owned());
    for (git_ref, version) in [("nb-4", "2.4.1"), ("nb-5", "2.7.0")] {
        config.builds.push(BuildRecipe {
            uri: "https://git.example.com/tensorflow".to_owned(),
            ref_: git_ref.to_owned(),
            context_dir: String::new(),
            minutes: 30,
            description: description(&[("tensorflow", version)]),
        });
    }
    Sandbox::new(config, registry)
}

async fn done(sandbox: &Sandbox, release: &Release, options: &Options) -> RunReport {
    let (ended, events) = sandbox.upgrade(release, options, 1).await.unwrap();
    match ended {
        Ok(report) => report,
        Err(error) => {
            for event in events {
                println!("{event}");
            }
            panic!("{error}: {:#?}", error.report().findings)
        }
    }
}

fn entry(report: &RunReport, name: &str) -> (String, Vec<(String, Option<String>, bool)>) {
    let entry = report.catalogue.iter().find(|e| e.name == name).unwrap();
    let claims = entry.claims.iter().map(|c| (c.claimed.clone(), c.found.clone(), c.holds)).collect();
    (entry.image.clone(), claims)
}

fn digest_of(image: &str) -> Digest {
    Digest::parse(image.rsplit_once('@').unwrap().1).unwrap()
}

#[tokio::test(start_paused = true)]
async fn images_are_built_recorded_checked_prepulled_and_then_published() {
    let sandbox = sandbox();
    let one = done(&sandbox, &of(&ONE), &Options::default()).await;
    assert!(one.findings.is_empty(), "{:#?}", one.findings);
    let (old, claims) = entry(&one, "tensorflow-py3.8-cuda");
    assert_eq!(claims, [("2.4.1".to_owned(), Some("2.4.1".to_owned()), true)]);
    assert!(old.starts_with(&format!("{INTERNAL}/{NS}/tensorflow@sha256:")), "{old}");
    let (minimal, _) = entry(&one, "minimal-py3.8");
    assert!(minimal.starts_with(&format!("{INTERNAL}/{NS}/minimal@sha256:")), "{minimal}");
    sandbox.take_writes();
    let again = done(&sandbox, &of(&ONE), &Options::default()).await;
    assert_eq!(again.writes, 0, "{:?}", sandbox.take_writes());
    assert_eq!(entry(&again, "tensorflow-py3.8-cuda"), entry(&one, "tensorflow-py3.8-cuda"));

    let two = done(&sandbox, &of(&TWO), &Options::default()).await;
    assert!(two.findings.is_empty(), "{:#?}", two.findings);
    let (new, claims) = entry(&two, "tensorflow-py3.8-cuda");
    assert_eq!(claims, [("2.7".to_owned(), Some("2.7.0".to_owned()), true)]);
    assert_ne!(old, new);
    // Every node has the new image before users can choose it.
    for node in ["worker-1", "worker-2"] {
        let cached = sandbox.now(|w| w.node_images(node));
        assert!(
            cached.iter().any(|i| i.digests.iter().any(|d| d.contains(digest_of(&new).as_str()))),
            "{node}"
        );
    }
    let pulled = two.events.iter().rposition(|e| matches!(&e.what, What::Pulled { .. })).unwrap();
    let published = two.events.iter().position(|e| matches!(&e.what, What::Published { .. })).unwrap();
    assert!(pulled < published);
    let key = ObjectKey::namespaced("scantling.dev", "NotebookImage", NS, "tensorflow-py3.8-cuda");
    let object = sandbox.object(&key).unwrap();
    assert_eq!(object["spec"]["image"], json!(new));
    assert_eq!(object["spec"]["packages"], json!([{"name": "TensorFlow", "version": "2.7.0"}]));
    // What the earlier image holds is known, too: pods of it may still run.
    let state = State::stored_in(&sandbox.environment(1).cluster).await.unwrap().unwrap();
    assert!(state.known().get(&digest_of(&old)).is_some());
    let data =
        sandbox.object(&ObjectKey::namespaced("", "ConfigMap", NS, "spawner")).unwrap()["data"].clone();
    assert_eq!(data, json!({"new": "x", "text": "1.5.0"}));
    sandbox.take_writes();
    let again = done(&sandbox, &of(&TWO), &Options::default()).await;
    assert_eq!(again.writes, 0, "{:?}", sandbox.take_writes());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_bytes_do_not_keep_is_a_finding() {
    let sandbox = sandbox();
    let lying = Content { tensorflow: "2.7", ..ONE };
    let report = done(&sandbox, &of(&lying), &Options::default()).await;
    let (_, claims) = entry(&report, "tensorflow-py3.8-cuda");
    assert_eq!(claims, [("2.7".to_owned(), Some("2.4.1".to_owned()), false)]);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|f| (f.code.as_str(), f.place.file.as_ref().unwrap().path.clone()))
        .collect();
    assert_eq!(found, [("SCN0501", "manifests/tensorflow.yaml".to_owned())]);
}

/// Installs a release as a vendor's script does: every object posted as it is.
fn installed_by_hand(sandbox: &Sandbox, release: &Release) {
    let plurals = BTreeMap::from([
        ("Namespace", "/api/v1/namespaces".to_owned()),
        ("ConfigMap", format!("/api/v1/namespaces/{NS}/configmaps")),
        ("ImageStream", format!("/apis/image.openshift.io/v1/namespaces/{NS}/imagestreams")),
        ("BuildConfig", format!("/apis/build.openshift.io/v1/namespaces/{NS}/buildconfigs")),
    ]);
    for object in &release.objects {
        let path = format!("{}?fieldManager=oc", plurals[object.key.kind.as_str()]);
        let (status, answer) = sandbox.act(Method::POST, &path, "application/json", &object.value);
        assert_eq!(status, 201, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_was_installed_by_other_means_is_adopted() {
    let sandbox = sandbox();
    let one = of(&ONE);
    installed_by_hand(&sandbox, &one);
    tokio::time::sleep(Duration::from_hours(1)).await;
    let (status, answer) = sandbox.act(
        Method::PATCH,
        &format!("/api/v1/namespaces/{NS}/configmaps/spawner?fieldManager=kubectl-edit"),
        "application/merge-patch+json",
        &json!({"data": {"mine": "m"}}),
    );
    assert_eq!(status, 200, "{answer}");
    let options = Options { installed: Some(one), ..Options::default() };
    let report = done(&sandbox, &of(&TWO), &options).await;
    let adopted = report.outcomes.iter().filter(|o| o.outcome == Outcome::Adopted).count();
    assert_eq!(adopted, 5, "{:#?}", report.outcomes);
    let data =
        sandbox.object(&ObjectKey::namespaced("", "ConfigMap", NS, "spawner")).unwrap()["data"].clone();
    assert_eq!(data, json!({"new": "x", "text": "1.5.0", "mine": "m"}));
    let (new, claims) = entry(&report, "tensorflow-py3.8-cuda");
    assert_eq!(claims, [("2.7".to_owned(), Some("2.7.0".to_owned()), true)]);
    let state = State::stored_in(&sandbox.environment(1).cluster).await.unwrap().unwrap();
    let history = state.known_images.iter().filter(|k| !k.identity.contains(&digest_of(&new))).count();
    assert!(history > 0, "what users still run is not known");
    sandbox.take_writes();
    let again = done(&sandbox, &of(&TWO), &options).await;
    assert_eq!(again.writes, 0, "{:?}", sandbox.take_writes());
}

#[tokio::test(start_paused = true)]
async fn the_driver_makes_notebooks_run_by_digest() {
    let sandbox = sandbox();
    done(&sandbox, &of(&ONE), &Options::default()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "users"}});
    sandbox.act(Method::POST, "/api/v1/namespaces", "application/json", &namespace);
    let environment = sandbox.environment(2);
    let images = State::stored_in(&environment.cluster).await.unwrap().unwrap().known();
    let settings = DriveSettings {
        reconcilers: RECONCILERS,
        namespace: NS,
        known: watch::channel(Some(Arc::new(Known { images, ..Known::default() }))).1,
        look: &|_| {},
        clock: environment.clock,
    };
    let user = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let notebook = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
            "metadata": {"name": "lab", "namespace": "users",
                "annotations": {"notebooks.opendatahub.io/last-image-selection": "tensorflow:py3.8-cuda"}},
            "spec": {"template": {"spec": {"containers": [{"name": "lab",
                "image": format!("{INTERNAL}/{NS}/tensorflow:py3.8-cuda")}]}}},
        });
        let path = "/apis/kubeflow.org/v1/namespaces/users/notebooks";
        let (status, answer) = sandbox.act(Method::POST, path, "application/json", &notebook);
        assert_eq!(status, 201, "{answer}");
        tokio::time::sleep(Duration::from_mins(10)).await;
    };
    let mut events = Vec::new();
    environment.cluster.drive(&settings, &mut |event| events.push(event), user).await.unwrap();
    let pod = sandbox.object(&ObjectKey::namespaced("", "Pod", "users", "lab-0"));
    let pod = pod.unwrap_or_else(|| panic!("{events:#?}"));
    let image = pod["spec"]["containers"][0]["image"].as_str().unwrap();
    assert!(image.contains("@sha256:"), "{image}");
    let running: &Value = &pod["status"]["containerStatuses"][0];
    assert!(running["imageID"].as_str().unwrap().contains("sha256:"), "{running}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_build_stops_the_run_and_a_mended_one_lets_it_go_on() {
    let sandbox = sandbox();
    done(&sandbox, &of(&ONE), &Options::default()).await;
    // No recipe of the world is for this source: the build fails there.
    let broken = Content { git_ref: "nb-unknown", ..TWO };
    let (ended, _) = sandbox.upgrade(&of(&broken), &Options::default(), 1).await.unwrap();
    let Err(RunError::Stopped { stage, report, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(stage, Stage::Images);
    assert_eq!(report.findings[0].code.as_str(), "SCN0806", "{:#?}", report.findings);
    // Users are still offered what they were offered before.
    let key = ObjectKey::namespaced("scantling.dev", "NotebookImage", NS, "tensorflow-py3.8-cuda");
    assert_eq!(sandbox.object(&key).unwrap()["spec"]["packages"][0]["version"], "2.4.1");
    let report = done(&sandbox, &of(&TWO), &Options::default()).await;
    assert!(report.continued);
    assert_eq!(sandbox.object(&key).unwrap()["spec"]["packages"][0]["version"], "2.7.0");
}

#[tokio::test(start_paused = true)]
async fn a_run_with_builds_that_is_killed_is_continued_and_builds_once() {
    let builds = |sandbox: &Sandbox| {
        sandbox.now(|w| {
            w.objects().filter(|(k, _)| k.kind == "Build").map(|(k, _)| k.name.clone()).collect::<Vec<_>>()
        })
    };
    let whole = sandbox();
    done(&whole, &of(&ONE), &Options::default()).await;
    let writes = done(&whole, &of(&TWO), &Options::default()).await.writes;
    let catalogue = |sandbox: &Sandbox| {
        sandbox.now(|w| {
            let images = w.objects().filter(|(k, _)| k.kind == "NotebookImage");
            images.map(|(k, v)| (k.clone(), v["spec"].clone())).collect::<Vec<_>>()
        })
    };
    // Every third write, each time the other way, keeps the test short; the other flavour is cut at every write.
    for n in (1..=writes).step_by(3) {
        let cut = if n % 2 == 0 { Cut::Before(n) } else { Cut::After(n) };
        let sandbox = sandbox();
        done(&sandbox, &of(&ONE), &Options::default()).await;
        sandbox.cut(Some(cut));
        assert!(sandbox.upgrade(&of(&TWO), &Options::default(), 1).await.is_none(), "{cut:?}");
        sandbox.cut(None);
        done(&sandbox, &of(&TWO), &Options::default()).await;
        assert_eq!(builds(&sandbox), builds(&whole), "{cut:?}");
        assert_eq!(catalogue(&sandbox), catalogue(&whole), "{cut:?}");
        assert_eq!(done(&sandbox, &of(&TWO), &Options::default()).await.writes, 0, "{cut:?}");
    }
}

/// The release with the build upon a tag that follows another one, and without a trigger.
fn upon_an_alias(content: &Content<'_>) -> Release {
    let mut files = files(content);
    for (path, text) in &mut files {
        if path == "manifests/minimal.yaml" {
            text.push_str("  - {name: latest, from: {kind: ImageStreamTag, name: 'py3.8'}}\n");
        }
        if path == "manifests/build.yaml" {
            *text = text.replace("minimal:py3.8", "minimal:latest");
            *text = text.split("  triggers:").next().unwrap().to_owned();
        }
    }
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    release(&borrowed)
}

fn started(sandbox: &Sandbox) -> usize {
    sandbox.take_writes().iter().filter(|write| write.ends_with("/instantiate")).count()
}

#[tokio::test(start_paused = true)]
async fn a_build_whose_base_has_moved_is_built_anew_once_although_its_source_has_not() {
    let sandbox = sandbox();
    done(&sandbox, &upon_an_alias(&ONE), &Options::default()).await;
    assert_eq!(started(&sandbox), 1);
    let two = Content { git_ref: ONE.git_ref, tensorflow: ONE.tensorflow, ..TWO };
    let report = done(&sandbox, &upon_an_alias(&two), &Options::default()).await;
    assert_eq!(started(&sandbox), 1);
    let (image, _) = entry(&report, "tensorflow-py3.8-cuda");
    assert_eq!(digest_of(&image), newest(&sandbox, "tensorflow", "py3.8-cuda"));
    let built_on = sandbox.now(|w| {
        let builds = w.objects().filter(|(key, _)| key.kind == "Build");
        builds
            .map(|(_, build)| build["spec"]["strategy"]["sourceStrategy"]["from"]["name"].clone())
            .collect::<Vec<_>>()
    });
    let base = newest(&sandbox, "minimal", "latest");
    assert!(built_on.iter().any(|name| name.as_str().unwrap().contains(base.hex())), "{built_on:?}");
}

#[tokio::test(start_paused = true)]
async fn a_base_that_moves_while_a_build_runs_starts_one_more_and_not_one_at_each_look() {
    let sandbox = sandbox();
    let environment = sandbox.environment(1);
    let release = upon_an_alias(&ONE);
    let inner = sandbox.clone();
    let mut moved = false;
    let ended = scantling_run::upgrade(&environment, &release, &Options::default(), &mut |event| {
        if !moved && matches!(event.what, What::BuildStarted { .. }) {
            moved = true;
            let tags = json!({"spec": {"tags": [
                {"name": "py3.8", "from": {"kind": "DockerImage", "name": format!("{HOST}/minimal:2")}},
                {"name": "latest", "from": {"kind": "ImageStreamTag", "name": "py3.8"}},
            ]}});
            let path =
                format!("/apis/image.openshift.io/v1/namespaces/{NS}/imagestreams/minimal?fieldManager=oc");
            let (status, answer) = inner.act(Method::PATCH, &path, "application/merge-patch+json", &tags);
            assert_eq!(status, 200, "{answer}");
        }
    })
    .await;
    assert!(moved && ended.is_ok(), "{ended:?}");
    assert!(started(&sandbox) <= 2);
}

fn newest(sandbox: &Sandbox, stream: &str, tag: &str) -> Digest {
    let key = ObjectKey::namespaced("image.openshift.io", "ImageStream", NS, stream);
    let stream = sandbox.object(&key).unwrap();
    let tags = stream["status"]["tags"].as_array().unwrap();
    let found = tags.iter().find(|found| found["tag"] == tag).unwrap();
    Digest::parse(found["items"][0]["image"].as_str().unwrap()).unwrap()
}
