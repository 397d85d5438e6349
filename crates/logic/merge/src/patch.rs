//! JSON merge patch (RFC 7386) and JSON patch (RFC 6902).

use serde_json::{Map, Value};

use crate::error::MergeError;
use crate::path::MAX_DEPTH;
use crate::value::{equal, nests_deeper};

/// Most operations of one JSON patch, as API servers limit them.
const MAX_OPERATIONS: usize = 10_000;
/// Most values that `copy` operations of one patch may add, so that a short patch cannot make a huge object.
const MAX_COPIED: usize = 1_000_000;

/// The object that a JSON merge patch makes of `live`: null removes a field, maps are merged, everything
/// else is replaced.
pub fn merge_patch(live: &Value, patch: &Value) -> Result<Value, MergeError> {
    shallow(patch)?;
    if !patch.is_object() {
        return Err(MergeError::Patch("a merge patch must be a JSON object".to_owned()));
    }
    let mut object = live.clone();
    merge(&mut object, patch);
    Ok(object)
}

fn merge(target: &mut Value, patch: &Value) {
    match (target.as_object_mut(), patch) {
        (Some(target), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    target.remove(name);
                    continue;
                }
                match target.get_mut(name) {
                    Some(present) if !present.is_null() => merge(present, value),
                    _ => {
                        target.insert(name.clone(), without_nulls(value));
                    }
                }
            }
        }
        (Some(_), _) => *target = patch.clone(),
        (None, _) => *target = without_nulls(patch),
    }
}

/// A value without fields that are null, in lists too; items of lists that are null stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// The object that a JSON patch makes of `live`: its operations in order, all or none.
pub fn json_patch(live: &Value, patch: &Value) -> Result<Value, MergeError> {
    shallow(patch)?;
    let Some(operations) = patch.as_array() else {
        return Err(MergeError::Patch("a JSON patch must be a list of operations".to_owned()));
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(MergeError::Patch(format!("more than {MAX_OPERATIONS} operations")));
    }
    let mut object = live.clone();
    let mut copied = 0;
    for (index, operation) in operations.iter().enumerate() {
        perform(&mut object, operation, &mut copied)
            .map_err(|problem| MergeError::Patch(format!("operation {index}: {problem}")))?;
    }
    Ok(object)
}

fn perform(object: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), String> {
    let text = |name: &str| {
        operation.get(name).and_then(Value::as_str).ok_or_else(|| format!("`{name}` is missing or not text"))
    };
    let value = || operation.get("value").cloned().ok_or_else(|| "`value` is missing".to_owned());
    let path = text("path")?;
    match text("op")? {
        "add" => add(object, path, value()?),
        "remove" => take(object, path).map(drop),
        "replace" => replace(object, path, value()?),
        "test" => {
            let wanted = value()?;
            let found = locate(object, path);
            let holds = match found {
                Some(found) => equal(found, &wanted),
                None => wanted.is_null(),
            };
            if holds { Ok(()) } else { Err(format!("the test of `{path}` fails")) }
        }
        "move" => {
            let from = text("from")?;
            if path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
                return Err(format!("`{from}` cannot be moved into itself"));
            }
            let value = take(object, from)?;
            add(object, path, value)
        }
        "copy" => {
            let from = text("from")?;
            let value = source(object, from)?;
            *copied += size(&value);
            if *copied > MAX_COPIED {
                return Err(format!("the patch copies more than {MAX_COPIED} values"));
            }
            add(object, path, value)
        }
        other => Err(format!("unknown operation `{other}`")),
    }
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum::<usize>(),
        _ => 0,
    }
}

/// What a pointer names, if anything.
fn locate<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Value> {
    if pointer.is_empty() {
        return Some(object);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(object, |value, step| match value {
        Value::Object(map) => map.get_mut(&unescape(step)),
        Value::Array(items) => {
            let index = position(step, items.len())?;
            items.get_mut(index)
        }
        _ => None,
    })
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Parent of the place a pointer names, and the last step of the pointer.
fn parent<'a>(object: &'a mut Value, pointer: &str) -> Result<(&'a mut Value, String), String> {
    let (parent, last) =
        pointer.rsplit_once('/').ok_or_else(|| format!("`{pointer}` is no path below the object"))?;
    let parent = locate(object, parent).ok_or_else(|| format!("there is nothing above `{pointer}`"))?;
    Ok((parent, unescape(last)))
}

/// Refuses a value that would nest too deep at its place.
fn fits(pointer: &str, value: &Value) -> Result<(), String> {
    let room = MAX_DEPTH.checked_sub(pointer.matches('/').count());
    match room {
        Some(room) if !nests_deeper(value, room) => Ok(()),
        _ => Err(format!("nests deeper than {MAX_DEPTH} levels")),
    }
}

fn add(object: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    fits(pointer, &value)?;
    if pointer.is_empty() {
        *object = value;
        return Ok(());
    }
    match parent(object, pointer)? {
        (Value::Object(map), last) => {
            map.insert(last, value);
            Ok(())
        }
        (Value::Array(items), last) => {
            let index = if last == "-" { Some(items.len()) } else { position(&last, items.len() + 1) };
            match index.filter(|index| *index <= items.len()) {
                Some(index) => {
                    items.insert(index, value);
                    Ok(())
                }
                None => Err(format!("`{pointer}` is no place in the list")),
            }
        }
        _ => Err(format!("what is above `{pointer}` is neither a map nor a list")),
    }
}

/// Unlike RFC 6902, API servers let a key of a map be replaced that is not there.
fn replace(object: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    fits(pointer, &value)?;
    if let Some(place) = locate(object, pointer) {
        *place = value;
        return Ok(());
    }
    match parent(object, pointer)? {
        (Value::Object(map), last) => {
            map.insert(last, value);
            Ok(())
        }
        _ => Err(format!("there is nothing at `{pointer}`")),
    }
}

/// What `copy` copies: API servers copy null from a key of a map that is not there.
fn source(object: &mut Value, pointer: &str) -> Result<Value, String> {
    if let Some(value) = locate(object, pointer) {
        return Ok(value.clone());
    }
    match parent(object, pointer)? {
        (Value::Object(_), _) => Ok(Value::Null),
        _ => Err(format!("there is nothing at `{pointer}`")),
    }
}

fn take(object: &mut Value, pointer: &str) -> Result<Value, String> {
    let nothing = || format!("there is nothing at `{pointer}`");
    match parent(object, pointer)? {
        (Value::Object(map), last) => map.remove(&last).ok_or_else(nothing),
        (Value::Array(items), last) => {
            let index =
                position(&last, items.len()).filter(|index| *index < items.len()).ok_or_else(nothing)?;
            Ok(items.remove(index))
        }
        _ => Err(nothing()),
    }
}

/// An index into a list; API servers count a negative one from the end.
fn position(text: &str, len: usize) -> Option<usize> {
    match text.strip_prefix('-') {
        Some(back) => len.checked_sub(back.parse().ok()?),
        None => text.parse().ok(),
    }
}

fn shallow(patch: &Value) -> Result<(), MergeError> {
    if nests_deeper(patch, MAX_DEPTH) {
        return Err(MergeError::Patch(format!("nests deeper than {MAX_DEPTH} levels")));
    }
    Ok(())
}

/// An object, or why a strategic merge patch is not one.
pub(crate) fn as_map(value: &Value) -> Result<Map<String, Value>, MergeError> {
    shallow(value)?;
    match value {
        Value::Object(map) => Ok(map.clone()),
        _ => Err(MergeError::Patch("a strategic merge patch must be a JSON object".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    #[test]
    fn merges_patches() {
        for (live, patch, wanted) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({}), json!({"a": {"b": {"c": null}}}), json!({"a": {"b": {}}})),
            (json!({"a": [1]}), json!({"a": [{"x": null}, null]}), json!({"a": [{}, null]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        ] {
            assert_eq!(merge_patch(&live, &patch).unwrap(), wanted);
        }
        assert!(merge_patch(&json!({}), &json!([1])).is_err());
    }

    #[test]
    fn performs_operations() {
        for (live, patch, wanted) in [
            (
                json!({"a": [1, 3]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}]),
                json!({"a": [1, 2, 3]}),
            ),
            (json!({"a": []}), json!([{"op": "add", "path": "/a/-", "value": 1}]), json!({"a": [1]})),
            (
                json!({"x~/y": 1}),
                json!([{"op": "replace", "path": "/x~0~1y", "value": 2}]),
                json!({"x~/y": 2}),
            ),
            (json!({"a": 1, "b": 2}), json!([{"op": "remove", "path": "/a"}]), json!({"b": 2})),
            (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1})),
            (
                json!({"a": [1, 2]}),
                json!([{"op": "replace", "path": "/a/-1", "value": 3}]),
                json!({"a": [1, 3]}),
            ),
            (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
            (json!({"a": 1}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"a": 1, "b": 1})),
            (
                json!({"a": 1}),
                json!([{"op": "copy", "from": "/x", "path": "/b"}]),
                json!({"a": 1, "b": null}),
            ),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1.0}]), json!({"a": 1})),
        ] {
            assert_eq!(json_patch(&live, &patch).unwrap(), wanted);
        }
    }

    #[test]
    fn refuses_operations() {
        let live = json!({"a": [1], "m": {"n": 1}});
        for (operation, problem) in [
            (json!({"op": "remove", "path": "/b"}), "nothing at `/b`"),
            (json!({"op": "replace", "path": "/a/1", "value": 1}), "nothing at"),
            (json!({"op": "remove", "path": "/a/-2"}), "nothing at"),
            (json!({"op": "add", "path": "/a/2", "value": 1}), "no place in the list"),
            (json!({"op": "add", "path": "/a/x", "value": 1}), "no place in the list"),
            (json!({"op": "add", "path": "/x/y", "value": 1}), "nothing above"),
            (json!({"op": "add", "path": "/a"}), "`value` is missing"),
            (json!({"op": "test", "path": "/a", "value": 2}), "fails"),
            (json!({"op": "move", "from": "/m", "path": "/m/n"}), "into itself"),
            (json!({"op": "swap", "path": "/a"}), "unknown operation"),
            (json!({"path": "/a"}), "`op` is missing"),
        ] {
            let message = json_patch(&live, &json!([operation])).unwrap_err().to_string();
            assert!(message.contains(problem), "{message}");
        }
    }

    #[test]
    fn bounds_what_a_patch_can_make() {
        let mut operations = vec![json!({"op": "add", "path": "/a", "value": [1, 2, 3, 4, 5, 6, 7, 8]})];
        for _ in 0..40 {
            operations.push(json!({"op": "copy", "from": "/a", "path": "/a/0"}));
        }
        assert!(json_patch(&json!({}), &Value::Array(operations)).is_err());
    }
}
