//! Notebooks through their life, on a cluster of a few lines.

use crate::small_cluster::*;
use scantling_reconcile::Action;
use serde_json::{Value, json};

const OLD: &[(&str, &str)] = &[("tensorflow", "2.4.1"), ("tensorboard", "2.4.1"), ("numpy", "1.19.2")];
const NEW: &[(&str, &str)] = &[("tensorflow", "2.7.0"), ("tensorboard", "2.6.0"), ("numpy", "1.19.2")];

/// A cluster where `nb` of image `old` runs.
fn running() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.images.insert(known("old", OLD));
    cluster.images.insert(known("new", NEW));
    cluster.catalogue("old", OLD);
    cluster.notebook("nb", Some(SELECTION));
    cluster.settle();
    cluster
}

fn set(cluster: &Cluster) -> &Value {
    cluster.get("apps", "StatefulSet", "anna", "nb").unwrap()
}

fn pod_image(cluster: &Cluster) -> Option<&str> {
    cluster.get("", "Pod", "anna", "nb-0")?["spec"]["containers"][0]["image"].as_str()
}

fn status(cluster: &Cluster) -> &Value {
    &cluster.get("kubeflow.org", "Notebook", "anna", "nb").unwrap()["status"]
}

/// What is done to a cluster before it is looked at.
type Change<'a> = &'a dyn Fn(&mut Cluster);

#[test]
fn a_notebook_gets_its_image_by_digest() {
    let cluster = running();
    let set = set(&cluster);
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], image("old"));
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(
        container["env"],
        json!([{"name": "JUPYTER_IMAGE", "value": image("old")}, {"name": "NB_PREFIX", "value": "/notebook/anna/nb"}])
    );
    assert_eq!(container["ports"][0]["containerPort"], 8888);
    assert_eq!(set["spec"]["replicas"], 1);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"]["opendatahub.io/dashboard"], "true");
    assert_eq!(set["metadata"]["ownerReferences"][0]["kind"], "Notebook");
    let service = cluster.get("", "Service", "anna", "nb").unwrap();
    assert_eq!(service["spec"]["selector"], json!({"statefulset": "nb"}));
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 8888);
    let status = status(&cluster);
    assert_eq!(status["readyReplicas"], 1);
    assert_eq!(status["running"]["digest"], digest("old").to_string());
    assert_eq!(status["running"]["node"], "worker-a");
    for three in ["claimed", "desired", "running"] {
        assert_eq!(
            status[three]["packages"][0],
            json!({"name": "tensorflow", "version": "2.4.1"}),
            "{three}"
        );
    }
    assert_eq!(condition(&cluster, "nb", "ImageResolved").0, "True");
    assert_eq!(condition(&cluster, "nb", "UpdatePending").0, "False");
    assert!(cluster.events.is_empty());
}

#[test]
fn settling_again_writes_nothing() {
    let mut cluster = running();
    assert_eq!(cluster.settle(), 0);
    assert_eq!(cluster.wanted(), cluster.wanted());
}

#[test]
fn an_update_of_the_catalogue_waits_for_the_owner() {
    let mut cluster = running();
    let before = set(&cluster).clone();
    cluster.catalogue("new", NEW);
    cluster.settle();
    assert_eq!(set(&cluster), &before, "nothing of the set may change");
    assert_eq!(pod_image(&cluster), Some(image("old").as_str()));
    let (is, reason, message) = condition(&cluster, "nb", "UpdatePending");
    assert_eq!((is.as_str(), reason.as_str()), ("True", "NewImage"));
    assert_eq!(message, "a restart brings tensorboard 2.4.1 → 2.6.0, tensorflow 2.4.1 → 2.7.0");
    let status = status(&cluster);
    assert_eq!(status["claimed"]["packages"][0]["version"], "2.7.0");
    assert_eq!(status["desired"]["image"], image("new"));
    assert_eq!(status["running"]["packages"][0]["version"], "2.4.1");
    let pod = cluster.get("", "Pod", "anna", "nb-0").unwrap();
    assert_eq!(
        annotations(pod)["scantling.dev/update-pending"],
        "tensorboard 2.4.1 → 2.6.0, tensorflow 2.4.1 → 2.7.0"
    );
    assert_eq!(cluster.events.iter().filter(|(reason, _)| reason == "NewImage").count(), 1);
    assert_eq!(cluster.settle(), 0);
}

#[test]
fn a_restart_takes_the_update_once() {
    let mut cluster = running();
    cluster.catalogue("new", NEW);
    cluster.settle();
    cluster.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
    cluster.settle();
    assert_eq!(pod_image(&cluster), Some(image("new").as_str()));
    assert_eq!(cluster.restarts, ["nb"]);
    assert_eq!(condition(&cluster, "nb", "UpdatePending").0, "False");
    assert_eq!(status(&cluster)["running"]["digest"], digest("new").to_string());
    let notebook = cluster.get("kubeflow.org", "Notebook", "anna", "nb").unwrap();
    assert!(!annotations(notebook).contains_key("notebooks.opendatahub.io/notebook-restart"));
    let pod = cluster.get("", "Pod", "anna", "nb-0").unwrap();
    assert!(!annotations(pod).contains_key("scantling.dev/update-pending"));
    // A restart without an update makes a new pod too.
    let uid = pod["metadata"]["uid"].clone();
    cluster.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
    cluster.settle();
    assert_ne!(cluster.get("", "Pod", "anna", "nb-0").unwrap()["metadata"]["uid"], uid);
    assert_eq!(cluster.restarts.len(), 2);
}

#[test]
fn a_driver_killed_after_any_write_of_a_restart_restarts_once() {
    for kept in 1..8 {
        let mut cluster = running();
        cluster.catalogue("new", NEW);
        cluster.settle();
        cluster.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
        // The first `kept` actions are written one at a time, each decided anew on what the writes before left behind.
        for _ in 0..kept {
            cluster.now += 1;
            if let Some(first) = cluster.wanted().into_iter().next() {
                cluster.write(&first);
            }
        }
        cluster.settle();
        assert_eq!(cluster.restarts.len(), 1, "killed after {kept}");
        assert_eq!(pod_image(&cluster), Some(image("new").as_str()));
    }
}

#[test]
fn stopping_and_starting_takes_the_update() {
    let mut cluster = running();
    cluster.catalogue("new", NEW);
    cluster.annotate("nb", "kubeflow-resource-stopped", &json!("2026-01-01T00:00:00Z"));
    cluster.settle();
    assert_eq!(pod_image(&cluster), None);
    assert_eq!(
        condition(&cluster, "nb", "UpdatePending").2,
        "the next start takes what the catalogue has then"
    );
    assert_eq!(status(&cluster)["running"], Value::Null);
    assert_eq!(status(&cluster)["startedImage"], Value::Null);
    cluster.annotate("nb", "kubeflow-resource-stopped", &Value::Null);
    cluster.settle();
    assert_eq!(pod_image(&cluster), Some(image("new").as_str()));
    assert_eq!(condition(&cluster, "nb", "UpdatePending").0, "False");
}

#[test]
fn a_drain_brings_back_the_image_it_had() {
    let mut cluster = running();
    cluster.catalogue("new", NEW);
    cluster.settle();
    cluster.remove("", "Pod", "anna", "nb-0");
    // While the pod is away, nothing is decided for its owner.
    assert!(!cluster.wanted().iter().any(|action| matches!(action, Action::Apply { .. })));
    cluster.settle();
    assert_eq!(pod_image(&cluster), Some(image("old").as_str()));
    assert!(cluster.restarts.is_empty());
    assert_eq!(condition(&cluster, "nb", "UpdatePending").1, "NewImage");
}

#[test]
fn an_owners_edit_waits_for_a_restart_too() {
    let mut cluster = running();
    let before = set(&cluster).clone();
    cluster.edit(
        "kubeflow.org",
        "Notebook",
        "anna",
        "nb",
        &json!({"spec": {"template": {"spec": {"serviceAccountName": "x"}}}}),
    );
    cluster.settle();
    assert_eq!(set(&cluster), &before);
    assert_eq!(condition(&cluster, "nb", "UpdatePending").1, "NotebookChanged");
    cluster.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
    cluster.settle();
    assert_eq!(set(&cluster)["spec"]["template"]["spec"]["serviceAccountName"], "x");
    assert_eq!(condition(&cluster, "nb", "UpdatePending").0, "False");
}

#[test]
fn an_image_that_never_started_is_corrected_at_once() {
    let mut cluster = Cluster::new();
    cluster.unpullable.push(image("gone"));
    cluster.catalogue("gone", OLD);
    cluster.notebook("nb", Some(SELECTION));
    cluster.settle();
    assert_eq!(status(&cluster)["containerState"]["waiting"]["reason"], "ImagePullBackOff");
    assert_eq!(status(&cluster)["running"], Value::Null);
    cluster.catalogue("new", NEW);
    cluster.settle();
    assert_eq!(pod_image(&cluster), Some(image("new").as_str()));
    assert_eq!(status(&cluster)["running"]["digest"], digest("new").to_string());
}

#[test]
fn a_stuck_pod_of_an_ordered_set_is_replaced() {
    let mut cluster = Cluster::new();
    cluster.unpullable.push(image("gone"));
    cluster.catalogue("gone", OLD);
    cluster.notebook("nb", Some(SELECTION));
    cluster.settle();
    let uid = cluster.get("", "Pod", "anna", "nb-0").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    cluster.edit("apps", "StatefulSet", "anna", "nb", &json!({"status": {"updateRevision": "another"}}));
    let deleted: Vec<_> = cluster
        .wanted()
        .into_iter()
        .filter_map(|action| match action {
            Action::Delete { target, .. } => Some((target.name, target.uid.unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(deleted, [("nb-0".to_owned(), uid)]);
    // A pod that has started is never deleted.
    let mut cluster = running();
    cluster.edit("apps", "StatefulSet", "anna", "nb", &json!({"status": {"updateRevision": "another"}}));
    assert!(!cluster.wanted().iter().any(|action| matches!(action, Action::Delete { .. })));
}

#[test]
fn what_cannot_be_made_says_why_and_makes_nothing() {
    let long = "n".repeat(53);
    let catalogue = |cluster: &mut Cluster| cluster.catalogue("old", OLD);
    let empty = |_: &mut Cluster| {};
    let broken = |cluster: &mut Cluster| {
        cluster.catalogue("old", OLD);
        cluster.edit(
            "scantling.dev",
            "NotebookImage",
            PLATFORM,
            "tensorflow-py3.8-cuda-11.0.3",
            &json!({"spec": {"image": "quay.io/x:1"}}),
        );
    };
    let twice = |cluster: &mut Cluster| {
        cluster.catalogue("old", OLD);
        let mut other = cluster
            .get("scantling.dev", "NotebookImage", PLATFORM, "tensorflow-py3.8-cuda-11.0.3")
            .unwrap()
            .clone();
        other["metadata"]["name"] = json!("other");
        cluster.put(other);
    };
    let foreign = |cluster: &mut Cluster| {
        cluster.catalogue("old", OLD);
        cluster.put(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "nb", "namespace": "anna"}}),
        );
    };
    let cases: [(&str, Option<&str>, Change<'_>, &str, &str); 11] = [
        ("nb", Some("pytorch:1"), &catalogue, "UnknownStream", "select one of tensorflow:py3.8-cuda-11.0.3"),
        ("nb", Some(SELECTION), &empty, "UnknownStream", "is empty"),
        ("nb", Some("tensorflow:1"), &catalogue, "UnknownTag", "select one of tensorflow:py3.8-cuda-11.0.3"),
        ("2nd", Some(SELECTION), &catalogue, "InvalidName", "begins with a letter"),
        ("a.b", Some(SELECTION), &catalogue, "InvalidName", "small letters"),
        ("nb", None, &catalogue, "NotPinned", "whatever:latest"),
        ("nb", Some(""), &catalogue, "NotPinned", "whatever:latest"),
        ("nb", Some(SELECTION), &broken, "BrokenEntry", "no digest"),
        ("nb", Some(SELECTION), &twice, "AmbiguousSelection", "keep one"),
        ("nb", Some(SELECTION), &foreign, "ForeignObject", "Service anna/nb"),
        (&long, Some(SELECTION), &catalogue, "NameTooLong", "at most 52"),
    ];
    for (name, selection, prepare, reason, says) in cases {
        let mut cluster = Cluster::new();
        prepare(&mut cluster);
        cluster.notebook(name, selection);
        cluster.settle();
        let (is, found, message) = condition(&cluster, name, "ImageResolved");
        assert_eq!((is.as_str(), found.as_str()), ("False", reason), "{message}");
        assert!(message.contains(says), "{message}");
        assert!(cluster.get("apps", "StatefulSet", "anna", name).is_none());
        assert_eq!(cluster.events.len(), 1, "one event: {:?}", cluster.events);
        assert_eq!(cluster.events[0].0, reason);
    }
}

#[test]
fn an_image_without_a_selection_is_taken_by_name_or_by_digest() {
    for (written, got) in [(ALIAS.to_owned(), image("old")), (image("mine"), image("mine"))] {
        let mut cluster = Cluster::new();
        cluster.catalogue("old", OLD);
        cluster.notebook("nb", None);
        cluster.edit(
            "kubeflow.org",
            "Notebook",
            "anna",
            "nb",
            &json!({"spec": {"template": {"spec": {"containers": [{"name": "nb", "image": written}]}}}}),
        );
        cluster.settle();
        assert_eq!(pod_image(&cluster), Some(got.as_str()));
    }
}

#[test]
fn a_selection_that_is_gone_keeps_what_runs_and_can_still_be_stopped() {
    let mut cluster = running();
    cluster.remove("scantling.dev", "NotebookImage", PLATFORM, "tensorflow-py3.8-cuda-11.0.3");
    cluster.settle();
    assert_eq!(pod_image(&cluster), Some(image("old").as_str()));
    assert_eq!(condition(&cluster, "nb", "ImageResolved").1, "UnknownStream");
    cluster.annotate("nb", "kubeflow-resource-stopped", &json!("now"));
    cluster.settle();
    assert_eq!(pod_image(&cluster), None);
    cluster.annotate("nb", "kubeflow-resource-stopped", &Value::Null);
    cluster.settle();
    assert_eq!(pod_image(&cluster), Some(image("old").as_str()));
}

#[test]
fn a_scale_or_edit_by_hand_is_put_right_when_nothing_runs() {
    let mut cluster = running();
    cluster.edit("apps", "StatefulSet", "anna", "nb", &json!({"spec": {"replicas": 0}}));
    cluster.settle();
    assert_eq!(set(&cluster)["spec"]["replicas"], 1);
}

#[test]
fn a_catalogue_in_another_namespace_is_used_when_the_notebook_says_so() {
    let mut cluster = Cluster::new();
    cluster.catalogue("old", OLD);
    let mut other = cluster
        .get("scantling.dev", "NotebookImage", PLATFORM, "tensorflow-py3.8-cuda-11.0.3")
        .unwrap()
        .clone();
    other["metadata"] = json!({"name": "mine", "namespace": "elsewhere"});
    other["spec"]["image"] = json!(image("mine"));
    cluster.put(other);
    cluster.notebook("nb", Some(SELECTION));
    cluster.annotate("nb", "opendatahub.io/workbench-image-namespace", &json!("elsewhere"));
    cluster.settle();
    assert_eq!(pod_image(&cluster), Some(image("mine").as_str()));
}

#[test]
fn what_others_add_to_the_set_stays_and_what_the_owner_takes_out_goes() {
    let mut cluster = running();
    cluster.annotate("nb", "kubeflow-resource-stopped", &json!("now"));
    cluster.settle();
    let mut containers = set(&cluster)["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["env"].as_array_mut().unwrap().insert(0, json!({"name": "ADDED", "value": "1"}));
    containers[0]["resources"]["limits"]["cpu"] = json!("1");
    containers.as_array_mut().unwrap().insert(0, json!({"name": "mesh", "image": "mesh:1"}));
    let spec =
        json!({"spec": {"template": {"spec": {"containers": containers, "tolerations": [{"key": "gpu"}]}}}});
    cluster.edit("apps", "StatefulSet", "anna", "nb", &spec);
    assert_eq!(cluster.settle(), 0);
    // The owner takes out a variable and a label, and adds a volume: theirs change, the others' stay.
    cluster.edit(
        "kubeflow.org",
        "Notebook",
        "anna",
        "nb",
        &json!({
            "metadata": {"labels": {"opendatahub.io/dashboard": null}},
            "spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "nb", "image": "x"}]}}},
        }),
    );
    cluster.settle();
    let template = &set(&cluster)["spec"]["template"];
    assert!(template["metadata"]["labels"].get("opendatahub.io/dashboard").is_none());
    assert_eq!(template["spec"]["volumes"][0]["name"], "v");
    assert_eq!(template["spec"]["tolerations"], json!([{"key": "gpu"}]));
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut containers = names(&template["spec"]["containers"]);
    containers.sort();
    assert_eq!(containers, ["mesh", "nb"]);
    let container =
        template["spec"]["containers"].as_array().unwrap().iter().find(|c| c["name"] == "nb").unwrap();
    let mut env = names(&container["env"]);
    env.sort();
    assert_eq!(env, ["ADDED", "NB_PREFIX"]);
}

#[test]
fn a_pod_whose_image_was_rewritten_when_it_was_admitted_keeps_its_notebook() {
    let mut cluster = Cluster::new();
    cluster.images.insert(known("old", OLD));
    cluster.images.insert(known("new", NEW));
    cluster.rewritten = Some(("quay.io/".to_owned(), "mirror.example/".to_owned()));
    cluster.catalogue("old", OLD);
    cluster.notebook("nb", Some(SELECTION));
    cluster.settle();
    assert!(pod_image(&cluster).unwrap().starts_with("mirror.example/"));
    let before = set(&cluster).clone();
    cluster.catalogue("new", NEW);
    cluster.settle();
    assert_eq!(set(&cluster), &before, "nobody asked for a restart");
    assert_eq!(condition(&cluster, "nb", "UpdatePending").1, "NewImage");
    // A drain and a set that somebody deletes bring back what it had.
    cluster.remove("", "Pod", "anna", "nb-0");
    cluster.settle();
    assert_eq!(set(&cluster), &before);
    cluster.remove("apps", "StatefulSet", "anna", "nb");
    cluster.settle();
    assert_eq!(
        set(&cluster)["spec"]["template"]["spec"]["containers"][0]["image"],
        image("old"),
        "by the name that the template had"
    );
    cluster.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
    cluster.settle();
    assert!(pod_image(&cluster).unwrap().contains(&digest("new").to_string()));
    assert_eq!(cluster.settle(), 0);
}

#[test]
fn every_name_that_a_notebook_may_have_gives_its_service_a_valid_port() {
    for name in ["a", "team-data-science", "team-data", &"x".repeat(52), "a-b-c-d-e-f"] {
        let mut cluster = Cluster::new();
        cluster.catalogue("old", OLD);
        cluster.notebook(name, Some(SELECTION));
        cluster.settle();
        let service = cluster.get("", "Service", "anna", name).unwrap();
        let port = service["spec"]["ports"][0]["name"].as_str().unwrap();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(port.len() <= 63 && port.starts_with(fits) && port.ends_with(fits), "{name}: {port}");
    }
}

#[test]
fn what_the_server_refuses_is_told_and_does_not_keep_back_the_status() {
    let key = |name: &str| scantling_api::ObjectKey::namespaced("kubeflow.org", "Notebook", "anna", name);
    for (said, reason) in [("exceeded quota: team", "QuotaExceeded"), ("spec.x is invalid", "Refused")] {
        let mut cluster = running();
        cluster.met.refused.insert(key("nb"), format!("apply StatefulSet anna/nb: {said}"));
        cluster.notebook("other", Some(SELECTION));
        cluster.settle();
        let (is, found, message) = condition(&cluster, "nb", "Startable");
        assert_eq!((is.as_str(), found.as_str()), ("False", reason));
        assert!(message.contains(said) && message.contains("StatefulSet anna/nb"), "{message}");
        assert!(cluster.events.iter().any(|(told, _)| told == reason));
        assert_eq!(condition(&cluster, "other", "Startable").0, "True");
        cluster.met.refused.clear();
        cluster.settle();
        assert_eq!(condition(&cluster, "nb", "Startable").0, "True");
    }
    // The status is written before anything that the server might refuse.
    let mut cluster = Cluster::new();
    cluster.catalogue("old", OLD);
    cluster.notebook("nb", Some(SELECTION));
    cluster.annotate("nb", "scantling.dev/volume-size", &json!("1Gi"));
    let wanted = cluster.wanted();
    let place = |is: &dyn Fn(&Action) -> bool| wanted.iter().position(is).unwrap();
    let status = place(&|action| matches!(action, Action::PatchStatus { .. }));
    assert!(status < place(&|action| matches!(action, Action::Create { .. } | Action::Apply { .. })));
    let subjects = wanted.iter().filter(|action| action.key().is_some_and(|key| key.name.starts_with("nb")));
    assert!(subjects.map(Action::subject).all(|subject| subject == Some(key("nb"))));
}

#[test]
fn a_notebook_that_can_never_start_says_so_where_people_look() {
    let long = "x".repeat(60);
    for (name, selection, reason) in [
        ("1abc", Some(SELECTION), "InvalidName"),
        (long.as_str(), Some(SELECTION), "NameTooLong"),
        ("nb", Some("nosuch:1"), "UnknownStream"),
        ("nb", None, "NotPinned"),
    ] {
        let mut cluster = Cluster::new();
        cluster.catalogue("old", OLD);
        cluster.notebook(name, selection);
        cluster.settle();
        let (is, found, message) = condition(&cluster, name, "Startable");
        assert_eq!((is.as_str(), found.as_str()), ("False", reason), "{name}");
        // What the column of `kubectl get notebooks` shows.
        let (_, _, column) = condition(&cluster, name, "UpdatePending");
        assert_eq!(column, format!("it cannot start: {message}"), "{name}");
        assert!(cluster.events.iter().any(|(told, _)| told == reason));
        assert_eq!(cluster.settle(), 0, "{name}");
    }
    // One that runs, or has run, starts again with what it had.
    let mut cluster = running();
    cluster.annotate("nb", "notebooks.opendatahub.io/last-image-selection", &json!("nosuch:1"));
    cluster.settle();
    assert_eq!(condition(&cluster, "nb", "Startable").0, "True");
    assert!(condition(&cluster, "nb", "UpdatePending").2.starts_with("it keeps what it has: "));
}
