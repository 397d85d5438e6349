//! Fields of others that cannot stay as they are.
//!
//! A merge keeps what others have put beside the release's fields. Twice the result is none that a server takes: an item
//! of a list has the name of one of the release's items, where every name may be there only once; and something that the
//! release drops is gone but for what others have added to it.

use scantling_api::{ObjectKey, object};
use scantling_merge::{Element, FieldSet, KeyValue, Owner, Path};
use serde_json::{Value, json};

use crate::object::{MANAGER, is_ours};
use crate::value::Typed;

/// The protocol of a port that names none.
const DEFAULT_PROTOCOL: &str = "TCP";

/// An item of somebody else's that has the name of one of the release's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Namesake {
    /// The item of somebody else.
    pub(crate) theirs: Path,
    /// The item of the release.
    pub(crate) ours: Path,
}

/// A list of ports: its path, the field that is its key, and the fields that must differ beside the key.
struct Ports {
    at: Path,
    key: &'static str,
    unique: &'static [&'static str],
}

/// The lists of `merged` whose items must have different names although these are not their keys.
///
/// Source: `validateContainerPorts` and `ValidateService` of `pkg/apis/core/validation` in Kubernetes 1.35.
fn ports(key: &ObjectKey, merged: &Value) -> Vec<Ports> {
    if key.group.is_empty() && key.kind == "Service" {
        let at = Path::fields(["spec", "ports"]);
        return vec![Ports { at, key: "port", unique: &["name", "nodePort"] }];
    }
    let Some(pods) = object::gvk(merged).ok().and_then(|gvk| object::pod_spec_pointer(&gvk)) else {
        return Vec::new();
    };
    let pods_path = Path::fields(pods.split('/').skip(1));
    let mut lists = Vec::new();
    for list in ["containers", "initContainers"] {
        let containers = merged.pointer(pods).and_then(|spec| spec.get(list)).and_then(Value::as_array);
        for name in containers.into_iter().flatten().filter_map(|c| c.get("name")?.as_str()) {
            let at = pods_path
                .child(Element::field(list))
                .child(Element::key("name", name))
                .child(Element::field("ports"));
            lists.push(Ports { at, key: "containerPort", unique: &["name"] });
        }
    }
    lists
}

/// The items of `merged` that have a name, or a node's port, of an item of `desired` and are another one.
pub(crate) fn namesakes(key: &ObjectKey, typed: Typed<'_>, desired: &Value, merged: &Value) -> Vec<Namesake> {
    let mut found = Vec::new();
    for ports in ports(key, merged) {
        let items = |object| typed.find(object, &ports.at).and_then(Value::as_array).into_iter().flatten();
        let path = |item: &Value| {
            let number = item.get(ports.key)?.clone();
            let protocol = item.get("protocol").cloned().unwrap_or_else(|| json!(DEFAULT_PROTOCOL));
            let keys =
                vec![(ports.key.to_owned(), KeyValue(number)), ("protocol".to_owned(), KeyValue(protocol))];
            Some(ports.at.child(Element::Key(keys)))
        };
        let same = |a: &Value, b: &Value| {
            let value = |item: &Value, field: &str| item.get(field).filter(|v| !v.is_null()).cloned();
            ports.unique.iter().any(|field| value(a, field).is_some() && value(a, field) == value(b, field))
        };
        for wanted in items(desired) {
            for other in items(merged).filter(|other| same(wanted, other)) {
                let (Some(ours), Some(theirs)) = (path(wanted), path(other)) else { continue };
                // What the release itself has twice is its own fault, and said by the server.
                let declared = || items(desired).any(|item| path(item).as_ref() == Some(&theirs));
                if ours != theirs && !declared() {
                    found.push(Namesake { theirs, ours });
                }
            }
        }
    }
    found
}

/// What is dropped by the release and stays in part, because others have fields in it: items of lists that are known by
/// a key, and the conversion of a definition, none of which is anything without the fields that go.
pub(crate) fn torsos(
    key: &ObjectKey,
    typed: Typed<'_>,
    base: &FieldSet,
    desired: &Value,
    live: &Value,
    merged: &Value,
) -> Vec<Path> {
    let conversion = Path::fields(["spec", "conversion"]);
    let of_definition = key.kind == "CustomResourceDefinition" && key.group == "apiextensions.k8s.io";
    let paths = base.paths();
    let mut candidates: Vec<Path> = paths
        .iter()
        .filter(|path| matches!(path.0.last(), Some(Element::Key(_))))
        .cloned()
        .chain(of_definition.then_some(conversion))
        .collect();
    candidates.sort();
    let mut found: Vec<Path> = Vec::new();
    for path in candidates {
        let stays = typed.find(desired, &path).is_none() && typed.find(merged, &path).is_some();
        if !stays || found.iter().any(|outer| path.0.starts_with(&outer.0)) {
            continue;
        }
        let goes = |leaf: &&Path| typed.find(live, leaf).is_some() && typed.find(merged, leaf).is_none();
        if paths
            .iter()
            .filter(|leaf| leaf.0.len() > path.0.len() && leaf.0.starts_with(&path.0))
            .any(|l| goes(&l))
        {
            found.push(path);
        }
    }
    found
}

/// The fields at and below a path that anybody owns.
pub(crate) fn owned_below(owners: &[Owner], path: &Path) -> FieldSet {
    let mut fields: FieldSet = owners
        .iter()
        .filter(|owner| owner.subresource.is_none())
        .flat_map(|owner| owner.fields.paths())
        .filter(|field| field.0.starts_with(&path.0))
        .collect();
    fields.insert(path);
    fields
}

/// The `managedFields` of an object in which some fields are ours alone, so that applying without them removes them.
pub(crate) fn hand_over(live: &Value, fields: &FieldSet, api_version: &str) -> Value {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut given = fields.clone();
    let mut others = Vec::new();
    for entry in entries.into_iter().flatten() {
        let one = json!({"metadata": {"managedFields": [entry]}});
        let owner = scantling_merge::field_owners(&one).into_iter().next();
        let Some(owner) = owner.filter(|owner| owner.subresource.is_none()) else {
            others.push(entry.clone());
            continue;
        };
        if is_ours(&owner) && owner.api_version == api_version {
            given = given.union(&owner.fields);
            continue;
        }
        let rest = owner.fields.difference(fields);
        if !rest.leaves().is_empty() {
            let mut entry = entry.clone();
            entry["fieldsV1"] = rest.to_fields_v1();
            others.push(entry);
        }
    }
    others.insert(
        0,
        json!({
            "manager": MANAGER, "operation": "Apply", "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": given.to_fields_v1(),
        }),
    );
    Value::Array(others)
}
