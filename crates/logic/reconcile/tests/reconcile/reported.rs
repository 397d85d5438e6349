//! Reports of other platforms, replayed.

use crate::small_cluster::*;
use scantling_reconcile::Catalogue;
use serde_json::{Value, json};

fn entry(selection: &str, content: &str, versions: &[(&str, &str)]) -> Value {
    json!({
        "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
        "metadata": {"name": selection.replace(':', "-"), "namespace": PLATFORM},
        "spec": {"selection": selection, "title": "Data Science", "image": image(content), "packages": packages(versions)},
    })
}

fn says(cluster: &Cluster, notebook: &str, kind: &str) -> (String, String) {
    let (status, reason, _) = condition(cluster, notebook, kind);
    (status, reason)
}

/// opendatahub-io/odh-dashboard#4988: a notebook whose tag has moved was said to use a deleted image.
#[test]
fn a_moved_tag_a_removed_tag_and_a_removed_stream_are_told_apart() {
    let mut cluster = Cluster::new();
    cluster.images.insert(known("old", &[("jupyterlab", "3.5")]));
    for (selection, content) in [("nb:2025.1", "old"), ("nb:2023.1", "older"), ("gone:1", "gone")] {
        cluster.put(entry(selection, content, &[("jupyterlab", "3.5")]));
    }
    for (name, selection) in [("a", "nb:2025.1"), ("c", "nb:2023.1"), ("d", "gone:1")] {
        cluster.notebook(name, Some(selection));
    }
    cluster.settle();
    // The release after: the tag has other content, another tag and a whole stream are gone.
    cluster.put(entry("nb:2025.1", "new", &[("jupyterlab", "3.6")]));
    cluster.remove("scantling.dev", "NotebookImage", PLATFORM, "nb-2023.1");
    cluster.remove("scantling.dev", "NotebookImage", PLATFORM, "gone-1");
    cluster.notebook("b", Some("nb:2025.1"));
    cluster.settle();
    let word = |word: &str| word.to_owned();
    assert_eq!(says(&cluster, "a", "ImageResolved"), (word("True"), word("")));
    assert_eq!(
        says(&cluster, "a", "UpdatePending"),
        (word("True"), word("NewImage")),
        "outdated, and not deleted"
    );
    assert_eq!(says(&cluster, "b", "UpdatePending"), (word("False"), word("")), "current");
    assert_eq!(says(&cluster, "c", "ImageResolved"), (word("False"), word("UnknownTag")));
    assert_eq!(says(&cluster, "d", "ImageResolved"), (word("False"), word("UnknownStream")));
    for name in ["a", "b", "c", "d"] {
        assert!(cluster.get("", "Pod", "anna", &format!("{name}-0")).is_some(), "{name} runs on");
    }
}

/// opendatahub-io/opendatahub-community#61: the same label before and after an upgrade, and other content.
#[test]
fn the_same_label_with_other_content_says_what_differs() {
    let mut cluster = Cluster::new();
    let (before, after) =
        ([("jupyterlab", "3.5"), ("torch", "1.13")], [("jupyterlab", "3.6"), ("torch", "1.13")]);
    cluster.images.insert(known("before", &before));
    cluster.put(entry("science:2023.1", "before", &before));
    cluster.notebook("nb", Some("science:2023.1"));
    cluster.settle();
    cluster.put(entry("science:2023.1", "after", &after));
    cluster.settle();
    let (_, _, message) = condition(&cluster, "nb", "UpdatePending");
    assert_eq!(message, "a restart brings jupyterlab 3.5 → 3.6");
    let status = &cluster.get("kubeflow.org", "Notebook", "anna", "nb").unwrap()["status"];
    assert_eq!(status["claimed"]["selection"], "science:2023.1");
    assert_eq!(status["desired"]["image"], image("after"));
    assert_eq!(status["running"]["digest"], digest("before").to_string());
    assert_eq!(status["running"]["packages"][0], json!({"name": "jupyterlab", "version": "3.5"}));
}

/// opendatahub-io/kubeflow#145: a new controller changes the templates of all notebooks, and all restart.
#[test]
fn another_controllers_idea_of_a_notebook_restarts_nobody() {
    let mut cluster = Cluster::new();
    cluster.put(entry("nb:1", "old", &[]));
    for name in ["u1", "u2"] {
        cluster.notebook(name, Some("nb:1"));
    }
    cluster.settle();
    cluster.annotate("u2", "kubeflow-resource-stopped", &json!("now"));
    cluster.settle();
    // As an earlier program made them: without the probe and the group that this one gives, and with nothing of its own marks.
    for name in ["u1", "u2"] {
        let mut set = cluster.get("apps", "StatefulSet", "anna", name).unwrap().clone();
        set["metadata"]["annotations"] = json!({});
        set["metadata"]["managedFields"] = Value::Null;
        let spec = &mut set["spec"]["template"]["spec"];
        spec["securityContext"] = Value::Null;
        spec["containers"][0]["readinessProbe"] = Value::Null;
        let hash = scantling_image::Digest::of(set["spec"]["template"].to_string().as_bytes()).hex()[..10]
            .to_owned();
        cluster.put(set);
        if name == "u1" {
            let label = json!({"metadata": {"labels": {"controller-revision-hash": hash}}});
            cluster.edit("", "Pod", "anna", "u1-0", &label);
        }
    }
    let uid = cluster.get("", "Pod", "anna", "u1-0").unwrap()["metadata"]["uid"].clone();
    cluster.settle();
    assert_eq!(cluster.get("", "Pod", "anna", "u1-0").unwrap()["metadata"]["uid"], uid, "u1 was restarted");
    assert_eq!(says(&cluster, "u1", "UpdatePending"), ("True".to_owned(), "NotebookChanged".to_owned()));
    assert_eq!(says(&cluster, "u2", "UpdatePending").0, "False");
    let set = cluster.get("apps", "StatefulSet", "anna", "u2").unwrap();
    assert!(
        set["spec"]["template"]["spec"]["containers"][0]["readinessProbe"].is_object(),
        "nobody works in u2"
    );
}

/// opendatahub-io-contrib/jupyterhub-odh#112: one image without anything in it, and nobody saw any.
#[test]
fn an_entry_that_cannot_be_used_hides_no_other() {
    let mut cluster = Cluster::new();
    cluster.put(entry("ok:1", "old", &[]));
    for (name, spec) in [
        ("empty", json!({})),
        ("nothing", Value::Null),
        ("tag", json!({"selection": "test:1", "image": "x:1"})),
    ] {
        cluster.put(json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": name, "namespace": PLATFORM}, "spec": spec,
        }));
    }
    let catalogue = Catalogue::of(&cluster.observed);
    let listed: Vec<&str> = catalogue.entries().iter().map(|entry| entry.spec.selection.as_str()).collect();
    assert_eq!(listed, ["ok:1"]);
    cluster.notebook("nb", Some("ok:1"));
    cluster.notebook("other", Some("test:1"));
    cluster.settle();
    assert!(cluster.get("", "Pod", "anna", "nb-0").is_some());
    assert_eq!(says(&cluster, "other", "ImageResolved"), ("False".to_owned(), "BrokenEntry".to_owned()));
}

/// Nothing is written for a platform of this size that has come to rest.
#[test]
fn two_hundred_notebooks_at_rest_cost_no_writes() {
    let mut cluster = Cluster::new();
    cluster.put(entry("nb:1", "old", &[("numpy", "1")]));
    for n in 0..200 {
        cluster.notebook(&format!("nb-{n:03}"), Some("nb:1"));
    }
    cluster.settle();
    for minute in 1..5 {
        cluster.now = 60 * minute;
        assert_eq!(cluster.wanted(), Vec::new());
    }
    let running = (0..200).filter(|n| cluster.get("", "Pod", "anna", &format!("nb-{n:03}-0")).is_some());
    assert_eq!(running.count(), 200);
}
