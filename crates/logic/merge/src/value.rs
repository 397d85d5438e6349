//! Order, equality and text of JSON values as the field manager sees them.
//!
//! Numbers are equal by value (`1` is `1.0`). The order across kinds of values is number, text, boolean,
//! list, map, null; it decides the order of path elements in an encoded field set.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Total order of values.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            for (x, y) in a.iter().zip(b) {
                match compare(x, y) {
                    Ordering::Equal => {}
                    other => return other,
                }
            }
            a.len().cmp(&b.len())
        }
        (Value::Object(a), Value::Object(b)) => compare_maps(a, b),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_maps(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let sorted = |map: &Map<String, Value>| {
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort_unstable();
        keys
    };
    let (left, right) = (sorted(a), sorted(b));
    for (x, y) in left.iter().zip(&right) {
        // A key only the left side has comes first in the merged order, and makes the left side greater.
        match x.cmp(y) {
            Ordering::Less => return Ordering::Greater,
            Ordering::Greater => return Ordering::Less,
            Ordering::Equal => {}
        }
        if let (Some(x), Some(y)) = (a.get(x), b.get(y)) {
            match compare(x, y) {
                Ordering::Equal => {}
                other => return other,
            }
        }
    }
    left.len().cmp(&right.len())
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Equality of values: numbers by value, lists in order, maps by key.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| equal(x, y)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, x)| b.get(key).is_some_and(|y| equal(x, y)))
        }
        _ => left == right,
    }
}

/// A number as the server writes it: an integral float has no fraction, very large and very small ones
/// have an exponent of at least two digits.
pub(crate) fn number_text(number: &Number) -> String {
    if let Some(int) = number.as_i64() {
        return int.to_string();
    }
    let float = number.as_f64().unwrap_or(0.0);
    let size = float.abs();
    if float != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let sign = if exponent.starts_with('-') { '-' } else { '+' };
        let digits = exponent.trim_start_matches('-');
        // Only the plus sign keeps a leading zero away: `1e-7`, but `1e+21`.
        return format!("{mantissa}e{sign}{digits}");
    }
    format!("{float}")
}

/// A value as compact JSON with sorted keys and the characters `<`, `>` and `&` escaped, as the server's
/// own encoder writes it.
pub(crate) fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => write_json_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_text(key, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
    }
}

/// A JSON string, escaped as [`write_json`] says.
pub(crate) fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Whether a value nests deeper than `limit`; looks no deeper than that.
pub(crate) fn nests_deeper(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| nests_deeper(item, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|value| nests_deeper(value, limit - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    #[test]
    fn orders_values() {
        let sorted = [
            json!(-1),
            json!(0.5),
            json!(1),
            json!(2.0),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!({}),
            json!({"b": 1}),
            json!({"a": 1}),
            json!({"a": 2}),
            json!({"a": 2, "b": 0}),
            json!(null),
        ];
        for (i, left) in sorted.iter().enumerate() {
            for (j, right) in sorted.iter().enumerate() {
                assert_eq!(compare(left, right), i.cmp(&j), "{left} {right}");
                assert_eq!(equal(left, right), i == j, "{left} {right}");
            }
        }
        assert!(equal(&json!({"a": [1.0]}), &json!({"a": [1]})));
    }

    #[test]
    fn writes_numbers_and_text() {
        let cases = [
            (json!(1.0), "1"),
            (json!(-0.25), "-0.25"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-7), "1.5e-7"),
            (json!(123), "123"),
            (json!("<a&b>\n\u{1}é"), "\"\\u003ca\\u0026b\\u003e\\n\\u0001é\""),
            (json!({"b": [null, true], "a": {}}), r#"{"a":{},"b":[null,true]}"#),
        ];
        for (value, wanted) in cases {
            let mut out = String::new();
            write_json(&value, &mut out);
            assert_eq!(out, wanted);
        }
    }
}
