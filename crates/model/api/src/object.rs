//! Reading the parts that every object has, and the containers of those that run pods.

use serde_json::{Map, Value};

use crate::kind::{GroupVersionKind, KeyError, ObjectKey};

/// What a value is, for messages.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// The identity of an object.
pub fn key(object: &Value) -> Result<ObjectKey, KeyError> {
    let gvk = gvk(object)?;
    Ok(ObjectKey {
        group: gvk.group,
        kind: gvk.kind,
        namespace: optional(object, "/metadata/namespace", "metadata.namespace")?.map(str::to_owned),
        name: required(object, "/metadata/name", "metadata.name")?.to_owned(),
    })
}

/// Group, version and kind from `apiVersion` and `kind`.
pub fn gvk(object: &Value) -> Result<GroupVersionKind, KeyError> {
    if !object.is_object() {
        return Err(KeyError::NotAMapping(type_name(object)));
    }
    let api_version = required(object, "/apiVersion", "apiVersion")?;
    Ok(GroupVersionKind::from_api_version(api_version, required(object, "/kind", "kind")?))
}

/// `metadata.name`, empty if there is none.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`, if it is there and not empty.
pub fn namespace(object: &Value) -> Option<&str> {
    Some(text(object, "/metadata/namespace")).filter(|namespace| !namespace.is_empty())
}

/// `metadata.uid`, empty if there is none.
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// `metadata.resourceVersion`, empty if there is none.
pub fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// `metadata.labels` as pairs; values that are no strings are left out.
pub fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    strings(object.pointer("/metadata/labels"))
}

/// `metadata.annotations` as pairs; values that are no strings are left out.
pub fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    strings(object.pointer("/metadata/annotations"))
}

/// One label.
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(name)?.as_str()
}

/// One annotation.
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// A reference to an owner, as `metadata.ownerReferences` holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerReference {
    /// Kind of the owner, with its group and version.
    pub gvk: GroupVersionKind,
    /// Name of the owner, in the same namespace or in none.
    pub name: String,
    /// Uid of the owner: a new object of the same name is another owner.
    pub uid: String,
    /// Whether it is the one owner that controls the object.
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits for the object.
    pub block_owner_deletion: bool,
}

/// The owners of an object; entries that lack a name, kind or uid are left out.
pub fn owner_references(object: &Value) -> Vec<OwnerReference> {
    let entries = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let flag = |name: &str| entry.get(name).and_then(Value::as_bool).unwrap_or(false);
            Some(OwnerReference {
                gvk: GroupVersionKind::from_api_version(text("apiVersion")?, text("kind")?),
                name: text("name")?.to_owned(),
                uid: text("uid")?.to_owned(),
                controller: flag("controller"),
                block_owner_deletion: flag("blockOwnerDeletion"),
            })
        })
        .collect()
}

/// The owner that controls an object.
pub fn controller(object: &Value) -> Option<OwnerReference> {
    owner_references(object).into_iter().find(|owner| owner.controller)
}

/// Which of a pod's three lists of containers one stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerKind {
    /// `initContainers`: run one after the other before the others (or beside them, if they always restart).
    Init,
    /// `containers`.
    Regular,
    /// `ephemeralContainers`: added to a running pod.
    Ephemeral,
}

impl ContainerKind {
    /// Name of the list in a pod's spec.
    pub fn field(self) -> &'static str {
        match self {
            ContainerKind::Init => "initContainers",
            ContainerKind::Regular => "containers",
            ContainerKind::Ephemeral => "ephemeralContainers",
        }
    }

    /// Name of the list of states in a pod's status.
    pub fn status_field(self) -> &'static str {
        match self {
            ContainerKind::Init => "initContainerStatuses",
            ContainerKind::Regular => "containerStatuses",
            ContainerKind::Ephemeral => "ephemeralContainerStatuses",
        }
    }
}

/// A container in a pod's spec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Container<'a> {
    /// Which list it stands in.
    pub kind: ContainerKind,
    /// Position in that list.
    pub index: usize,
    /// The container.
    pub value: &'a Value,
}

impl<'a> Container<'a> {
    /// Name, empty if there is none.
    pub fn name(&self) -> &'a str {
        self.value.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The image as written, if any.
    pub fn image(&self) -> Option<&'a str> {
        self.value.get("image").and_then(Value::as_str)
    }
}

/// All containers of a pod's spec: init, regular, ephemeral.
pub fn pod_containers(pod_spec: &Value) -> Vec<Container<'_>> {
    [ContainerKind::Init, ContainerKind::Regular, ContainerKind::Ephemeral]
        .into_iter()
        .flat_map(|kind| {
            let list = pod_spec.get(kind.field()).and_then(Value::as_array);
            list.into_iter().flatten().enumerate().map(move |(index, value)| Container { kind, index, value })
        })
        .collect()
}

/// Where the pod's spec stands in an object that is a pod or makes pods, as a JSON pointer.
pub fn pod_spec_pointer(gvk: &GroupVersionKind) -> Option<&'static str> {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => Some("/spec"),
        ("", "PodTemplate") => Some("/template/spec"),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job") => Some("/spec/template/spec"),
        ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template/spec"),
        _ => None,
    }
}

/// The mapping at a pointer, if there is one.
pub fn mapping<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// The string at a pointer, empty if there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

fn optional<'a>(object: &'a Value, pointer: &str, field: &'static str) -> Result<Option<&'a str>, KeyError> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => Err(KeyError::NotAString { field, found: type_name(other) }),
    }
}

fn required<'a>(object: &'a Value, pointer: &str, field: &'static str) -> Result<&'a str, KeyError> {
    optional(object, pointer, field)?.ok_or(KeyError::Missing(field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn identity_is_read_or_refused_with_the_field() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "a", "name": "b"}});
        assert_eq!(key(&object), Ok(ObjectKey::namespaced("apps", "Deployment", "a", "b")));
        for (value, error) in [
            (json!([]), KeyError::NotAMapping("a list")),
            (json!({}), KeyError::Missing("apiVersion")),
            (json!({"apiVersion": "v1", "kind": ""}), KeyError::Missing("kind")),
            (json!({"apiVersion": "v1", "kind": "X", "metadata": null}), KeyError::Missing("metadata.name")),
            (
                json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": 5}}),
                KeyError::NotAString { field: "metadata.name", found: "a number" },
            ),
        ] {
            assert_eq!(key(&value), Err(error));
        }
    }

    #[test]
    fn owners_without_uid_are_no_owners() {
        let object = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": true},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"},
            7,
        ]}});
        let owners = owner_references(&object);
        assert_eq!(owners.len(), 1);
        assert_eq!(controller(&object), owners.first().cloned());
    }

    #[test]
    fn containers_of_all_three_lists_are_found() {
        let spec = json!({
            "containers": [{"name": "a", "image": "x"}, {"name": "b"}],
            "initContainers": [{"name": "i", "image": "y"}],
            "ephemeralContainers": "nonsense",
        });
        let found: Vec<_> =
            pod_containers(&spec).iter().map(|c| (c.kind, c.index, c.name(), c.image())).collect();
        assert_eq!(
            found,
            [
                (ContainerKind::Init, 0, "i", Some("y")),
                (ContainerKind::Regular, 0, "a", Some("x")),
                (ContainerKind::Regular, 1, "b", None),
            ]
        );
    }
}
