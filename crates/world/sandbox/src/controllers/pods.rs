//! What the workload controllers share: pods of an owner, pods from a template, hashes of templates.

use scantling_api::ObjectKey;
use serde_json::{Map, Value, json};

use crate::api::Status;
use crate::value::{controller_of, controller_reference, deleting, list, namespace, object_mut, text, uid};
use crate::world::World;

/// The pods that the owner controls, in the order of their names.
pub(crate) fn owned(world: &World, owner: &Value, kind: (&str, &str)) -> Vec<(ObjectKey, Value)> {
    let uid = uid(owner);
    world
        .dependents
        .get(uid)
        .into_iter()
        .flatten()
        .filter(|key| key.group == kind.0 && key.kind == kind.1)
        .filter_map(|key| Some((key.clone(), world.object(key)?)))
        .filter(|(_, object)| controller_of(object).is_some_and(|(_, _, owner)| owner == uid))
        .map(|(key, object)| (key, object.clone()))
        .collect()
}

/// Whether a pod counts: it has not ended and is not being deleted.
pub(crate) fn is_active(pod: &Value) -> bool {
    !deleting(pod) && !matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"))
}

/// A pod from the owner's template.
pub(crate) fn from_template(owner: &Value, extra_labels: &[(&str, &str)]) -> Value {
    let template = owner.pointer("/spec/template").cloned().unwrap_or_default();
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("namespace".into(), namespace(owner).into());
    metadata.insert("ownerReferences".into(), json!([controller_reference(owner)]));
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    for (name, value) in extra_labels {
        object_mut(&mut pod, &["metadata", "labels"]).insert((*name).to_owned(), (*value).into());
    }
    pod
}

/// Creates a pod and tells the owner's events.
pub(crate) fn create(world: &mut World, actor: &str, owner: &Value, pod: Value) -> Result<Value, Status> {
    let result = world.create(actor, pod);
    match &result {
        Ok(pod) => {
            let message = format!("Created pod: {}", crate::value::name(pod));
            world.event(actor, owner, "Normal", "SuccessfulCreate", &message);
        }
        Err(status) => {
            let message = format!("Error creating: {}", status.message);
            world.event(actor, owner, "Warning", "FailedCreate", &message);
        }
    }
    result
}

/// Deletes a pod and tells the owner's events.
pub(crate) fn delete(world: &mut World, actor: &str, owner: &Value, pod: &ObjectKey) {
    world.delete(actor, pod, None);
    world.event(actor, owner, "Normal", "SuccessfulDelete", &format!("Deleted pod: {}", pod.name));
}

/// A short hash of a pod template, in the alphabet of generated names.
pub(crate) fn template_hash(template: &Value) -> String {
    let mut hash: u32 = 0x811c_9dc5;
    // Maps print in the order of their keys, so equal templates print alike.
    for byte in template.to_string().bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    safe_encode(&hash.to_string())
}

/// Maps digits to characters that make no words, as Kubernetes does.
fn safe_encode(text: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    text.bytes()
        .map(|byte| char::from(ALPHABET.get(usize::from(byte) % ALPHABET.len()).copied().unwrap_or(b'b')))
        .collect()
}

/// The integer of a field that is a number or a percentage of `total`.
pub(crate) fn int_or_percent(value: Option<&Value>, default: &str, total: i64, round_up: bool) -> i64 {
    let percent = |text: &str| -> Option<i64> {
        let share = text.strip_suffix('%')?.parse::<i64>().ok()?;
        let scaled = share.checked_mul(total)?;
        Some(if round_up { (scaled + 99).div_euclid(100) } else { scaled.div_euclid(100) })
    };
    match value {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        Some(Value::String(text)) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0),
        _ => percent(default).or_else(|| default.parse().ok()).unwrap_or(0),
    }
    .max(0)
}

/// The last time of a pod's condition Ready turning True, for `minReadySeconds`.
pub(crate) fn ready_since(pod: &Value) -> Option<&str> {
    list(pod, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some("Ready"))
        .filter(|condition| text(condition, "/status") == Some("True"))
        .and_then(|condition| text(condition, "/lastTransitionTime"))
}

/// Whether a pod has been ready for so many seconds; if not yet, in how many milliseconds it will have.
pub(crate) fn available(world: &World, pod: &Value, min_ready_seconds: i64) -> Result<(), Option<u64>> {
    let Some(since) = ready_since(pod) else { return Err(None) };
    if min_ready_seconds <= 0 {
        return Ok(());
    }
    let Ok(since) = since.parse::<jiff::Timestamp>() else { return Err(None) };
    let left = since.as_second() + min_ready_seconds - world.timestamp().as_second();
    if left <= 0 { Ok(()) } else { Err(Some(u64::try_from(left).unwrap_or(0).saturating_mul(1000))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_percentages() {
        for (value, total, up, expected) in [
            (json!(2), 10, true, 2),
            (json!("25%"), 10, true, 3),
            (json!("25%"), 10, false, 2),
            (json!("25%"), 0, true, 0),
            (json!("100%"), 3, false, 3),
            (json!("3"), 10, false, 3),
            (json!(-1), 10, false, 0),
        ] {
            assert_eq!(int_or_percent(Some(&value), "0", total, up), expected, "{value}");
        }
        assert_eq!(int_or_percent(None, "25%", 4, true), 1);
    }

    #[test]
    fn equal_templates_hash_alike_whatever_the_order_of_keys() {
        let a = json!({"spec": {"a": 1, "b": 2}});
        let b = json!({"spec": {"b": 2, "a": 1}});
        assert_eq!(template_hash(&a), template_hash(&b));
        assert_ne!(template_hash(&a), template_hash(&json!({"spec": {"a": 1, "b": 3}})));
        assert!(template_hash(&a).len() <= 10);
    }
}
