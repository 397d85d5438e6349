//! Small helpers to read and write parts of an object.

use serde_json::{Map, Value};

/// The string at a JSON pointer.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// The string at a JSON pointer, or nothing when it is empty.
pub(crate) fn nonempty<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    text(value, pointer).filter(|text| !text.is_empty())
}

/// The integer at a JSON pointer.
pub(crate) fn int(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// Whether a JSON pointer leads to `true`.
pub(crate) fn flag(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at a JSON pointer; empty when there is none.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The fields of the object at a JSON pointer.
pub(crate) fn map<'a>(value: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    value.pointer(pointer).and_then(Value::as_object)
}

/// The object below `keys`, made when it is missing; whatever else stands there is replaced.
pub(crate) fn object_mut<'a>(value: &'a mut Value, keys: &[&str]) -> &'a mut Map<String, Value> {
    let mut current = value;
    for key in keys {
        current = as_object(current).entry((*key).to_owned()).or_insert(Value::Null);
    }
    as_object(current)
}

/// The object at one place of a list, made when something else stands there; the list is long enough.
pub(crate) fn object_mut_at(list: &mut Value, place: usize) -> &mut Map<String, Value> {
    if list.as_array().is_none_or(|items| items.len() <= place) {
        return as_object(list);
    }
    as_object(&mut list[place])
}

/// The entry of a tag in the status of an image stream.
pub(crate) fn latest_status_tag<'a>(stream: &'a Value, tag: &str) -> Option<&'a Value> {
    list(stream, "/status/tags").iter().find(|entry| text(entry, "/tag") == Some(tag))
}

/// Sets the field below `keys`; a null value removes it.
pub(crate) fn set(value: &mut Value, keys: &[&str], field: &str, new: Value) {
    let parent = object_mut(value, keys);
    if new.is_null() {
        parent.remove(field);
    } else {
        parent.insert(field.to_owned(), new);
    }
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // The line above made it an object.
        _ => unreachable!("value was made an object"),
    }
}

/// The first reference among `ownerReferences` that says `controller: true`, as (kind, name, uid).
pub(crate) fn controller_of(object: &Value) -> Option<(&str, &str, &str)> {
    list(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| flag(owner, "/controller"))
        .and_then(|owner| Some((text(owner, "/kind")?, text(owner, "/name")?, text(owner, "/uid")?)))
}

/// An owner reference to `owner` that controls.
pub(crate) fn controller_reference(owner: &Value) -> Value {
    serde_json::json!({
        "apiVersion": text(owner, "/apiVersion").unwrap_or_default(),
        "kind": text(owner, "/kind").unwrap_or_default(),
        "name": text(owner, "/metadata/name").unwrap_or_default(),
        "uid": text(owner, "/metadata/uid").unwrap_or_default(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Whether the object has a deletion timestamp.
pub(crate) fn deleting(object: &Value) -> bool {
    nonempty(object, "/metadata/deletionTimestamp").is_some()
}

/// The object's uid, empty when it has none.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid").unwrap_or_default()
}

/// The object's name, empty when it has none.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name").unwrap_or_default()
}

/// The object's namespace, empty when it has none.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace").unwrap_or_default()
}

/// The status of a condition in a list of conditions.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some(kind))
        .and_then(|condition| text(condition, "/status"))
}

/// Whether a pod's condition Ready is True.
pub(crate) fn pod_ready(pod: &Value) -> bool {
    condition(pod, "Ready") == Some("True")
}

/// Sets a condition; `lastTransitionTime` moves only when the status does.
pub(crate) fn set_condition(
    conditions: &mut Vec<Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let mut new = Map::new();
    new.insert("type".into(), kind.into());
    new.insert("status".into(), status.into());
    new.insert("lastTransitionTime".into(), now.into());
    if !reason.is_empty() {
        new.insert("reason".into(), reason.into());
    }
    if !message.is_empty() {
        new.insert("message".into(), message.into());
    }
    match conditions.iter_mut().find(|condition| text(condition, "/type") == Some(kind)) {
        None => conditions.push(Value::Object(new)),
        Some(old) => {
            if text(old, "/status") == Some(status)
                && let Some(since) = old.get("lastTransitionTime")
            {
                new.insert("lastTransitionTime".into(), since.clone());
            }
            *old = Value::Object(new);
        }
    }
}

/// One expression of a label selector or a node selector term, against a way to look up labels.
pub(crate) fn expression_matches<'a>(expression: &Value, label: &dyn Fn(&str) -> Option<&'a str>) -> bool {
    let Some(key) = text(expression, "/key") else { return false };
    let values = || list(expression, "/values").iter().filter_map(Value::as_str);
    let found = label(key);
    match text(expression, "/operator").unwrap_or_default() {
        "In" => found.is_some_and(|found| values().any(|value| value == found)),
        "NotIn" => found.is_none_or(|found| values().all(|value| value != found)),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        operator @ ("Gt" | "Lt") => {
            let limit = values().next().and_then(|value| value.parse::<i64>().ok());
            let number = found.and_then(|found| found.parse::<i64>().ok());
            match (number, limit) {
                (Some(number), Some(limit)) if operator == "Gt" => number > limit,
                (Some(number), Some(limit)) => number < limit,
                _ => false,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions() {
        let label = |key: &str| match key {
            "app" => Some("a"),
            "tier" => Some("2"),
            _ => None,
        };
        for (expression, matches) in [
            (json!({"key": "app", "operator": "In", "values": ["a", "b"]}), true),
            (json!({"key": "app", "operator": "In", "values": ["b"]}), false),
            (json!({"key": "x", "operator": "NotIn", "values": ["a"]}), true),
            (json!({"key": "x", "operator": "Exists"}), false),
            (json!({"key": "x", "operator": "DoesNotExist"}), true),
            (json!({"key": "tier", "operator": "Gt", "values": ["1"]}), true),
            (json!({"key": "tier", "operator": "Lt", "values": ["1"]}), false),
            (json!({"key": "tier", "operator": "Near", "values": ["1"]}), false),
            (json!({"operator": "Exists"}), false),
        ] {
            assert_eq!(expression_matches(&expression, &label), matches, "{expression}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut conditions = Vec::new();
        set_condition(&mut conditions, "Ready", "False", "A", "", "t1");
        set_condition(&mut conditions, "Ready", "False", "B", "", "t2");
        assert_eq!(text(conditions.first().unwrap(), "/lastTransitionTime"), Some("t1"));
        set_condition(&mut conditions, "Ready", "True", "", "", "t3");
        assert_eq!(conditions, [json!({"type": "Ready", "status": "True", "lastTransitionTime": "t3"})]);
    }

    #[test]
    fn set_makes_parents_and_null_removes() {
        let mut value = json!({"a": 1});
        set(&mut value, &["a", "b"], "c", json!(2));
        assert_eq!(value, json!({"a": {"b": {"c": 2}}}));
        set(&mut value, &["a", "b"], "c", Value::Null);
        assert_eq!(value, json!({"a": {"b": {}}}));
    }
}
