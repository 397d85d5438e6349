//! Objects without what no view reads. A cluster has thousands of pods, each some 10 KiB of JSON.

use serde_json::{Map, Value};

use crate::device::is_device;

/// What `kubectl apply` remembers for itself: a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Fields of a pod's spec that are read.
const SPEC: [&str; 6] = [
    "nodeName",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "serviceAccountName",
    "imagePullSecrets",
];
/// Fields of a container that are read. Of its resources, only devices.
const CONTAINER: [&str; 5] = ["name", "image", "imagePullPolicy", "ports", "resources"];
/// Fields of a pod's status that are read.
const STATUS: [&str; 9] = [
    "phase",
    "podIP",
    "reason",
    "message",
    "startTime",
    "conditions",
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

/// Takes away what no view reads: who owns which field, copies of the object in annotations, and of pods most of their
/// spec.
pub fn slim(object: &mut Value) {
    let is_pod = object.get("kind").and_then(Value::as_str) == Some("Pod")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1");
    if let Some(metadata) = fields(object, "metadata") {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    if !is_pod {
        return;
    }
    if let Some(spec) = fields(object, "spec") {
        spec.retain(|name, _| SPEC.contains(&name.as_str()));
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(container) = container.as_object_mut() {
                    container.retain(|name, _| CONTAINER.contains(&name.as_str()));
                    only_devices(container);
                }
            }
        }
    }
    if let Some(status) = fields(object, "status") {
        status.retain(|name, _| STATUS.contains(&name.as_str()));
    }
}

/// Leaves of a secret the values that say where a model is: those of data connections. Whoever names a secret of another kind learns that it
/// is there.
pub fn slim_secret(object: &mut Value) {
    let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
    let is_config = object.pointer("/metadata/name").and_then(Value::as_str) == Some("storage-config");
    if !is_secret || is_config {
        return;
    }
    for list in ["data", "stringData"] {
        if let Some(data) = fields(object, list) {
            data.retain(|key, _| key.starts_with("AWS_"));
        }
    }
}

/// Leaves of a container's resources the limits on devices.
fn only_devices(container: &mut Map<String, Value>) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return };
    resources.retain(|name, _| name == "limits");
    if let Some(Value::Object(limits)) = resources.get_mut("limits") {
        limits.retain(|name, _| is_device(name));
        if limits.is_empty() {
            container.remove("resources");
        }
    } else {
        container.remove("resources");
    }
}

fn fields<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Pod, View as _};
    use serde_json::json;

    #[test]
    fn views_read_the_same_before_and_after() {
        let full = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "lab-0", "namespace": "n", "uid": "u", "labels": {"a": "b"},
                "annotations": {"x": "y", LAST_APPLIED: "{}"}, "managedFields": [{"manager": "kubelet"}],
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "lab", "uid": "v", "controller": true}]},
            "spec": {"nodeName": "a", "volumes": [{"name": "v"}], "tolerations": [{}],
                "containers": [{"name": "lab", "image": "x:1", "imagePullPolicy": "Always", "env": [{"name": "A"}], "ports": [{"containerPort": 8889}],
                    "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}, "requests": {"cpu": "1"}}, "volumeMounts": [{"name": "v"}]}],
                "initContainers": [{"name": "i", "image": "y:1", "command": ["a"]}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "qosClass": "Burstable", "podIPs": [{"ip": "10.0.0.1"}],
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "lab", "imageID": "x", "ready": true, "restartCount": 2,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]},
        });
        let mut slim_one = full.clone();
        slim(&mut slim_one);
        let (before, after) = (Pod::of(&full), Pod::of(&slim_one));
        assert!(slim_one.to_string().len() < full.to_string().len() * 3 / 4);
        assert!(!slim_one.to_string().contains("managedFields") && !slim_one.to_string().contains("env"));
        assert_eq!((before.key(), before.node(), before.phase()), (after.key(), after.node(), after.phase()));
        assert_eq!((before.is_running(), before.is_ready()), (after.is_running(), after.is_ready()));
        let containers = |pod: Pod<'_>| {
            let all = pod.containers().into_iter();
            all.map(|c| (c.name.to_owned(), c.image.to_owned(), c.pull_policy(), c.restarts()))
                .collect::<Vec<_>>()
        };
        assert_eq!(containers(before), containers(after));
        assert_eq!((before.port("lab"), after.port("lab")), (Some(8889), Some(8889)));
        assert_eq!((before.port("i"), after.port("other")), (None, None));
        assert_eq!(after.annotation("x"), Some("y"));
        let limits = slim_one.pointer("/spec/containers/0/resources");
        assert_eq!(limits, Some(&json!({"limits": {"nvidia.com/gpu": "2"}})));

        let mut other = json!({"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "a", "managedFields": []},
            "spec": {"anything": 1}});
        slim(&mut other);
        assert_eq!(other["spec"], json!({"anything": 1}));
        for mut odd in
            [json!(null), json!("Pod"), json!({"apiVersion": "v1", "kind": "Pod", "spec": [], "status": 1})]
        {
            slim(&mut odd);
        }
    }
}
