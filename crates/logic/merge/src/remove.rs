//! Taking fields out of an object.

use scantling_api::schema::{Schema, TypeRef};
use serde_json::{Map, Value};

use crate::path::{Element, MAX_DEPTH};
use crate::set::FieldSet;
use crate::shape::{Shape, field_type, item_element, shape};

/// `value` without the fields that are members of `fields`. A container that this empties stays, empty; one
/// whose type accepts null becomes null.
pub(crate) fn remove(schema: &Schema, t: Option<&TypeRef>, value: Value, fields: &FieldSet) -> Value {
    if fields.is_empty() {
        return value;
    }
    match walk(schema, t, value, fields, 0) {
        Value::Null => Value::Object(Map::new()),
        value => value,
    }
}

/// The rest of a value that has something removed below it; null if nothing is left of it.
fn walk(schema: &Schema, t: Option<&TypeRef>, value: Value, fields: &FieldSet, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return value;
    }
    let nullable = t.is_some_and(|t| t.nullable);
    match (shape(schema, t, Some(&value)), value) {
        (Some(Shape::Scalar(_)), value) => value,
        (Some(Shape::Map(map, false)), Value::Object(entries)) if !entries.is_empty() => {
            let mut rest = Map::new();
            let mut touched = false;
            for (name, value) in entries {
                let element = Element::field(name.as_str());
                if fields.has(&element) {
                    continue;
                }
                let value = match fields.below(&element) {
                    Some(below) => {
                        touched = true;
                        inside(schema, field_type(map, &name), value, below, depth)
                    }
                    None => value,
                };
                rest.insert(name, value);
            }
            if rest.is_empty() && (!touched || nullable) { Value::Null } else { Value::Object(rest) }
        }
        (Some(Shape::List(list, false)), Value::Array(items)) if !items.is_empty() => {
            let mut rest = Vec::with_capacity(items.len());
            let mut touched = false;
            for item in items {
                let Ok(element) = item_element(schema, list, &item) else {
                    rest.push(item);
                    continue;
                };
                if fields.has(&element) {
                    continue;
                }
                rest.push(match fields.below(&element) {
                    Some(below) => {
                        touched = true;
                        inside(schema, Some(&list.element), item, below, depth)
                    }
                    None => item,
                });
            }
            if rest.is_empty() && (!touched || nullable) { Value::Null } else { Value::Array(rest) }
        }
        // Nothing below an atomic value can be taken out without taking the value.
        _ => Value::Null,
    }
}

fn inside(schema: &Schema, t: Option<&TypeRef>, value: Value, below: &FieldSet, depth: usize) -> Value {
    let empty = match &value {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    };
    match walk(schema, t, value, below, depth + 1) {
        Value::Null if !t.is_some_and(|t| t.nullable) => empty,
        rest => rest,
    }
}
