//! Whether a value fits a type.

use std::collections::BTreeSet;

use scantling_api::schema::{Scalar, Schema, TypeRef};
use serde_json::Value;

use crate::path::{Element, MAX_DEPTH};
use crate::shape::{Shape, field_type, item_element, scalar_fits, shape};

/// The first thing about a value that its type does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Misfit {
    /// Path of the field; empty for the object itself.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Misfit {
    pub(crate) fn here(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    pub(crate) fn under(mut self, element: &Element) -> Self {
        self.path.insert_str(0, &element.to_string());
        self
    }
}

/// Checks `value` against type `t`. Items of a set or list with keys may occur twice only if `duplicates`.
pub(crate) fn validate(
    schema: &Schema,
    t: Option<&TypeRef>,
    value: &Value,
    duplicates: bool,
) -> Result<(), Misfit> {
    walk(schema, t, value, duplicates, 0)
}

fn walk(
    schema: &Schema,
    t: Option<&TypeRef>,
    value: &Value,
    duplicates: bool,
    depth: usize,
) -> Result<(), Misfit> {
    if depth > MAX_DEPTH {
        return Err(Misfit::here(format!("nests deeper than {MAX_DEPTH}")));
    }
    match shape(schema, t, Some(value)) {
        None => Err(Misfit::here("the schema does not know the type of this field")),
        Some(Shape::Scalar(scalar)) if scalar_fits(scalar, value) => Ok(()),
        Some(Shape::Scalar(scalar)) => {
            let wanted = match scalar {
                Scalar::String => "text",
                Scalar::Number => "a number",
                Scalar::Boolean => "true or false",
                Scalar::Untyped => "text, a number, true or false",
            };
            Err(Misfit::here(format!("expected {wanted}, found {}", word(value))))
        }
        Some(Shape::Map(map, _)) => match value {
            Value::Null => Ok(()),
            Value::Object(entries) => {
                for (name, value) in entries {
                    let t = field_type(map, name)
                        .ok_or_else(|| Misfit::here("the schema declares no such field"))
                        .and_then(|t| walk(schema, Some(t), value, duplicates, depth + 1));
                    t.map_err(|misfit| misfit.under(&Element::field(name.as_str())))?;
                }
                Ok(())
            }
            _ => Err(Misfit::here(format!("expected a map, found {}", word(value)))),
        },
        Some(Shape::List(list, atomic)) => match value {
            Value::Null => Ok(()),
            Value::Array(items) => {
                let mut seen = BTreeSet::new();
                for (index, item) in items.iter().enumerate() {
                    let element = if atomic {
                        Element::Index(i64::try_from(index).unwrap_or(i64::MAX))
                    } else {
                        item_element(schema, list, item)
                            .map_err(|problem| Misfit::here(format!("item {index}: {problem}")))?
                    };
                    walk(schema, Some(&list.element), item, duplicates, depth + 1)
                        .map_err(|misfit| misfit.under(&element))?;
                    if !atomic && !duplicates && seen.contains(&element) {
                        return Err(Misfit::here(format!("item {element} occurs more than once")));
                    }
                    seen.insert(element);
                }
                Ok(())
            }
            _ => Err(Misfit::here(format!("expected a list, found {}", word(value)))),
        },
    }
}

/// What a value is, in one word; never its content, which may be secret.
fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
