//! Snapshots as `kubectl get -o json` writes them.

use serde_json::{Deserializer, Value};

use crate::state::{Observed, ObservedError};

/// How deep lists may be nested. kubectl writes one list; tools that join its output write lists of lists.
pub const MAX_LIST_DEPTH: usize = 4;

impl Observed {
    /// Reads what `kubectl get -o json` writes: a `List`, a list of one kind (`PodList`, whose items may lack their kind), one object, or
    /// several of these one after another.
    pub fn from_list_json(bytes: &[u8]) -> Result<Self, ObservedError> {
        let mut objects = Vec::new();
        for document in Deserializer::from_slice(bytes).into_iter::<Value>() {
            flatten(document?, 0, &mut objects)?;
        }
        Self::from_objects(objects)
    }
}

fn flatten(mut document: Value, depth: usize, into: &mut Vec<Value>) -> Result<(), ObservedError> {
    if depth > MAX_LIST_DEPTH {
        return Err(ObservedError::Depth(MAX_LIST_DEPTH));
    }
    if let Value::Array(items) = document {
        return items.into_iter().try_for_each(|item| flatten(item, depth + 1, into));
    }
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let is_list = kind.ends_with("List") && document.get("items").is_some_and(Value::is_array);
    if !is_list {
        into.push(document);
        return Ok(());
    }
    let item_kind = kind.strip_suffix("List").unwrap_or_default();
    let Some(Value::Array(items)) = document.get_mut("items").map(Value::take) else { return Ok(()) };
    for mut item in items {
        if let Value::Object(fields) = &mut item
            && !item_kind.is_empty()
        {
            fields.entry("apiVersion").or_insert_with(|| Value::String(api_version.clone()));
            fields.entry("kind").or_insert_with(|| Value::String(item_kind.to_owned()));
        }
        flatten(item, depth + 1, into)?;
    }
    Ok(())
}
