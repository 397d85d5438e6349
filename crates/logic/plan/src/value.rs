//! Small operations on JSON values by path.

use scantling_api::object;
use scantling_api::schema::{DEDUCED, Schema};
use scantling_merge::{Path, value_at};
use serde_json::Value;

/// JSON with the keys of every object in order, whatever map the parser uses.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            text.push('{');
            for key in keys {
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write(fields.get(key).unwrap_or(&Value::Null), text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// The type of an object, by which paths are followed: an item of a list may leave out a part of its key that has a
/// default, as a port does with its protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed<'a> {
    schema: &'a Schema,
    name: &'a str,
}

impl<'a> Typed<'a> {
    /// The type of the kind that an object says it is.
    pub(crate) fn of(schema: &'a Schema, object: &Value) -> Self {
        let kind = object::gvk(object).ok();
        let kind = kind.and_then(|gvk| schema.kind(&gvk.group, &gvk.version, &gvk.kind));
        Self { schema, name: kind.map_or(DEDUCED, |kind| kind.type_name.as_str()) }
    }

    /// The field at a path.
    pub(crate) fn select<'v>(&self, object: &'v Value, path: &Path) -> Option<&'v Value> {
        value_at(self.schema, self.name, object, path)
    }

    /// Takes the field at a path out of an object, if it is there.
    pub(crate) fn remove(&self, object: &mut Value, path: &Path) {
        let Some((last, parents)) = self.positions(object, path).and_then(|mut all| Some((all.pop()?, all)))
        else {
            return;
        };
        match (last, walk(object, &parents)) {
            (Position::Key(key), Some(Value::Object(fields))) => {
                fields.remove(&key);
            }
            (Position::Index(index), Some(Value::Array(items))) if index < items.len() => {
                items.remove(index);
            }
            _ => {}
        }
    }

    /// Gives the field at a path another value, if it is there.
    pub(crate) fn replace(&self, object: &mut Value, path: &Path, value: Value) {
        if let Some(at) = self.positions(object, path).and_then(|all| walk(object, &all)) {
            *at = value;
        }
    }

    /// Where in an object each element of a path leads.
    fn positions(&self, object: &Value, path: &Path) -> Option<Vec<Position>> {
        let mut parent = object;
        let mut positions = Vec::with_capacity(path.0.len());
        let mut walked = Path::default();
        for element in &path.0 {
            walked.0.push(element.clone());
            let found = self.select(object, &walked)?;
            let same = |value: &Value| std::ptr::eq(value, found);
            positions.push(match parent {
                Value::Object(fields) => {
                    Position::Key(fields.iter().find(|(_, value)| same(value))?.0.clone())
                }
                Value::Array(items) => Position::Index(items.iter().position(same)?),
                _ => return None,
            });
            parent = found;
        }
        Some(positions)
    }
}

enum Position {
    Key(String),
    Index(usize),
}

fn walk<'v>(object: &'v mut Value, positions: &[Position]) -> Option<&'v mut Value> {
    positions.iter().try_fold(object, |at, position| match (position, at) {
        (Position::Key(key), Value::Object(fields)) => fields.get_mut(key),
        (Position::Index(index), Value::Array(items)) => items.get_mut(*index),
        _ => None,
    })
}

/// The value without fields that are `null`: an applied `null` is no field.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_taken_out_by_path() {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"labels": {"a": "1", "b.c": "2"}},
            "spec": {"ports": [{"port": 1, "name": "x"}, {"port": 1, "protocol": "UDP", "name": "y"}]},
        });
        let kind = object.clone();
        let typed = Typed::of(Schema::kubernetes(), &kind);
        for path in [
            ".metadata.labels[\"b.c\"]",
            ".spec.ports[port=1,protocol=\"TCP\"].name",
            ".spec.ports[port=1,protocol=\"UDP\"]",
            ".metadata.missing.deep",
        ] {
            typed.remove(&mut object, &path.parse().unwrap());
        }
        assert_eq!(object["metadata"], json!({"labels": {"a": "1"}}));
        assert_eq!(object["spec"], json!({"ports": [{"port": 1}]}));
        typed.replace(&mut object, &".spec.ports[port=1,protocol=\"TCP\"].port".parse().unwrap(), json!(2));
        typed.replace(&mut object, &".metadata.missing".parse().unwrap(), json!(1));
        assert_eq!(object["spec"], json!({"ports": [{"port": 2}]}));
        assert_eq!(object["metadata"], json!({"labels": {"a": "1"}}));
    }
}
