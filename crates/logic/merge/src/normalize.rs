//! The form in which a server keeps objects of built-in kinds.
//!
//! Such an object passes through the server's own type: quantities and times are written in their
//! canonical form, fields that are always written get their zero value, empty ones that are omitted
//! disappear, and fields the type does not know are lost.

use scantling_api::schema::{FieldFacts, MapType, Schema, TypeRef};
use serde_json::{Map, Value, json};

use crate::path::MAX_DEPTH;
use crate::quantity;
use crate::shape::{Shape, field_type, shape};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";

/// Brings `value` of type `t` into the form that is kept.
pub(crate) fn normalize(schema: &Schema, t: &TypeRef, value: &mut Value) {
    walk(schema, Some(t), value, 0);
}

fn walk(schema: &Schema, t: Option<&TypeRef>, value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match t.and_then(TypeRef::name) {
        Some(QUANTITY) => return quantity_value(value),
        Some(TIME) => return time_value(value),
        _ => {}
    }
    match (shape(schema, t, Some(value)), value) {
        (Some(Shape::Map(map, _)), Value::Object(entries)) => {
            if map.fields.is_empty() {
                for (name, value) in entries.iter_mut() {
                    if value.is_null() {
                        *value = zero_of(schema, field_type(map, name));
                    }
                    walk(schema, field_type(map, name), value, depth + 1);
                }
            } else {
                structure(schema, map, entries, depth);
            }
        }
        (Some(Shape::List(list, _)), Value::Array(items)) => {
            for item in items {
                if item.is_null() {
                    *item = zero_of(schema, Some(&list.element));
                }
                walk(schema, Some(&list.element), item, depth + 1);
            }
        }
        (Some(Shape::Scalar(_)), Value::Number(number)) => {
            // The server's types write whole numbers without a fraction.
            if let Some(float) = number.as_f64().filter(|_| !number.is_i64() && !number.is_u64())
                && float.fract() == 0.0
                && float.abs() < 9e15
                && let Ok(int) = format!("{float:.0}").parse::<i64>()
            {
                *number = int.into();
            }
        }
        _ => {}
    }
}

fn structure(schema: &Schema, map: &MapType, entries: &mut Map<String, Value>, depth: usize) {
    if map.element.is_none() {
        entries.retain(|name, _| map.fields.contains_key(name));
    }
    for (name, facts) in &map.fields {
        match entries.get_mut(name) {
            None | Some(Value::Null) => match &facts.zero {
                Some(zero) => {
                    entries.insert(name.clone(), zero.clone());
                }
                None => {
                    entries.remove(name);
                }
            },
            Some(value) => {
                walk(schema, Some(&facts.t), value, depth + 1);
                if omitted(facts, value) {
                    entries.remove(name);
                }
            }
        }
    }
}

fn omitted(facts: &FieldFacts, value: &Value) -> bool {
    facts.omitzero
        && match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::Bool(true) => false,
        }
}

/// What the server's type makes of a null in a list or in a map.
fn zero_of(schema: &Schema, t: Option<&TypeRef>) -> Value {
    use scantling_api::schema::Scalar;
    if t.and_then(TypeRef::name) == Some(QUANTITY) {
        return json!("0");
    }
    match shape(schema, t, None) {
        Some(Shape::Scalar(Scalar::String)) => json!(""),
        Some(Shape::Scalar(Scalar::Number)) => json!(0),
        Some(Shape::Scalar(Scalar::Boolean)) => json!(false),
        Some(Shape::Map(map, _)) if !map.fields.is_empty() => json!({}),
        _ => Value::Null,
    }
}

fn quantity_value(value: &mut Value) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => crate::value::number_text(number),
        _ => return,
    };
    if let Some(canonical) = quantity::canonical(&text) {
        *value = Value::String(canonical);
    }
}

/// Times are kept in UTC and whole seconds.
fn time_value(value: &mut Value) {
    if let Value::String(text) = value
        && let Some(seconds) = crate::managers::seconds(text)
    {
        *value = Value::String(crate::managers::timestamp(seconds));
    }
}
