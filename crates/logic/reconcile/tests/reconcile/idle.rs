//! Idle notebooks, and who uses which image.

use crate::small_cluster::*;
use serde_json::{Value, json};

const STOPPED: &str = "kubeflow-resource-stopped";
const ACTIVITY: &str = "notebooks.kubeflow.org/last-activity";
const V: &[(&str, &str)] = &[("numpy", "1")];

/// A cluster with one running notebook, whose container started at midnight; the time is some seconds later.
fn running(policy: &Value) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.images.insert(known("old", V));
    cluster.images.insert(known("new", &[("numpy", "2")]));
    cluster.put(json!({
        "apiVersion": "scantling.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "platform"},
        "spec": {"notebooks": policy},
    }));
    cluster.catalogue("old", V);
    cluster.notebook("nb", Some(SELECTION));
    cluster.settle();
    cluster
}

fn notebook(cluster: &Cluster) -> &Value {
    cluster.get("kubeflow.org", "Notebook", "anna", "nb").unwrap()
}

#[test]
fn an_idle_notebook_is_stopped_and_only_an_idle_one() {
    let on = json!({"culling": {"enabled": true, "idleAfter": "10m"}});
    let off = json!({"culling": {"enabled": false, "idleAfter": "10m"}});
    let never = json!(null);
    let minute = 60;
    let unreadable = json!({"culling": {"enabled": true, "idleAfter": "soon"}});
    let (evening, midnight) = (Some("2025-12-31T20:00:00Z"), Some("2026-01-01T00:00:00Z"));
    let five_past = Some("2026-01-01T00:05:00.25Z");
    for (what, policy, answered, written, minutes, stops) in [
        ("idle since it started", &on, evening, evening, 11, true),
        ("started lately, whatever was before", &on, evening, evening, 9, false),
        ("active in between", &on, five_past, midnight, 11, false),
        ("idle since then", &on, five_past, None, 16, true),
        ("a client has seen activity", &on, midnight, five_past, 11, false),
        ("what was written does not parse", &on, midnight, Some("yesterday"), 11, true),
        ("it does not answer", &on, None, evening, 55, false),
        ("culling is off", &off, midnight, midnight, 55, false),
        ("no policy", &never, midnight, midnight, 55, false),
        ("a policy that nobody can read", &unreadable, midnight, midnight, 55, false),
    ] {
        let mut cluster = running(policy);
        if let Some(answered) = answered {
            cluster.answers("nb", answered);
        }
        if let Some(written) = written {
            cluster.annotate("nb", ACTIVITY, &json!(written));
        }
        cluster.now = minutes * minute;
        cluster.settle();
        let stopped = annotations(notebook(&cluster)).contains_key(STOPPED);
        assert_eq!(stopped, stops, "{what}");
        assert_eq!(cluster.get("", "Pod", "anna", "nb-0").is_none(), stops, "{what}");
        assert_eq!(
            cluster.events.iter().filter(|(reason, _)| reason == "Culled").count(),
            usize::from(stops)
        );
        if stops {
            assert!(!annotations(notebook(&cluster)).contains_key(ACTIVITY), "{what}");
            // It can be started again, and is not stopped at once.
            cluster.annotate("nb", STOPPED, &Value::Null);
            cluster.settle();
            assert!(cluster.get("", "Pod", "anna", "nb-0").is_some(), "{what}");
        }
    }
}

#[test]
fn an_idle_notebook_is_restarted_once_when_an_update_waits_and_the_policy_says_so() {
    for (policy, updated, restarts) in [
        (json!({"restart": "idle", "culling": {"idleAfter": "10m"}}), true, 1),
        (json!({"restart": "idle", "culling": {"idleAfter": "10m"}}), false, 0),
        (json!({"restart": "owner", "culling": {"idleAfter": "10m"}}), true, 0),
    ] {
        let mut cluster = running(&policy);
        cluster.answers("nb", "2026-01-01T00:01:00Z");
        if updated {
            cluster.catalogue("new", &[("numpy", "2")]);
        }
        cluster.now = 5 * 60;
        cluster.settle();
        assert!(cluster.restarts.is_empty(), "not idle yet");
        cluster.now = 12 * 60;
        cluster.settle();
        cluster.now = 30 * 60;
        cluster.settle();
        assert_eq!(cluster.restarts.len(), restarts, "{policy}");
    }
}

#[test]
fn a_restart_of_an_idle_notebook_is_asked_for_once_whatever_is_seen_late() {
    let mut cluster = running(&json!({"restart": "idle", "culling": {"idleAfter": "10m"}}));
    cluster.answers("nb", "2026-01-01T00:01:00Z");
    cluster.catalogue("new", &[("numpy", "2")]);
    cluster.settle();
    cluster.now = 12 * 60;
    let asks = |cluster: &Cluster| {
        let asking = |action: &scantling_reconcile::Action| {
            matches!(action, scantling_reconcile::Action::Annotate { annotations, .. }
                if annotations.contains_key("scantling.dev/restart-requested-at"))
        };
        cluster.wanted().into_iter().find(asking)
    };
    // Nothing but the request is written: the pod is still the old one, as a late watch shows it.
    let first = asks(&cluster).unwrap();
    cluster.write(&first);
    cluster.now += 60;
    assert_eq!(asks(&cluster), None);
}

#[test]
fn images_say_how_many_notebooks_need_them() {
    let in_use = |cluster: &Cluster, name: &str| {
        cluster.get("scantling.dev", "NotebookImage", PLATFORM, name).unwrap()["status"]["inUse"]
            .as_u64()
            .unwrap_or_default()
    };
    let mut cluster = Cluster::new();
    cluster.catalogue("old", V);
    cluster.notebook("a", Some(SELECTION));
    cluster.notebook("b", Some(SELECTION));
    cluster.notebook("c", None);
    cluster.settle();
    assert_eq!(in_use(&cluster, "tensorflow-py3.8-cuda-11.0.3"), 2);
    // The selection moves; the image that runs is kept under another name, and counts as long as somebody would come back with it.
    cluster.put(json!({
        "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
        "metadata": {"name": "kept", "namespace": PLATFORM},
        "spec": {"selection": "tensorflow:before", "title": "TensorFlow", "image": image("old"), "outdated": true},
    }));
    cluster.catalogue("new", &[("numpy", "2")]);
    cluster.settle();
    assert_eq!((in_use(&cluster, "tensorflow-py3.8-cuda-11.0.3"), in_use(&cluster, "kept")), (2, 2));
    // Drained: it still counts.
    cluster.remove("", "Pod", "anna", "a-0");
    cluster.remove("kubeflow.org", "Notebook", "anna", "b");
    cluster.remove("apps", "StatefulSet", "anna", "b");
    cluster.remove("", "Pod", "anna", "b-0");
    cluster.settle();
    assert_eq!((in_use(&cluster, "tensorflow-py3.8-cuda-11.0.3"), in_use(&cluster, "kept")), (1, 1));
    cluster.annotate("a", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
    cluster.settle();
    assert_eq!((in_use(&cluster, "tensorflow-py3.8-cuda-11.0.3"), in_use(&cluster, "kept")), (1, 0));
    assert_eq!(cluster.settle(), 0);
}
