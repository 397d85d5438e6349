//! Holds an upgraded cluster against a freshly installed one.
//!
//! What differs from one cluster to the next by nature is left out: identities and times in metadata, objects that
//! controllers make under random names, what runs remember of themselves, and the values of generated secrets. Of a status only the contents of image
//! streams count.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::ObjectKey;
use serde::Serialize;
use serde_json::Value;

/// Kinds that controllers keep for themselves or write into (service accounts), or that are about one moment.
const PASSING_KINDS: [(&str, &str); 12] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("coordination.k8s.io", "Lease"),
    ("", "Pod"),
    ("apps", "ReplicaSet"),
    ("apps", "ControllerRevision"),
    ("build.openshift.io", "Build"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("", "Node"),
    ("image.openshift.io", "ImageStreamImport"),
    ("image.openshift.io", "Image"),
];

/// Service accounts that every namespace gets.
const PASSING_SERVICE_ACCOUNTS: [&str; 3] = ["default", "builder", "deployer"];

/// Where runs keep their journal and state, in config maps that tell how a cluster came to be as it is.
const RUNS_NAMESPACE: &str = "scantling-system";

/// Metadata that every cluster gives anew.
const PASSING_METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "ownerReferences",
];

/// Annotations in which tools remember how they wrote an object.
const PASSING_ANNOTATIONS: [&str; 3] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "openshift.io/image.dockerRepositoryCheck",
];

/// The outcome of a comparison.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Objects that were held against each other, or found on one side only.
    pub objects: usize,
    /// What differs.
    pub differences: Vec<Difference>,
}

/// Something that differs between the upgraded and the fresh cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The object.
    pub object: String,
    /// The field, as in `.data["team-notes"]`; absent if the whole object is on one side only.
    pub field: Option<String>,
    /// What the upgraded cluster has.
    pub upgraded: Option<String>,
    /// What a fresh one has.
    pub fresh: Option<String>,
    /// Whose it is: a person, the vendor's installer, or a field manager.
    pub owner: String,
    /// Whether it may differ: it is none of the platform's.
    pub excused: bool,
}

/// One side of a comparison: objects as an API server has them.
pub type Objects = BTreeMap<ObjectKey, Value>;

/// A value that is generated once for each cluster, so that it differs between two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generated {
    /// The Secret.
    pub key: ObjectKey,
    /// The key in its data.
    pub data_key: String,
}

/// Compares two clusters. `owner` says whose a difference is and whether it may differ.
pub fn compare(
    upgraded: &Objects,
    fresh: &Objects,
    generated: &BTreeSet<Generated>,
    owner: impl Fn(&ObjectKey, Option<&[Segment]>, Sides) -> (String, bool),
) -> Comparison {
    let is_compared = |key: &&ObjectKey| {
        let passing_account =
            key.kind == "ServiceAccount" && PASSING_SERVICE_ACCOUNTS.contains(&key.name.as_str());
        let bookkeeping = key.kind == "ConfigMap" && key.namespace.as_deref() == Some(RUNS_NAMESPACE);
        let passing = PASSING_KINDS.contains(&(key.group.as_str(), key.kind.as_str()));
        !(passing || passing_account || bookkeeping)
    };
    let keys: BTreeSet<&ObjectKey> = upgraded.keys().chain(fresh.keys()).filter(is_compared).collect();
    let mut comparison = Comparison { objects: keys.len(), differences: Vec::new() };
    for key in keys {
        let object = key.to_string();
        match (upgraded.get(key), fresh.get(key)) {
            (Some(a), Some(b)) => {
                let (a, b) = (normal(key, a, generated), normal(key, b, generated));
                let mut found = Vec::new();
                differences(&a, &b, &mut Vec::new(), &mut found);
                for (path, a, b) in found {
                    let sides = Sides { upgraded: a.is_some(), fresh: b.is_some() };
                    let (owner, excused) = owner(key, Some(&path), sides);
                    comparison.differences.push(Difference {
                        object: object.clone(),
                        field: Some(field(&path)),
                        upgraded: a.map(|value| shown(key, &value)),
                        fresh: b.map(|value| shown(key, &value)),
                        owner,
                        excused,
                    });
                }
            }
            (a, _) => {
                let there = Some("present".to_owned());
                let sides = Sides { upgraded: a.is_some(), fresh: a.is_none() };
                let (owner, excused) = owner(key, None, sides);
                comparison.differences.push(Difference {
                    object,
                    field: None,
                    upgraded: a.and(there.clone()),
                    fresh: if a.is_some() { None } else { there },
                    owner,
                    excused,
                });
            }
        }
    }
    comparison
}

/// On which side something that differs is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// In the upgraded cluster.
    pub upgraded: bool,
    /// In the fresh one.
    pub fresh: bool,
}

/// A step of the way to a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// Of a map.
    Key(String),
    /// Of a list.
    Index(usize),
}

fn normal(key: &ObjectKey, object: &Value, generated: &BTreeSet<Generated>) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        let streams = if key.kind == "ImageStream" { map.get("status").map(stream_contents) } else { None };
        map.remove("status");
        if let Some(streams) = streams {
            map.insert("status".to_owned(), streams);
        }
        if let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) {
            // Given by the API server from a pool, and counted by it.
            for passing in ["clusterIP", "clusterIPs"] {
                spec.remove(passing);
            }
            for tag in spec.get_mut("tags").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(tag) = tag.as_object_mut() {
                    tag.remove("generation");
                }
            }
            for trigger in spec.get_mut("triggers").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(change) = trigger.get_mut("imageChange").and_then(Value::as_object_mut) {
                    change.remove("lastTriggeredImageID");
                }
            }
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for passing in PASSING_METADATA {
            metadata.remove(passing);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            for passing in PASSING_ANNOTATIONS {
                annotations.remove(passing);
            }
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
        for (name, value) in data {
            if generated.contains(&Generated { key: key.clone(), data_key: name.clone() }) {
                *value = Value::String("(generated)".to_owned());
            }
        }
    }
    object
}

/// The current digest of each tag of an image stream.
fn stream_contents(status: &Value) -> Value {
    let tags = status.get("tags").and_then(Value::as_array).into_iter().flatten();
    Value::Object(
        tags.filter_map(|tag| {
            let name = tag.get("tag")?.as_str()?.to_owned();
            let image = tag.pointer("/items/0/image").cloned().unwrap_or_default();
            Some((name, image))
        })
        .collect(),
    )
}

type Found = (Vec<Segment>, Option<Value>, Option<Value>);

fn differences(a: &Value, b: &Value, path: &mut Vec<Segment>, found: &mut Vec<Found>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                path.push(Segment::Key(key.clone()));
                child(a.get(key), b.get(key), path, found);
                path.pop();
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for index in 0..a.len().max(b.len()) {
                path.push(Segment::Index(index));
                child(a.get(index), b.get(index), path, found);
                path.pop();
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push((path.clone(), Some(a.clone()), Some(b.clone()))),
    }
}

fn child(a: Option<&Value>, b: Option<&Value>, path: &mut Vec<Segment>, found: &mut Vec<Found>) {
    match (a, b) {
        (Some(a), Some(b)) => differences(a, b, path, found),
        // An empty map where the other has none says nothing: what was in it is what differs.
        (Some(Value::Object(one)), None) | (None, Some(Value::Object(one))) => {
            for (key, value) in one {
                path.push(Segment::Key(key.clone()));
                let value = Some(value);
                if a.is_some() {
                    child(value, None, path, found);
                } else {
                    child(None, value, path, found);
                }
                path.pop();
            }
        }
        // What is null is as good as absent.
        (Some(Value::Null), None) | (None, Some(Value::Null)) => {}
        (a, b) => found.push((path.clone(), a.cloned(), b.cloned())),
    }
}

fn shown(key: &ObjectKey, value: &Value) -> String {
    if key.kind == "Secret" {
        return "(secret)".to_owned();
    }
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(80).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// A path as `kubectl` and jq write it: `.data["team-notes"]`, `.spec.tags[0].name`.
pub fn field(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Key(key) if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                text.push('.');
                text.push_str(key);
            }
            Segment::Key(key) => {
                text.push_str("[\"");
                text.push_str(key);
                text.push_str("\"]");
            }
            Segment::Index(index) => {
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use scantling_api::ObjectKey;
    use serde_json::{Value, json};

    use super::{Generated, Objects, compare};

    fn cluster(objects: &[Value]) -> Objects {
        objects.iter().map(|object| (scantling_api::object::key(object).unwrap(), object.clone())).collect()
    }

    fn map(name: &str, data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "uid": name}, "data": data})
    }

    #[test]
    fn equal_but_for_what_every_cluster_gives_anew() {
        let a = map("a", &json!({"x": "1"}));
        let mut b = a.clone();
        b["metadata"]["uid"] = json!("other");
        b["metadata"]["resourceVersion"] = json!("7");
        let comparison =
            compare(&cluster(&[a]), &cluster(&[b]), &BTreeSet::new(), |_, _, _| (String::new(), false));
        assert_eq!((comparison.objects, comparison.differences.len()), (1, 0));
    }

    #[test]
    fn each_difference_has_its_field_and_owner() {
        let a = cluster(&[map("a", &json!({"x": "1", "team-notes": "hello"})), map("only", &json!({}))]);
        let b = cluster(&[map("a", &json!({"x": "2"}))]);
        let comparison = compare(&a, &b, &BTreeSet::new(), |key, path, _| {
            (format!("{}{}", key.name, path.is_some()), true)
        });
        let found: Vec<_> = comparison
            .differences
            .iter()
            .map(|d| (d.field.as_deref(), d.upgraded.as_deref(), d.fresh.as_deref(), d.owner.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (Some(".data[\"team-notes\"]"), Some("hello"), None, "atrue"),
                (Some(".data.x"), Some("1"), Some("2"), "atrue"),
                (None, Some("present"), None, "onlyfalse"),
            ]
        );
    }

    #[test]
    fn generated_values_may_differ_and_others_not_and_neither_is_shown() {
        let secret = |root: &str, other: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"},
                   "data": {"root": root, "other": other}})
        };
        let generated = BTreeSet::from([Generated {
            key: ObjectKey::namespaced("", "Secret", "n", "s"),
            data_key: "root".to_owned(),
        }]);
        let comparison = compare(
            &cluster(&[secret("YQ==", "YQ==")]),
            &cluster(&[secret("Yg==", "Yg==")]),
            &generated,
            |_, _, _| (String::new(), false),
        );
        let found: Vec<_> =
            comparison.differences.iter().map(|d| (d.field.as_deref(), d.upgraded.as_deref())).collect();
        assert_eq!(found, [(Some(".data.other"), Some("(secret)"))]);
    }
}
