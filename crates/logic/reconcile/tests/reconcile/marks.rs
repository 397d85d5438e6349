//! Marks on pods that the vendor's spawner made.

use crate::small_cluster::*;
use scantling_observed::PackageVersion;
use scantling_reconcile::{Action, difference};
use serde_json::{Value, json};

const OLD: &[(&str, &str)] = &[("tensorflow", "2.4.1"), ("numpy", "1.19.2")];
const NEW: &[(&str, &str)] = &[("tensorflow", "2.7.0"), ("numpy", "1.19.2")];
const MARK: &str = "scantling.dev/update-pending";

/// What is done to a cluster before it is looked at.
type Change<'a> = &'a dyn Fn(&mut Cluster);

/// A pod of the vendor's spawner, which runs a digest under a tag.
fn spawned(cluster: &mut Cluster, written: &str, image_id: &str) {
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "jupyterhub-nb-anna", "namespace": "rhods-notebooks"},
        "spec": {"nodeName": "worker-a", "containers": [{"name": "notebook", "image": written, "imagePullPolicy": "IfNotPresent"}]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "notebook", "ready": true, "imageID": image_id, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }]},
    }));
}

fn pod(cluster: &Cluster) -> &Value {
    cluster.get("", "Pod", "rhods-notebooks", "jupyterhub-nb-anna").unwrap()
}

fn id(name: &str) -> String {
    format!(
        "image-registry.openshift-image-registry.svc:5000/redhat-ods-applications/tensorflow@{}",
        digest(name)
    )
}

#[test]
fn a_pod_is_marked_when_its_name_means_something_else_now() {
    let short = |name: &str| digest(name).short();
    let unknown = format!("{} → {} (the running image is not known)", short("other"), short("new"));
    let digests = format!("{} → {}", short("same packages"), short("new"));
    let cases: [(&str, &str, String, Option<&str>); 9] = [
        ("older content under the tag", ALIAS, id("old"), Some("tensorflow 2.4.1 → 2.7.0")),
        ("the wanted manifest", ALIAS, id("new"), None),
        ("the wanted configuration", ALIAS, digest("new config").to_string(), None),
        ("another manifest of the wanted configuration", ALIAS, id("copy"), None),
        ("a digest that nothing knows", ALIAS, id("other"), Some(&unknown)),
        ("other bytes with the same packages", ALIAS, id("same packages"), Some(&digests)),
        ("a name of nothing in the catalogue", "quay.io/else/where:1", id("old"), None),
        ("no image ID yet", ALIAS, String::new(), None),
        ("an image ID that does not parse", ALIAS, "nonsense".to_owned(), None),
    ];
    for (what, written, image_id, mark) in cases {
        let mut cluster = Cluster::new();
        cluster.images.insert(known("old", OLD));
        cluster.images.insert(known("same packages", NEW));
        let mut copy = known("new", NEW);
        copy.identity.manifests.insert(digest("copy"));
        cluster.images.insert(copy);
        cluster.catalogue("new", NEW);
        spawned(&mut cluster, written, &image_id);
        let before = pod(&cluster).clone();
        for action in cluster.wanted() {
            assert!(matches!(action, Action::Annotate { .. }), "{what}: {action:?}");
        }
        cluster.settle();
        assert_eq!(annotations(pod(&cluster)).get(MARK).copied(), mark, "{what}");
        assert_eq!(pod(&cluster)["spec"], before["spec"], "{what}");
        assert_eq!(cluster.settle(), 0, "{what}");
    }
}

#[test]
fn a_mark_goes_when_it_is_no_longer_true() {
    let changes: [(&str, Change<'_>); 4] = [
        ("the catalogue goes back", &|cluster| cluster.catalogue("old", OLD)),
        ("the catalogue goes", &|cluster| {
            cluster.remove("scantling.dev", "NotebookImage", PLATFORM, "tensorflow-py3.8-cuda-11.0.3");
        }),
        ("the container ends", &|cluster| {
            cluster.edit("", "Pod", "rhods-notebooks", "jupyterhub-nb-anna", &json!({"status": {"containerStatuses": [{
                "name": "notebook", "imageID": id("old"), "state": {"terminated": {"reason": "Completed", "exitCode": 0}},
            }]}}));
        }),
        ("the image ID changes", &|cluster| {
            cluster.edit(
                "",
                "Pod",
                "rhods-notebooks",
                "jupyterhub-nb-anna",
                &json!({"status": {"containerStatuses": [{
                    "name": "notebook", "imageID": id("new"), "state": {"running": {"startedAt": "x"}},
                }]}}),
            );
        }),
    ];
    for (what, change) in changes {
        let mut cluster = Cluster::new();
        cluster.images.insert(known("old", OLD));
        cluster.catalogue("new", NEW);
        spawned(&mut cluster, ALIAS, &id("old"));
        cluster.settle();
        assert!(annotations(pod(&cluster)).contains_key(MARK), "{what}");
        change(&mut cluster);
        cluster.settle();
        assert!(!annotations(pod(&cluster)).contains_key(MARK), "{what}");
    }
}

#[test]
fn a_pod_that_is_being_deleted_is_left_alone() {
    let mut cluster = Cluster::new();
    cluster.catalogue("new", NEW);
    spawned(&mut cluster, ALIAS, &id("old"));
    cluster.edit(
        "",
        "Pod",
        "rhods-notebooks",
        "jupyterhub-nb-anna",
        &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    assert!(cluster.wanted().is_empty());
}

#[test]
fn the_words_of_a_difference() {
    let list = |versions: &[(&str, &str)]| -> Vec<PackageVersion> { packages(versions) };
    for (running, desired, want) in [
        (list(OLD), list(NEW), Some("tensorflow 2.4.1 → 2.7.0")),
        (list(OLD), list(OLD), None),
        (list(OLD), list(&[("numpy", "1.19.2")]), None),
        (list(&[]), list(&[("numpy", "1")]), Some("numpy 1 (new)")),
        (list(&[("scikit_learn", "1")]), list(&[("Scikit-Learn", "1")]), None),
        (list(&[("a", "1"), ("a", "2")]), list(&[("a", "3")]), Some("a 1 and 2 → 3")),
        (list(&[("a", "1"), ("a", "2")]), list(&[("a", "2")]), None),
    ] {
        assert_eq!(difference(&running, &desired).as_deref(), want);
    }
    let many: Vec<PackageVersion> =
        (0..30).map(|i| PackageVersion { name: format!("p{i:02}"), version: "1".to_owned() }).collect();
    assert!(difference(&[], &many).unwrap().ends_with("p19 1 (new), and 10 more"));
}
