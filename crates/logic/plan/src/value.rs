//! Small operations on JSON values by path.

use scantling_merge::{Element, Path};
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

/// Takes the field at a path out of an object, if it is there.
pub(crate) fn remove(object: &mut Value, path: &Path) {
    let Some((last, parents)) = path.0.split_last() else { return };
    let Some(at) = walk(object, parents) else { return };
    match (position(at, last), at) {
        (Some(Position::Key(key)), Value::Object(fields)) => {
            fields.remove(&key);
        }
        (Some(Position::Index(index)), Value::Array(items)) if index < items.len() => {
            items.remove(index);
        }
        _ => {}
    }
}

/// Gives the field at a path another value, if it is there.
pub(crate) fn replace(object: &mut Value, path: &Path, value: Value) {
    if let Some(at) = walk(object, &path.0) {
        *at = value;
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

fn walk<'v>(object: &'v mut Value, path: &[Element]) -> Option<&'v mut Value> {
    let mut at = object;
    for element in path {
        at = match (position(at, element)?, at) {
            (Position::Key(key), Value::Object(fields)) => fields.get_mut(&key)?,
            (Position::Index(index), Value::Array(items)) => items.get_mut(index)?,
            _ => return None,
        };
    }
    Some(at)
}

enum Position {
    Key(String),
    Index(usize),
}

/// Where in `value` an element of a path leads.
fn position(value: &Value, element: &Element) -> Option<Position> {
    let found = element.select(value)?;
    match value {
        Value::Object(fields) => {
            fields.iter().find(|(_, v)| std::ptr::eq(*v, found)).map(|(k, _)| Position::Key(k.clone()))
        }
        Value::Array(items) => items.iter().position(|v| std::ptr::eq(v, found)).map(Position::Index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_taken_out_by_path() {
        let mut object =
            json!({"data": {"a": 1, "b.c": 2}, "l": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]});
        for path in [".data[\"b.c\"]", ".l[name=\"y\"].v", ".l[name=\"x\"]", ".data.missing.deep"] {
            remove(&mut object, &path.parse().unwrap());
        }
        assert_eq!(object, json!({"data": {"a": 1}, "l": [{"name": "y"}]}));
        replace(&mut object, &".l[name=\"y\"].name".parse().unwrap(), json!("z"));
        replace(&mut object, &".data.missing".parse().unwrap(), json!(1));
        assert_eq!(object, json!({"data": {"a": 1}, "l": [{"name": "z"}]}));
    }
}
