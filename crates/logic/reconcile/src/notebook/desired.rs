//! The objects of a notebook.

use scantling_observed::{Notebook, StatefulSet, View as _, annotations};
use serde_json::{Map, Value, json};

use crate::applied::sealed;

/// On the pod template: which request for a restart it answers. Changing it makes a new pod.
pub(super) const RESTARTED: &str = "scantling.dev/restarted-at";
/// The port that notebook servers listen on when their container declares none.
const PORT: u16 = 8888;

/// The stateful set, sealed.
pub(super) fn stateful_set(notebook: Notebook<'_>, image: &str, live: Option<StatefulSet<'_>>) -> Value {
    let name = notebook.name();
    // Cannot be changed later, so a set that somebody else has made keeps its own. Without order, a pod that cannot start is replaced
    // when its template is corrected.
    let policy = live
        .and_then(|live| live.object().pointer("/spec/podManagementPolicy"))
        .cloned()
        .unwrap_or_else(|| json!("Parallel"));
    sealed(json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(notebook),
        "spec": {
            "replicas": i32::from(!notebook.is_stopped()),
            "podManagementPolicy": policy,
            "selector": {"matchLabels": {"statefulset": name}},
            "template": {
                "metadata": {"labels": labels(notebook), "annotations": pod_annotations(notebook)},
                "spec": pod_spec(notebook, image),
            },
        },
    }))
}

/// The service, sealed.
pub(super) fn service(notebook: Notebook<'_>) -> Value {
    let container = notebook.container();
    let port = container
        .and_then(|container| container.value.pointer("/ports/0/containerPort"))
        .cloned()
        .unwrap_or_else(|| json!(PORT));
    sealed(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(notebook),
        "spec": {
            "selector": {"statefulset": notebook.name()},
            "ports": [{"name": format!("http-{:.10}", notebook.name()), "port": 80, "targetPort": port, "protocol": "TCP"}],
        },
    }))
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
            "blockOwnerDeletion": true,
        }],
    })
}

/// The notebook's own labels, and those by which its pod is found.
fn labels(notebook: Notebook<'_>) -> Value {
    let mut labels: Map<String, Value> = scantling_api::object::labels(notebook.object())
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    labels.insert("statefulset".to_owned(), json!(notebook.name()));
    labels.insert("notebook-name".to_owned(), json!(notebook.name()));
    Value::Object(labels)
}

fn pod_annotations(notebook: Notebook<'_>) -> Value {
    let mut result = Map::new();
    if let Some(selection) = notebook.selection() {
        result.insert(annotations::SELECTION.to_owned(), json!(selection));
    }
    if let Some(requested) = notebook.annotation(annotations::RESTART_REQUESTED) {
        result.insert(RESTARTED.to_owned(), json!(requested));
    }
    Value::Object(result)
}

/// The notebook's pod with its image by digest. A digest cannot be stale, so a node that has it need not ask the registry.
fn pod_spec(notebook: Notebook<'_>, image: &str) -> Value {
    let mut spec = notebook.pod_spec().cloned().unwrap_or_else(|| json!({}));
    let index = notebook.container().map(|container| container.index);
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    let container = containers.zip(index).and_then(|(containers, index)| containers.get_mut(index));
    let Some(container) = container.and_then(Value::as_object_mut) else { return spec };
    container.insert("image".to_owned(), json!(image));
    container.insert("imagePullPolicy".to_owned(), json!("IfNotPresent"));
    container
        .entry("ports")
        .or_insert_with(|| json!([{"containerPort": PORT, "name": "notebook-port", "protocol": "TCP"}]));
    let prefix = format!("/notebook/{}/{}", notebook.namespace(), notebook.name());
    let env = container.entry("env").or_insert_with(|| json!([]));
    if let Some(env) = env.as_array_mut() {
        set_env(env, "NB_PREFIX", &prefix, true);
        // Existing clients repeat the pull spec here; a copy that says something else than the pod runs would be a false claim.
        set_env(env, "JUPYTER_IMAGE", image, false);
    }
    spec
}

fn set_env(env: &mut Vec<Value>, name: &str, value: &str, add: bool) {
    let entry = json!({"name": name, "value": value});
    match env.iter_mut().find(|entry| entry.get("name").and_then(Value::as_str) == Some(name)) {
        Some(existing) => *existing = entry,
        None if add => env.push(entry),
        None => {}
    }
}
