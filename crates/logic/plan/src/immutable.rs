//! Fields that cannot be changed once an object exists.
//!
//! Source: the `Validate*Update` functions of `pkg/apis/*/validation` in Kubernetes 1.35. What is missing here is refused
//! by the server, and told as such.

use serde_json::Value;

use scantling_api::{ObjectKey, object};

use crate::settled::settled;

/// What of `.spec` of a kind may change; everything else there may not.
const STATEFUL_SET: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "revisionHistoryLimit",
];
const CLAIM: [&str; 2] = ["resources", "volumeAttributesClassName"];

/// The fields of `desired` that differ from `live` and cannot be changed, as paths.
pub(crate) fn immutable_changes(key: &ObjectKey, live: &Value, desired: &Value) -> Vec<String> {
    let mut fields: Vec<String> = match (key.group.as_str(), key.kind.as_str()) {
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet") => paths(&["/spec/selector"]),
        ("apps", "StatefulSet") => all_but(desired, &STATEFUL_SET),
        ("batch", "Job") => {
            let mut fields = paths(&["/spec/template", "/spec/selector", "/spec/completionMode"]);
            if object::text(live, "/spec/completionMode") != "Indexed" {
                fields.extend(paths(&["/spec/completions"]));
            }
            fields
        }
        ("", "PersistentVolumeClaim") => all_but(desired, &CLAIM),
        ("", "Service") => paths(&["/spec/clusterIP"]),
        ("", "Secret") => {
            let mut fields = paths(&["/type"]);
            fields.extend(sealed(live, &["/data"]));
            fields
        }
        ("", "ConfigMap") => sealed(live, &["/data", "/binaryData"]),
        ("storage.k8s.io", "StorageClass") => {
            paths(&["/parameters", "/provisioner", "/reclaimPolicy", "/volumeBindingMode"])
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => paths(&["/roleRef"]),
        ("scheduling.k8s.io", "PriorityClass") => paths(&["/value", "/preemptionPolicy"]),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            paths(&["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"])
        }
        _ => Vec::new(),
    };
    fields.retain(|pointer| {
        let (Some(found), Some(wanted)) = (live.pointer(pointer), desired.pointer(pointer)) else {
            // A service without an address gets one, and a claim without a volume is bound; a selector cannot vanish.
            return sealed_differs(pointer, live, desired);
        };
        // An applied mapping is merged: what is there already stays, whether or not it is wanted. A selector that gets
        // smaller is therefore a change too.
        !settled(found, wanted, None) || pointer == "/spec/selector" && grown(found, wanted)
    });
    fields.iter().map(|pointer| pointer.replace('/', ".")).collect()
}

fn paths(pointers: &[&str]) -> Vec<String> {
    pointers.iter().map(|p| (*p).to_owned()).collect()
}

fn all_but(desired: &Value, may_change: &[&str]) -> Vec<String> {
    let spec = desired.get("spec").and_then(Value::as_object).into_iter().flatten();
    spec.filter(|(name, _)| !may_change.contains(&name.as_str()))
        .map(|(name, _)| format!("/spec/{name}"))
        .collect()
}

/// The data of an object that was declared immutable.
fn sealed(live: &Value, pointers: &[&str]) -> Vec<String> {
    if live.get("immutable").and_then(Value::as_bool) == Some(true) { paths(pointers) } else { Vec::new() }
}

fn sealed_differs(pointer: &str, live: &Value, desired: &Value) -> bool {
    matches!(pointer, "/data" | "/binaryData")
        && live.pointer(pointer).is_some() != desired.pointer(pointer).is_some()
}

/// Whether the labels of a selector in the cluster are more than those that are wanted.
fn grown(live: &Value, wanted: &Value) -> bool {
    let labels = |selector: &Value| object::mapping(selector, "/matchLabels").map_or(0, serde_json::Map::len);
    labels(live) > labels(wanted)
}

/// Whether an object may be deleted to be created again with other fields: not if what it holds or means to others
/// would go with it.
pub(crate) fn may_be_replaced(key: &ObjectKey) -> bool {
    !matches!(
        (key.group.as_str(), key.kind.as_str()),
        ("", "PersistentVolumeClaim" | "PersistentVolume" | "Namespace")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("project.openshift.io", "Project")
    )
}

/// Whether an object keeps pods running, which end when it is deleted.
pub(crate) fn runs_pods(key: &ObjectKey) -> bool {
    key.group == "apps"
        && matches!(key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_changed() {
        let cases = [
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
                json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}}),
                vec![".spec.selector"],
            ),
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"selector": {"matchLabels": {"a": "b", "c": "d"}}}}),
                json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
                vec![".spec.selector"],
            ),
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}}),
                json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}}),
                vec![],
            ),
            (
                "apps/v1",
                "StatefulSet",
                json!({"spec": {"serviceName": "a", "replicas": 1}}),
                json!({"spec": {"serviceName": "b", "replicas": 2}}),
                vec![".spec.serviceName"],
            ),
            (
                "batch/v1",
                "Job",
                json!({"spec": {"template": {"spec": {"x": 1, "added": 2}}}}),
                json!({"spec": {"template": {"spec": {"x": 1}}}}),
                vec![],
            ),
            (
                "batch/v1",
                "Job",
                json!({"spec": {"template": {"spec": {"x": 1}}}}),
                json!({"spec": {"template": {"spec": {"x": 2}}}}),
                vec![".spec.template"],
            ),
            (
                "v1",
                "Service",
                json!({"spec": {"clusterIP": "10.0.0.1"}}),
                json!({"spec": {"clusterIP": "None"}}),
                vec![".spec.clusterIP"],
            ),
            ("v1", "Service", json!({"spec": {"clusterIP": "10.0.0.1"}}), json!({"spec": {}}), vec![]),
            ("v1", "ConfigMap", json!({"data": {"a": "b"}}), json!({"data": {"a": "c"}}), vec![]),
            (
                "v1",
                "ConfigMap",
                json!({"immutable": true, "data": {"a": "b"}}),
                json!({"immutable": true, "data": {"a": "c"}}),
                vec![".data"],
            ),
            (
                "v1",
                "PersistentVolumeClaim",
                json!({"spec": {"storageClassName": "a", "resources": {"requests": {"storage": "1Gi"}}}}),
                json!({"spec": {"storageClassName": "b", "resources": {"requests": {"storage": "2Gi"}}}}),
                vec![".spec.storageClassName"],
            ),
            (
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                json!({"roleRef": {"name": "a"}}),
                json!({"roleRef": {"name": "b"}}),
                vec![".roleRef"],
            ),
        ];
        for (version, kind, mut live, mut desired, expected) in cases {
            for object in [&mut live, &mut desired] {
                object["apiVersion"] = json!(version);
                object["kind"] = json!(kind);
                object["metadata"] = json!({"name": "x"});
            }
            let key = object::key(&live).unwrap();
            assert_eq!(immutable_changes(&key, &live, &desired), expected, "{live} {desired}");
        }
    }
}
