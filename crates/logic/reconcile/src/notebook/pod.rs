//! The pod of a notebook: what its owner wrote, with what existing clients rely on filled in.

use scantling_api::object::Container;
use scantling_observed::{Notebook, View as _, annotations as names};
use serde_json::{Map, Value, json};

use super::desired::RESTARTED;
use super::settings::{Settings, volume_name};

/// The port that notebook servers listen on when their container declares none.
const PORT: u16 = 8888;
/// Where images of notebooks have the home of their user, and clients mount its volume.
const HOME: &str = "/home/jovyan";
/// The group that images of notebooks have their user in.
const GROUP: i64 = 100;

/// The port of the notebook's server.
pub(super) fn port(container: Option<Container<'_>>) -> Value {
    let declared = container.and_then(|container| container.value.pointer("/ports/0/containerPort"));
    declared.cloned().unwrap_or_else(|| json!(PORT))
}

/// The address below which the server answers.
fn prefix(notebook: Notebook<'_>) -> String {
    format!("/notebook/{}/{}", notebook.namespace(), notebook.name())
}

/// The notebook's own labels, and those by which its pod is found.
pub(super) fn labels(notebook: Notebook<'_>, settings: &Settings) -> Value {
    let mut labels: Map<String, Value> = scantling_api::object::labels(notebook.object())
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    for (label, value) in [
        ("kueue.x-k8s.io/queue-name", &settings.profile.queue),
        ("kueue.x-k8s.io/priority-class", &settings.profile.priority_class),
    ] {
        if let Some(value) = value {
            labels.entry(label).or_insert_with(|| json!(value));
        }
    }
    labels.insert("statefulset".to_owned(), json!(notebook.name()));
    labels.insert("notebook-name".to_owned(), json!(notebook.name()));
    Value::Object(labels)
}

/// The notebook's annotations, as far as they are about its pod. Those that clients and controllers of notebooks write about the notebook
/// itself are not, with the selection as the exception.
pub(super) fn annotations(notebook: Notebook<'_>) -> Value {
    let about_notebook = |name: &str| {
        name.contains("kubectl")
            || name.contains("notebook")
            || name.starts_with("scantling.dev/")
            || name == names::STOPPED
    };
    let mut result: Map<String, Value> = scantling_api::object::annotations(notebook.object())
        .filter(|(name, _)| !about_notebook(name))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    if let Some(selection) = notebook.selection() {
        result.insert(names::SELECTION.to_owned(), json!(selection));
    }
    if let Some(requested) = notebook.annotation(names::RESTART_REQUESTED) {
        result.insert(RESTARTED.to_owned(), json!(requested));
    }
    Value::Object(result)
}

/// The spec, with the image by digest. A digest cannot be stale, so a node that has it need not ask the registry.
pub(super) fn spec(notebook: Notebook<'_>, image: &str, settings: &Settings) -> Value {
    let mut spec = notebook.pod_spec().cloned().unwrap_or_else(|| json!({}));
    let index = notebook.container().map(|container| container.index);
    let own_volume = settings.volume.as_ref().map(|_| volume_name(notebook));
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    let container = containers.zip(index).and_then(|(containers, index)| containers.get_mut(index));
    let Some(container) = container.and_then(Value::as_object_mut) else { return spec };
    container.insert("image".to_owned(), json!(image));
    container.insert("imagePullPolicy".to_owned(), json!("IfNotPresent"));
    container
        .entry("ports")
        .or_insert_with(|| json!([{"containerPort": PORT, "name": "notebook-port", "protocol": "TCP"}]));
    if let Some(env) = container.entry("env").or_insert_with(|| json!([])).as_array_mut() {
        set_env(env, "NB_PREFIX", &prefix(notebook), true);
        // Existing clients repeat the pull spec here; a copy that says something else than the pod runs would be a false claim.
        set_env(env, "JUPYTER_IMAGE", image, false);
    }
    let mut mounted = false;
    if let Some(volume) = &own_volume {
        mounted = mount(container, volume);
    }
    if !container.contains_key("workingDir") && is_mounted(container, HOME) {
        container.insert("workingDir".to_owned(), json!(HOME));
    }
    probe(container, notebook);
    resources(container, settings);
    let Some(fields) = spec.as_object_mut() else { return spec };
    if let Some(volume) = own_volume.filter(|_| mounted) {
        let volumes = fields.entry("volumes").or_insert_with(|| json!([])).as_array_mut();
        let known = |volumes: &[Value]| volumes.iter().any(|other| other["name"] == json!(volume));
        if let Some(volumes) = volumes.filter(|volumes| !known(volumes)) {
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": volume}}));
        }
    }
    place(fields, settings);
    if settings.sets_group && !fields.contains_key("securityContext") {
        fields.insert("securityContext".to_owned(), json!({"fsGroup": GROUP}));
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

fn is_mounted(container: &Map<String, Value>, path: &str) -> bool {
    let mounts = container.get("volumeMounts").and_then(Value::as_array);
    mounts.into_iter().flatten().any(|mount| mount["mountPath"] == json!(path))
}

/// Mounts the notebook's own volume where the notebook works, unless its owner mounts it or something else there. True if the pod uses it.
fn mount(container: &mut Map<String, Value>, volume: &str) -> bool {
    let place = container.get("workingDir").and_then(Value::as_str).unwrap_or(HOME).to_owned();
    let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
    let Some(mounts) = mounts.as_array_mut() else { return false };
    if mounts.iter().any(|mount| mount["name"] == json!(volume)) {
        return true;
    }
    if mounts.iter().any(|mount| mount["mountPath"] == json!(place)) {
        return false;
    }
    mounts.push(json!({"name": volume, "mountPath": place}));
    true
}

/// A probe for readiness, where the owner wrote none: that of Jupyter's own API, or, for other servers, whether anybody listens. There is
/// none that kills: a server that is slow to answer may have hours of somebody's work in its kernels.
fn probe(container: &mut Map<String, Value>, notebook: Notebook<'_>) {
    if container.contains_key("readinessProbe") {
        return;
    }
    let port = container.get("ports").and_then(|ports| ports.pointer("/0/containerPort")).cloned();
    let port = port.unwrap_or_else(|| json!(PORT));
    let is_jupyter = notebook.annotation(names::SERVER_TYPE).is_none_or(|kind| kind == "jupyter");
    let mut probe = json!({"periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3});
    if is_jupyter {
        probe["httpGet"] =
            json!({"path": format!("{}/api", prefix(notebook)), "port": port, "scheme": "HTTP"});
    } else {
        probe["tcpSocket"] = json!({"port": port});
    }
    container.insert("readinessProbe".to_owned(), probe);
}

/// Gives what the profile gives, resource by resource, where the owner asked for nothing.
fn resources(container: &mut Map<String, Value>, settings: &Settings) {
    for (resource, amount) in &settings.profile.resources {
        let asked = |list: &str| {
            container.get("resources").and_then(|resources| resources.get(list)?.get(resource)).is_some()
        };
        if asked("requests") || asked("limits") {
            continue;
        }
        let resources = container.entry("resources").or_insert_with(|| json!({}));
        let Some(resources) = resources.as_object_mut() else { return };
        for list in ["requests", "limits"] {
            let amounts = resources.entry(list).or_insert_with(|| json!({}));
            if let Some(amounts) = amounts.as_object_mut() {
                amounts.insert(resource.clone(), json!(amount));
            }
        }
    }
}

/// Puts the pod where the profile says, besides what the owner wrote.
fn place(fields: &mut Map<String, Value>, settings: &Settings) {
    let profile = &settings.profile;
    if !profile.node_selector.is_empty() {
        let selector = fields.entry("nodeSelector").or_insert_with(|| json!({}));
        if let Some(selector) = selector.as_object_mut() {
            for (label, value) in &profile.node_selector {
                selector.entry(label.clone()).or_insert_with(|| json!(value));
            }
        }
    }
    if !profile.tolerations.is_empty() {
        let tolerations = fields.entry("tolerations").or_insert_with(|| json!([]));
        if let Some(tolerations) = tolerations.as_array_mut() {
            let missing: Vec<Value> =
                profile.tolerations.iter().filter(|wanted| !tolerations.contains(wanted)).cloned().collect();
            tolerations.extend(missing);
        }
    }
}
