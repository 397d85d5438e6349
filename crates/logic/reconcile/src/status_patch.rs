//! Statuses as merge patches.

use serde_json::{Map, Value, json};

/// The merge patch that makes a live status this one; `None` when nothing differs. A server drops the nulls of a merge patch, and a merge
/// patch cannot take fields out of a map that it does not name, so whole fields are replaced through `null`s for what has to go.
pub(crate) fn patch(live: Option<&Value>, wanted: &Value) -> Option<Value> {
    let empty = json!({});
    let live = live.filter(|live| live.is_object()).unwrap_or(&empty);
    let mut changes = Map::new();
    for (name, wanted) in wanted.as_object()? {
        let wanted = without_nulls(wanted);
        let have = live.get(name).unwrap_or(&Value::Null);
        if *have != wanted {
            changes.insert(name.clone(), merge(have, &wanted));
        }
    }
    (!changes.is_empty()).then_some(Value::Object(changes))
}

/// The merge patch from one value to another.
fn merge(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut changes = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        changes.insert(name.clone(), Value::Null);
    }
    for (name, to) in to {
        match from.get(name) {
            Some(from) if from == to => {}
            Some(from) => {
                changes.insert(name.clone(), merge(from, to));
            }
            None => {
                changes.insert(name.clone(), to.clone());
            }
        }
    }
    Value::Object(changes)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        value => value.clone(),
    }
}
