//! The driver with the notebooks' reconcilers: killed at every write, twice at once, with objects changed underneath, and at rest.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{Cut, Sandbox, push, world};
use http::Method;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{DriveEvent, DriveSettings};
use scantling_image::Digest;
use scantling_reconcile::{DEFINITIONS, Known, RECONCILERS};
use scantling_registry_server::RegistryServer;
use scantling_sandbox::Flavour;
use serde_json::{Value, json};
use tokio::sync::watch;

const HOST: &str = "registry.test";
const NS: &str = "scantling";
const MERGE: &str = "application/merge-patch+json";

/// A cluster with the kinds, two images of which the first is offered, and a namespace for people.
struct Stage {
    sandbox: Sandbox,
    images: BTreeMap<&'static str, Digest>,
}

impl Stage {
    async fn new() -> Self {
        let mut registry = RegistryServer::new();
        let mut images = BTreeMap::new();
        for (tag, version) in [("1", "1.0"), ("2", "2.0")] {
            images.insert(tag, push(&mut registry, HOST, "lab", tag, &[("numpy", version)]));
        }
        let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["worker-1"]), registry);
        let stage = Self { sandbox, images };
        for definition in DEFINITIONS {
            stage.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition.to_value());
        }
        for name in [NS, "anna"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            stage.post("/api/v1/namespaces", &namespace);
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        stage
            .post(&format!("/apis/scantling.dev/v1alpha1/namespaces/{NS}/notebookimages"), &stage.entry("1"));
        stage
    }

    fn entry(&self, tag: &str) -> Value {
        json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": "lab", "namespace": NS},
            "spec": {
                "selection": "lab:current", "title": "Lab", "image": format!("{HOST}/lab@{}", self.images[tag]),
                "packages": [{"name": "numpy", "version": format!("{tag}.0")}], "digests": [self.images[tag]], "release": tag,
            },
        })
    }

    fn post(&self, path: &str, body: &Value) {
        let (status, answer) = self.sandbox.act(Method::POST, path, "application/json", body);
        assert_eq!(status, 201, "{answer}");
    }

    fn patch(&self, path: &str, body: &Value) {
        let (status, answer) = self.sandbox.act(Method::PATCH, path, MERGE, body);
        assert_eq!(status, 200, "{answer}");
    }

    fn delete(&self, path: &str) {
        let (status, answer) = self.sandbox.act(Method::DELETE, path, "application/json", &json!({}));
        assert!(status < 300, "{answer}");
    }

    fn offer(&self, tag: &str) {
        let path = format!("/apis/scantling.dev/v1alpha1/namespaces/{NS}/notebookimages/lab");
        self.patch(&path, &json!({"spec": self.entry(tag)["spec"]}));
    }

    fn make(&self, name: &str) {
        let notebook = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
            "metadata": {"name": name, "annotations": {
                "notebooks.opendatahub.io/last-image-selection": "lab:current", "scantling.dev/volume-size": "1Gi",
            }},
            "spec": {"template": {"spec": {"containers": [{"name": name, "image": "lab"}]}}},
        });
        self.post("/apis/kubeflow.org/v1/namespaces/anna/notebooks", &notebook);
    }

    fn annotate(&self, name: &str, annotation: &str, value: &Value) {
        let path = format!("/apis/kubeflow.org/v1/namespaces/anna/notebooks/{name}");
        self.patch(&path, &json!({"metadata": {"annotations": {annotation: value}}}));
    }

    /// Runs a driver for some time, or until it is cut off.
    async fn drive(&self, seed: u64, time: Duration) -> Vec<DriveEvent> {
        let environment = self.sandbox.environment(seed);
        let settings = DriveSettings {
            reconcilers: RECONCILERS,
            namespace: NS,
            known: watch::channel(Some(Arc::new(Known::default()))).1,
            look: &|_| {},
            clock: environment.clock,
        };
        let mut events = Vec::new();
        let mut tell = |event| events.push(event);
        let driven = environment.cluster.drive(&settings, &mut tell, tokio::time::sleep(time));
        tokio::select! {
            biased;
            () = self.sandbox.killed() => {}
            ended = driven => ended.unwrap(),
        }
        events
    }

    fn get(&self, group: &str, kind: &str, name: &str) -> Option<Value> {
        self.sandbox.object(&ObjectKey::namespaced(group, kind, "anna", name))
    }

    fn runs(&self, name: &str) -> Option<String> {
        let pod = self.get("", "Pod", &format!("{name}-0"))?;
        let status = pod.pointer("/status/containerStatuses/0")?;
        status.pointer("/state/running")?;
        Some(object::text(status, "/imageID").rsplit('@').next()?.to_owned())
    }

    fn is_whole(&self, name: &str, tag: &str) {
        assert_eq!(
            self.runs(name),
            Some(self.images[tag].to_string()),
            "{:#?}",
            self.get("", "Pod", &format!("{name}-0"))
        );
        for (group, kind, object) in [
            ("", "Service", name.to_owned()),
            ("networking.k8s.io", "NetworkPolicy", name.to_owned()),
            ("", "PersistentVolumeClaim", format!("{name}-volume")),
        ] {
            assert!(self.get(group, kind, &object).is_some(), "{kind}");
        }
        let notebook = self.get("kubeflow.org", "Notebook", name).unwrap();
        assert_eq!(notebook["status"]["running"]["digest"], self.images[tag].to_string());
    }
}

/// Long enough for a pod to be made, or to end and be made again.
const LONG: Duration = Duration::from_secs(45);
/// Long enough for what must not happen to happen.
const SHORT: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn notebooks_converge_whatever_write_the_driver_is_killed_at() {
    let stage = Stage::new().await;
    stage.sandbox.take_writes();
    stage.make("whole");
    stage.drive(1, LONG).await;
    stage.is_whole("whole", "1");
    let writes = stage.sandbox.take_writes().len();
    assert!(writes >= 5, "{writes}");
    // Every fourth write: each takes seconds, and what matters is which object it is about.
    for n in (1..=writes).step_by(4) {
        {
            // Whether the server still saw the write takes turns.
            let cut = if n % 8 == 1 { Cut::Before(n) } else { Cut::After(n) };
            let stage = Stage::new().await;
            stage.make("nb");
            stage.sandbox.cut(Some(cut));
            stage.drive(1, LONG).await;
            stage.sandbox.cut(None);
            stage.drive(2, LONG).await;
            stage.is_whole("nb", "1");
            // And a restart, killed likewise.
            stage.offer("2");
            stage.drive(3, SHORT).await;
            stage.is_whole("nb", "1");
            stage.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
            let before =
                stage.get("apps", "StatefulSet", "nb").unwrap()["metadata"]["generation"].as_u64().unwrap();
            stage.sandbox.cut(Some(cut));
            stage.drive(4, LONG).await;
            stage.sandbox.cut(None);
            stage.drive(5, LONG).await;
            stage.is_whole("nb", "2");
            let after =
                stage.get("apps", "StatefulSet", "nb").unwrap()["metadata"]["generation"].as_u64().unwrap();
            assert_eq!(after, before + 1, "restarted once, {cut:?}");
            stage.sandbox.take_writes();
            stage.drive(6, SHORT).await;
            assert_eq!(stage.sandbox.take_writes(), Vec::<String>::new(), "{cut:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_leaders_for_a_moment_make_one_notebook_and_one_restart() {
    let stage = Stage::new().await;
    stage.make("nb");
    tokio::join!(stage.drive(1, LONG), stage.drive(2, LONG));
    stage.is_whole("nb", "1");
    let before = stage.get("apps", "StatefulSet", "nb").unwrap()["metadata"]["generation"].as_u64().unwrap();
    stage.offer("2");
    let owner = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stage.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
    };
    tokio::join!(stage.drive(3, LONG), stage.drive(4, LONG), owner);
    stage.is_whole("nb", "2");
    let after = stage.get("apps", "StatefulSet", "nb").unwrap()["metadata"]["generation"].as_u64().unwrap();
    assert_eq!(after, before + 1, "one restart was asked for");
    stage.sandbox.take_writes();
    tokio::join!(stage.drive(5, SHORT), stage.drive(6, SHORT));
    assert_eq!(stage.sandbox.take_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_or_edited_underneath_is_put_right_and_what_runs_keeps_its_image() {
    let stage = Stage::new().await;
    stage.make("nb");
    stage.drive(1, LONG).await;
    stage.offer("2");
    let people = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        stage.delete("/api/v1/namespaces/anna/services/nb");
        stage.delete("/apis/networking.k8s.io/v1/namespaces/anna/networkpolicies/nb");
        tokio::time::sleep(Duration::from_secs(6)).await;
        stage.patch(
            "/api/v1/namespaces/anna/services/nb",
            &json!({"spec": {"selector": {"statefulset": "other"}}}),
        );
        tokio::time::sleep(Duration::from_secs(6)).await;
        stage.delete("/api/v1/namespaces/anna/pods/nb-0");
        tokio::time::sleep(Duration::from_secs(40)).await;
        stage.delete("/apis/apps/v1/namespaces/anna/statefulsets/nb");
        tokio::time::sleep(Duration::from_secs(40)).await;
    };
    tokio::join!(stage.drive(2, Duration::from_secs(110)), people);
    stage.is_whole("nb", "1");
    assert_eq!(stage.get("", "Service", "nb").unwrap()["spec"]["selector"], json!({"statefulset": "nb"}));
    // Its owner deletes it: everything goes but the volume, and a notebook of the same name finds that.
    let claim = stage.get("", "PersistentVolumeClaim", "nb-volume").unwrap();
    stage.delete("/apis/kubeflow.org/v1/namespaces/anna/notebooks/nb");
    stage.drive(3, LONG).await;
    for (group, kind, name) in [("apps", "StatefulSet", "nb"), ("", "Service", "nb"), ("", "Pod", "nb-0")] {
        assert!(stage.get(group, kind, name).is_none(), "{kind}");
    }
    stage.make("nb");
    stage.drive(4, LONG).await;
    stage.is_whole("nb", "2");
    let found = stage.get("", "PersistentVolumeClaim", "nb-volume").unwrap();
    assert_eq!(found["metadata"]["uid"], claim["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn notebooks_at_rest_cost_no_writes() {
    let stage = Stage::new().await;
    for n in 0..12 {
        stage.make(&format!("nb-{n:03}"));
    }
    stage.drive(1, Duration::from_mins(1)).await;
    for n in 0..12 {
        stage.is_whole(&format!("nb-{n:03}"), "1");
    }
    stage.sandbox.take_writes();
    stage.drive(2, Duration::from_secs(90)).await;
    assert_eq!(stage.sandbox.take_all_writes(), Vec::<String>::new());
}
