//! The fields of a value that someone who applies it owns.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::{Schema, TypeRef};
use serde_json::Value;

use crate::path::MAX_DEPTH;
use crate::set::FieldSet;
use crate::shape::{Shape, field_type, item_element, shape};

/// The leaves of `value` under type `t`: scalars, atomic lists and maps, items of sets and of lists with
/// keys, empty or null maps, and the values of maps with free keys.
pub(crate) fn owned_fields(schema: &Schema, t: Option<&TypeRef>, value: &Value) -> FieldSet {
    walk(schema, t, value, 0).1
}

/// Whether the value itself is owned, and what is owned below it.
fn walk(schema: &Schema, t: Option<&TypeRef>, value: &Value, depth: usize) -> (bool, FieldSet) {
    let mut set = FieldSet::new();
    if depth > MAX_DEPTH {
        return (true, set);
    }
    match (shape(schema, t, Some(value)), value) {
        (Some(Shape::Scalar(_) | Shape::Map(_, true) | Shape::List(_, true)), _) => return (true, set),
        (Some(Shape::Map(map, false)), Value::Object(entries)) => {
            for (name, value) in entries {
                let (leaf, below) = walk(schema, field_type(map, name), value, depth + 1);
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                let member = leaf || empty || !map.fields.contains_key(name);
                set.graft(crate::path::Element::field(name.as_str()), member, below);
            }
        }
        (Some(Shape::List(list, false)), Value::Array(items)) => {
            let mut unique = BTreeMap::new();
            let mut repeated = BTreeSet::new();
            for item in items {
                let Ok(element) = item_element(schema, list, item) else { continue };
                if unique.insert(element.clone(), item).is_some() {
                    repeated.insert(element);
                }
            }
            for (element, item) in unique {
                let below = if repeated.contains(&element) {
                    FieldSet::new()
                } else {
                    walk(schema, Some(&list.element), item, depth + 1).1
                };
                set.graft(element, true, below);
            }
        }
        _ => {}
    }
    (false, set)
}
