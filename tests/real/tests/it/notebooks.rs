//! A notebook on a real node, through its life: made, drained, updated, stopped, started, deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use scantling_cluster::DriveSettings;
use scantling_image::{Digest, Reference};
use scantling_real_tests::{File, RealCluster, image, pusher};
use scantling_reconcile::{DEFINITIONS, Known, RECONCILERS};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::common::{block_on, environment, get, kubectl, writes_since};

/// Longest wait for something that takes seconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// Pushes an image whose server answers where a notebook's readiness is asked for.
fn push(to: &str, text: &str) -> Digest {
    let files = BTreeMap::from([(
        "/www/notebook/people/nb/api".to_owned(),
        File::text(format!("{{\"version\": \"{text}\"}}\n")),
    )]);
    let built = image(&files, &["/bin/busybox", "httpd", "-f", "-p", "8888", "-h", "/www"]).unwrap();
    let to = Reference::parse(to).unwrap();
    block_on(async { pusher().unwrap().push(&built, &to).await.unwrap().digest })
}

fn entry(registry: &str, digest: &Digest, version: &str) -> Value {
    json!({
        "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
        "metadata": {"name": "lab", "namespace": "scantling"},
        "spec": {
            "selection": "lab:current", "title": "Lab", "image": format!("{registry}/lab@{digest}"), "digests": [digest],
            "packages": [{"name": "numpy", "version": version}], "release": version,
        },
    })
}

/// A volume on the node, and the claim that a person makes for a notebook.
fn volume() -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "nb"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/run/nb", "type": "DirectoryOrCreate"},
            "claimRef": {"namespace": "people", "name": "nb"},
        }},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "nb", "namespace": "people"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}},
        }},
    ]})
}

fn notebook() -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
        "metadata": {"name": "nb", "namespace": "people",
            "annotations": {"notebooks.opendatahub.io/last-image-selection": "lab:current"}},
        "spec": {"template": {"spec": {
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "nb"}}],
            "containers": [{"name": "nb", "image": "lab", "volumeMounts": [{"name": "home", "mountPath": "/home/jovyan"}]}],
        }}},
    })
}

/// The notebook as kubectl sees it, once it is as it should be.
async fn wait(cluster: &RealCluster, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let found = get(cluster, &["-n", "people", "notebook", "nb"]);
        if is(&found) {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what}: {found:#}");
        sleep(Duration::from_millis(500)).await;
    }
}

fn condition<'a>(notebook: &'a Value, kind: &str, field: &str) -> &'a str {
    let conditions = notebook["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.and_then(|condition| condition[field].as_str()).unwrap_or_default()
}

/// Is it ready, and does its pod run this?
fn runs(notebook: &Value, digest: &Digest) -> bool {
    notebook["status"]["readyReplicas"] == 1 && notebook["status"]["running"]["digest"] == digest.to_string()
}

async fn life(cluster: &RealCluster, old: &Digest, new: &Digest) {
    let annotate = |annotation: &str| {
        cluster.run(&["-n", "people", "annotate", "notebook", "nb", annotation]).unwrap();
    };
    kubectl(cluster, "create", &notebook());
    let found =
        wait(cluster, "its volume is missing", |it| condition(it, "Startable", "reason") == "VolumeMissing")
            .await;
    assert!(condition(&found, "Startable", "message").contains("PersistentVolumeClaim nb"));
    kubectl(cluster, "create", &volume());
    wait(cluster, "it runs", |it| runs(it, old)).await;

    // The next release: the selection stands for something else, and what it stood for is kept for those who use it.
    let mut before = entry(cluster.registry(), old, "1.0");
    before["metadata"]["name"] = json!("lab-before");
    before["spec"]["selection"] = json!("lab:before");
    before["spec"]["outdated"] = json!(true);
    kubectl(cluster, "create", &before);
    kubectl(cluster, "apply", &entry(cluster.registry(), new, "2.0"));
    let found = wait(cluster, "it is marked", |it| condition(it, "UpdatePending", "status") == "True").await;
    assert_eq!(condition(&found, "UpdatePending", "message"), "a restart brings numpy 1.0 → 2.0");
    assert!(runs(&found, old), "it runs on");

    // The pod goes as in a drain, and comes back with what it had.
    cluster.run(&["-n", "people", "delete", "pod", "nb-0"]).unwrap();
    sleep(Duration::from_secs(3)).await;
    let found = wait(cluster, "it is back", |it| runs(it, old)).await;
    assert_eq!(condition(&found, "UpdatePending", "status"), "True");

    annotate("notebooks.opendatahub.io/notebook-restart=true");
    let found = wait(cluster, "it has the update", |it| runs(it, new)).await;
    assert_eq!(condition(&found, "UpdatePending", "status"), "False");

    annotate("kubeflow-resource-stopped=now");
    wait(cluster, "it has stopped", |it| {
        it["status"]["readyReplicas"] == 0 && it["status"]["running"].is_null()
    })
    .await;
    annotate("kubeflow-resource-stopped-");
    wait(cluster, "it has started", |it| runs(it, new)).await;

    sleep(Duration::from_secs(2)).await;
    let seen = cluster.requests().unwrap().len();
    sleep(Duration::from_secs(5)).await;
    let writes: Vec<String> =
        writes_since(cluster, seen).into_iter().filter(|write| write.contains("/people/")).collect();
    let ours: Vec<&String> =
        writes.iter().filter(|write| !write.contains("kube-") && !write.contains("kubelet")).collect();
    assert!(ours.is_empty(), "at rest: {ours:?}");

    cluster.run(&["-n", "people", "delete", "notebook", "nb"]).unwrap();
    let started = Instant::now();
    loop {
        let left = get(cluster, &["-n", "people", "statefulset,service,networkpolicy"]);
        let left = left["items"].as_array().unwrap().len();
        if left == 0 {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{left} objects are left");
        sleep(Duration::from_millis(500)).await;
    }
    let claims = get(cluster, &["-n", "people", "pvc"]);
    assert_eq!(claims["items"][0]["status"]["phase"], "Bound", "the volume is the person's");
}

#[test]
fn a_notebook_lives_on_a_real_node_and_moves_when_its_owner_says_so() {
    let Some(cluster) = RealCluster::up(1).unwrap() else { return };
    let old = push(&format!("{}/lab:1", cluster.registry()), "1.0");
    let new = push(&format!("{}/lab:2", cluster.registry()), "2.0");
    for definition in DEFINITIONS {
        kubectl(&cluster, "create", &definition.to_value());
    }
    for name in ["scantling", "people"] {
        cluster.run(&["create", "namespace", name]).unwrap();
    }
    cluster.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).unwrap();
    kubectl(&cluster, "create", &entry(cluster.registry(), &old, "1.0"));
    block_on(async {
        let environment = environment(&cluster).await;
        let settings = DriveSettings {
            reconcilers: RECONCILERS,
            namespace: "scantling",
            known: watch::channel(Some(Arc::new(Known::default()))).1,
            look: &|_| {},
            clock: environment.clock,
        };
        let story = life(&cluster, &old, &new);
        environment.cluster.drive(&settings, &mut |event| println!("{event:?}"), story).await.unwrap();
    });
}
