//! What the server keeps in `metadata`: generations, deletion, finalizers.

use scantling_api::{KindFacts, object};
use serde_json::{Map, Value, json};

use super::Cause;

/// Fields of `metadata` that only the server writes.
const SERVER_SIDE: [&str; 5] =
    ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"];

/// `metadata`, made if it is missing or no mapping.
pub(super) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    as_mapping(as_mapping(object).entry("metadata").or_insert(Value::Null))
}

/// The mapping at a value, which becomes one if it is something else.
pub(super) fn as_mapping(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("made a mapping above"),
    }
}

/// Takes away what a client may not say about a new object.
pub(super) fn clear_server_side(object: &mut Value) {
    let metadata = metadata(object);
    for field in SERVER_SIDE.into_iter().chain(["creationTimestamp"]) {
        metadata.remove(field);
    }
}

/// Gives a written object the server's side of the live one, and says what it may not have changed.
pub(super) fn carry_over(live: &Value, new: &mut Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let before = live.get("metadata").and_then(Value::as_object);
    let before = |field: &str| before.and_then(|fields| fields.get(field)).cloned();
    let fields = metadata(new);
    let created = before("creationTimestamp");
    if let Some(written) = fields.get("creationTimestamp").filter(|written| !written.is_null())
        && Some(written) != created.as_ref()
    {
        causes.push(Cause::invalid("metadata.creationTimestamp", written, "field is immutable"));
    }
    for field in SERVER_SIDE.into_iter().chain(["creationTimestamp", "resourceVersion", "name", "namespace"])
    {
        match before(field) {
            Some(value) => fields.insert(field.to_owned(), value),
            None => fields.remove(field),
        };
    }
    let names = |value: Option<&Value>| -> Vec<Value> {
        value.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    if fields.contains_key("deletionTimestamp") {
        let old = names(before("finalizers").as_ref());
        let added: Vec<String> = names(fields.get("finalizers"))
            .iter()
            .filter(|name| !old.contains(name))
            .map(|name| format!("{name}"))
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &detail));
        }
    }
    causes
}

/// Whether a kind counts its generations: the built-in ones whose strategies do (`strategy.go` of each registry), and
/// all custom ones.
pub(super) fn counts_generations(facts: &KindFacts, custom: bool) -> bool {
    custom
        || matches!(
            (facts.gvk.group.as_str(), facts.gvk.kind.as_str()),
            ("", "Pod" | "PodTemplate" | "ReplicationController")
                | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
                | ("batch", "Job" | "CronJob")
                | ("policy", "PodDisruptionBudget")
                | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
                | ("apiextensions.k8s.io", "CustomResourceDefinition")
                | ("scheduling.k8s.io", "PriorityClass")
                | ("storage.k8s.io", "CSIDriver")
                | ("discovery.k8s.io", "EndpointSlice")
                | (
                    "admissionregistration.k8s.io"
                        | "flowcontrol.apiserver.k8s.io"
                        | "config.openshift.io"
                        | "operator.openshift.io",
                    _
                )
        )
}

/// Whether a change is one of what is wanted, not only of metadata or status.
pub(super) fn is_new_generation(facts: &KindFacts, custom: bool, live: &Value, new: &Value) -> bool {
    if facts.gvk.group == "apps" && facts.gvk.kind == "Deployment" {
        // The deployment strategy counts annotations, too, since they reach the replica sets.
        let annotations = |object: &Value| object.pointer("/metadata/annotations").cloned();
        return live.get("spec") != new.get("spec") || annotations(live) != annotations(new);
    }
    let wanted = |object: &Value| {
        let fields = object.as_object().cloned().unwrap_or_default();
        let skip =
            |name: &str| name == "metadata" || name == "apiVersion" || facts.status && name == "status";
        fields.into_iter().filter(|(name, _)| !skip(name)).collect::<Map<_, _>>()
    };
    if custom || live.get("spec").is_none() {
        return wanted(live) != wanted(new);
    }
    live.get("spec") != new.get("spec")
}

/// Whether two states of an object differ in nothing but the times of their `managedFields`: a server does not write then.
pub(super) fn same_but_for_times(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_object(), new.as_object()) else { return live == new };
    same_fields(live, new, |name, live, new| match (name, live.as_object(), new.as_object()) {
        ("metadata", Some(live), Some(new)) => same_fields(live, new, |name, live, new| match name {
            "managedFields" => same_entries(live, new),
            _ => live == new,
        }),
        _ => live == new,
    })
}

fn same_fields(
    live: &Map<String, Value>,
    new: &Map<String, Value>,
    same: impl Fn(&str, &Value, &Value) -> bool,
) -> bool {
    live.len() == new.len()
        && live.iter().all(|(name, value)| new.get(name).is_some_and(|other| same(name, value, other)))
}

fn same_entries(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_array(), new.as_array()) else { return live == new };
    let fields = |entry: &Value| -> Vec<(String, Value)> {
        let fields = entry.as_object().into_iter().flatten().filter(|(name, _)| *name != "time");
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    live.len() == new.len()
        && live.iter().zip(new).all(|(live, new)| live == new || fields(live) == fields(new))
}

/// Ownership through `scale` has no time on a real server, and entries are ordered by their times.
pub(super) fn forget_time_of_scale(object: &mut Value) {
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    let Some(entries) = entries else { return };
    for entry in entries.iter_mut().filter(|entry| entry.get("subresource") == Some(&json!("scale"))) {
        if let Some(fields) = entry.as_object_mut() {
            fields.remove("time");
        }
    }
    entries.sort_by_key(|entry| {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("operation"), text("time"), text("manager"), text("apiVersion"), text("subresource"))
    });
}

/// Whether finalizers hold an object; a namespace has some in its spec, too.
pub(super) fn has_finalizers(object: &Value) -> bool {
    let filled =
        |pointer| object.pointer(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let namespace =
        object::text(object, "/kind") == "Namespace" && object::text(object, "/apiVersion") == "v1";
    filled("/metadata/finalizers") || namespace && filled("/spec/finalizers")
}

/// Whether nothing holds an object any more that is being deleted.
pub(super) fn is_over(object: &Value) -> bool {
    !object::text(object, "/metadata/deletionTimestamp").is_empty()
        && !has_finalizers(object)
        && object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
}

/// Adds a finalizer unless it is there.
pub(super) fn add_finalizer(object: &mut Value, name: &str) {
    let list = metadata(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.iter().any(|found| found == name)
    {
        list.push(json!(name));
    }
}

/// Takes a finalizer away; whether it was there.
pub(super) fn remove_finalizer(object: &mut Value, name: &str) -> bool {
    let metadata = metadata(object);
    let Some(list) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|found| found != name);
    let removed = list.len() < before;
    if list.is_empty() {
        metadata.remove("finalizers");
    }
    removed
}
