//! Small operations on JSON values by path.

use scantling_api::schema::{DEDUCED, KindSchema, Schema};
use scantling_merge::{Path, remove_at, value_at, value_at_mut};
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

/// The types by which the fields of an object are found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed<'a> {
    schema: &'a Schema,
    type_name: &'a str,
}

impl<'a> Typed<'a> {
    /// The types of a kind; those of one that is not known are deduced from values.
    pub(crate) fn of(schema: &'a Schema, kind: Option<&'a KindSchema>) -> Self {
        Self { schema, type_name: kind.map_or(DEDUCED, |kind| kind.type_name.as_str()) }
    }

    /// The field at a path.
    pub(crate) fn find<'v>(&self, object: &'v Value, path: &Path) -> Option<&'v Value> {
        value_at(self.schema, self.type_name, object, path)
    }

    /// Takes the field at a path out of an object, if it is there.
    pub(crate) fn remove(&self, object: &mut Value, path: &Path) {
        remove_at(self.schema, self.type_name, object, path);
    }

    /// Gives the field at a path another value, if it is there.
    pub(crate) fn replace(&self, object: &mut Value, path: &Path, value: Value) {
        if let Some(at) = value_at_mut(self.schema, self.type_name, object, path) {
            *at = value;
        }
    }
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
