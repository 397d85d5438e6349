//! The page about compatibility, held against what happens: each row about notebooks is tried.

use std::collections::BTreeMap;
use std::path::Path;

use crate::small_cluster::*;
use serde_json::{Value, json};

const V: &[(&str, &str)] = &[("numpy", "1")];

/// The rows of the page's part about notebooks: field, and what becomes of it.
fn rows() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/compatibility.md");
    let text = std::fs::read_to_string(page).unwrap();
    let part = text.split("\n## ").find(|part| part.starts_with("Notebook")).unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (field, word) = (cells.next()?.to_owned(), cells.next()?.to_owned());
        (field.contains('`')).then_some((field, word))
    };
    part.lines().filter_map(row).collect()
}

/// The objects that a notebook comes to, without what follows from its name and uid.
fn made(patch: &Value, prepare: &dyn Fn(&mut Cluster)) -> (Cluster, BTreeMap<String, Value>) {
    let mut cluster = Cluster::new();
    cluster.catalogue("old", V);
    cluster.notebook("nb", Some(SELECTION));
    prepare(&mut cluster);
    cluster.edit("kubeflow.org", "Notebook", "anna", "nb", patch);
    cluster.settle();
    let mut objects = BTreeMap::new();
    for (group, kind, name) in [
        ("apps", "StatefulSet", "nb"),
        ("", "Service", "nb"),
        ("networking.k8s.io", "NetworkPolicy", "nb"),
        ("", "PersistentVolumeClaim", "nb-volume"),
    ] {
        if let Some(object) = cluster.get(group, kind, "anna", name) {
            objects.insert(kind.to_owned(), object["spec"].clone());
        }
    }
    (cluster, objects)
}

fn annotation(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

fn container(fields: &Value) -> Value {
    let mut container = json!({
        "name": "nb", "image": "whatever:latest", "env": [{"name": "JUPYTER_IMAGE", "value": "whatever:latest"}],
        "resources": {"limits": {"cpu": "1000m"}},
    });
    merge(&mut container, fields);
    pod(&json!({"containers": [container]}))
}

fn pod(fields: &Value) -> Value {
    json!({"spec": {"template": {"spec": fields}}})
}

/// What to write for a row.
fn tried(field: &str) -> Option<Value> {
    let value = |name: &str| {
        Some(match name {
            "kubeflow-resource-stopped" => "2026-01-01T00:00:00Z",
            "notebooks.kubeflow.org/server-type" => "group-one",
            "opendatahub.io/workbench-image-namespace" => "elsewhere",
            "opendatahub.io/hardware-profile-name" => "small",
            "scantling.dev/volume-size" => "1Gi",
            "scantling.dev/allow-from" => "berta",
            "notebooks.kubeflow.org/http-rewrite-uri"
            | "notebooks.kubeflow.org/http-headers-request-set"
            | "opendatahub.io/accelerator-name"
            | "notebooks.opendatahub.io/inject-oauth"
            | "notebooks.opendatahub.io/inject-auth"
            | "notebooks.opendatahub.io/last-size-selection" => "true",
            _ => return None,
        })
    };
    Some(match field {
        "`metadata.labels`" => json!({"metadata": {"labels": {"team": "a"}}}),
        "`metadata.annotations`" => annotation("sidecar.istio.io/inject", "false"),
        "`spec.template.spec`" => pod(&json!({"serviceAccountName": "mine"})),
        "`spec.template.spec` without a container of the notebook's name, and not with just one" => {
            pod(&json!({"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}))
        }
        "`ports` of the notebook's container" => container(&json!({"ports": [{"containerPort": 80}]})),
        "`workingDir` of the notebook's container" => container(&json!({"workingDir": "/work"})),
        "`readinessProbe` of the notebook's container" => {
            container(&json!({"readinessProbe": {"tcpSocket": {"port": 1}}}))
        }
        "`securityContext` of the pod" => pod(&json!({"securityContext": {"fsGroup": 7}})),
        "`volumes` with a claim that does not exist" => {
            pod(&json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]}))
        }
        "`image` of the notebook's container" => container(&json!({"image": "other:1"})),
        "`image` that can change, without a selection" => {
            annotation("notebooks.opendatahub.io/last-image-selection", "")
        }
        "`imagePullPolicy` of the notebook's container" => container(&json!({"imagePullPolicy": "Always"})),
        "`env` `NB_PREFIX`" => {
            let env = json!([{"name": "JUPYTER_IMAGE", "value": "whatever:latest"}, {"name": "NB_PREFIX", "value": "/x"}]);
            container(&json!({"env": env}))
        }
        "`env` `JUPYTER_IMAGE`" => container(&json!({"env": [{"name": "JUPYTER_IMAGE", "value": "other"}]})),
        "`notebooks.opendatahub.io/last-image-selection` that the catalogue does not have" => {
            annotation("notebooks.opendatahub.io/last-image-selection", "gone:1")
        }
        "`opendatahub.io/hardware-profile-name` that does not exist" => {
            annotation("opendatahub.io/hardware-profile-name", "gone")
        }
        "`scantling.dev/volume-size` that is no size" => annotation("scantling.dev/volume-size", "large"),
        "`scantling.dev/allow-from` that is no list of names" => {
            annotation("scantling.dev/allow-from", "A B")
        }
        simple => {
            let name = simple.trim_matches('`');
            annotation(name, value(name)?)
        }
    })
}

/// Rows that are shown by tests of their own, with those.
const ELSEWHERE: [(&str, &str); 10] = [
    ("`metadata.name`", "a_notebook_gets_its_image_by_digest"),
    ("`metadata.name` of more than 52 characters", "what_cannot_be_made_says_why_and_makes_nothing"),
    ("`metadata.name` that is no name of a service", "what_cannot_be_made_says_why_and_makes_nothing"),
    ("`metadata.name` of another object", "what_cannot_be_made_says_why_and_makes_nothing"),
    ("`notebooks.kubeflow.org/last-activity`", "an_idle_notebook_is_stopped_and_only_an_idle_one"),
    ("`notebooks.opendatahub.io/last-image-selection`", "a_notebook_gets_its_image_by_digest"),
    ("`notebooks.opendatahub.io/notebook-restart`", "a_restart_takes_the_update_once"),
    (
        "`opendatahub.io/hardware-profile-namespace`",
        "a_hardware_profile_gives_what_the_owner_did_not_ask_for",
    ),
    ("`opendatahub.io/hardware-profile-name`", "a_hardware_profile_gives_what_the_owner_did_not_ask_for"),
    ("`scantling.dev/volume-class`", "a_volume_of_its_own_is_made_mounted_and_kept"),
];

#[test]
fn every_row_about_notebooks_is_what_happens() {
    let tests = ["notebooks.rs", "pods.rs", "idle.rs"].map(|file| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reconcile").join(file);
        std::fs::read_to_string(path).unwrap()
    });
    let elsewhere = |cluster: &mut Cluster| {
        let mut other = cluster
            .get("scantling.dev", "NotebookImage", PLATFORM, "tensorflow-py3.8-cuda-11.0.3")
            .unwrap()
            .clone();
        other["metadata"] = json!({"name": "mine", "namespace": "elsewhere"});
        other["spec"]["image"] = json!(image("mine"));
        other["spec"]["aliases"] = json!([]);
        cluster.put(other);
    };
    let (_, plain) = made(&json!({}), &elsewhere);
    let rows = rows();
    assert!(rows.len() > 30, "{rows:?}");
    for (field, word) in rows {
        if let Some((_, test)) = ELSEWHERE.iter().find(|(name, _)| *name == field) {
            assert!(
                tests.iter().any(|text| text.contains(&format!("fn {test}("))),
                "{field}: no test {test}"
            );
            continue;
        }
        let patch = tried(&field).unwrap_or_else(|| panic!("{field}: nobody knows how to try it"));
        let (cluster, objects) = made(&patch, &elsewhere);
        let bad: Vec<String> = ["ImageResolved", "Startable", "Supported"]
            .into_iter()
            .filter(|kind| condition(&cluster, "nb", kind).0 == "False")
            .map(str::to_owned)
            .collect();
        match word.as_str() {
            "honoured" => {
                assert_ne!(objects, plain, "{field} changes nothing");
                assert!(bad.is_empty(), "{field}: {bad:?}");
            }
            "replaced" => {
                let text = json!(objects).to_string();
                for written in ["other:1", "\"Always\"", "\"/x\"", "\"other\""] {
                    assert!(!text.contains(written), "{field}: {written} is still there");
                }
                assert!(bad.is_empty(), "{field}: {bad:?}");
            }
            "ignored, with a warning" => {
                assert_eq!(bad, ["Supported"], "{field}");
                assert_eq!(cluster.events.len(), 1, "{field}");
                let name = field.trim_matches('`');
                assert!(cluster.events[0].1.contains(name), "{field}: {:?}", cluster.events);
            }
            "refused" => {
                assert!(objects.is_empty(), "{field}: {objects:?}");
                assert!(!bad.is_empty() && !cluster.events.is_empty(), "{field}");
            }
            "for clients" => {
                assert_eq!(objects, plain, "{field}");
                assert!(bad.is_empty() && cluster.events.is_empty(), "{field}");
            }
            other => panic!("{field}: {other:?} is none of the page's words"),
        }
    }
}
