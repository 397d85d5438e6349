//! The objects of a notebook.

use scantling_api::object::Container;
use scantling_observed::{Notebook, StatefulSet, View as _};
use serde_json::{Value, json};

use super::pod;
use super::settings::Settings;
use crate::applied::{digest_of, sealed};
use crate::isolation::network_policy;

/// On the pod template: which request for a restart it answers. Changing it makes a new pod.
pub(super) const RESTARTED: &str = "scantling.dev/restarted-at";
/// On the set and on its pod: the digest of what its pod is made from. Annotations of a notebook, which clients write all the time, are not in it.
pub(super) const POD: &str = "scantling.dev/pod";

/// The stateful set, sealed.
pub(super) fn stateful_set(
    notebook: Notebook<'_>,
    image: &str,
    settings: &Settings,
    live: Option<StatefulSet<'_>>,
) -> Value {
    let name = notebook.name();
    // Cannot be changed later, so a set that somebody else has made keeps its own. Without order, a pod that cannot start is replaced
    // when its template is corrected.
    let policy = live
        .and_then(|live| live.object().pointer("/spec/podManagementPolicy"))
        .cloned()
        .unwrap_or_else(|| json!("Parallel"));
    let (labels, spec) = (pod::labels(notebook, settings), pod::spec(notebook, image, settings));
    let made_from = json!(digest_of(&json!([labels, spec])));
    let mut annotations = pod::annotations(notebook);
    annotations[POD] = made_from.clone();
    let mut metadata = metadata(notebook);
    metadata["annotations"] = json!({POD: made_from});
    sealed(json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "replicas": i32::from(!notebook.is_stopped()),
            "podManagementPolicy": policy,
            "selector": {"matchLabels": {"statefulset": name}},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": spec,
            },
        },
    }))
}

/// The service of what runs: its container, as the live set has it, or as it will be.
pub(super) fn service(notebook: Notebook<'_>, container: Option<Container<'_>>) -> Value {
    sealed(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(notebook),
        "spec": {
            "selector": {"statefulset": notebook.name()},
            "ports": [{
                // Whole, as Kubeflow has it: cut, it might end in a sign, and the longest name of a notebook leaves room.
                "name": format!("http-{}", notebook.name()), "port": 80, "targetPort": pod::port(container), "protocol": "TCP",
            }],
        },
    }))
}

/// Who gets an answer.
pub(super) fn policy(
    notebook: Notebook<'_>,
    container: Option<Container<'_>>,
    settings: &Settings,
    platform_namespace: &str,
) -> Value {
    sealed(network_policy(
        &metadata(notebook),
        &json!({"statefulset": notebook.name()}),
        &[pod::port(container)],
        platform_namespace,
        &settings.allowed,
    ))
}

fn metadata(notebook: Notebook<'_>) -> Value {
    json!({
        "name": notebook.name(),
        "namespace": notebook.namespace(),
        "labels": {"app": notebook.name(), "notebook-name": notebook.name()},
        "ownerReferences": [{
            "apiVersion": "kubeflow.org/v1",
            "kind": "Notebook",
            "name": notebook.name(),
            "uid": notebook.uid(),
            "controller": true,
        }],
    })
}
