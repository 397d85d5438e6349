//! Writing YAML.

use std::fmt::Write as _;

use serde_json::Value;

use crate::edit::{is_plain, is_printable};

/// Writes a value as a YAML document in block style, keys in the order that the value has.
///
/// Strings that any reader could take for something else are quoted; texts of several lines become literal blocks where
/// these can hold them.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_mapping(&mut out, map, 0, false),
        Value::Array(items) if !items.is_empty() => write_sequence(&mut out, items, 0, false),
        scalar => {
            write_scalar(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// `inline`: the first entry continues a line that has begun with `- `.
fn write_mapping(out: &mut String, map: &serde_json::Map<String, Value>, indent: usize, inline: bool) {
    for (at, (key, value)) in map.iter().enumerate() {
        if at > 0 || !inline {
            pad(out, indent);
        }
        // A long key would need the `? ` form.
        if is_plain(key) {
            out.push_str(key);
        } else {
            out.push_str(&double_quoted(key));
        }
        out.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                write_mapping(out, inner, indent + 2, false);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_sequence(out, items, indent, false);
            }
            scalar => {
                out.push(' ');
                write_scalar(out, scalar, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn write_sequence(out: &mut String, items: &[Value], indent: usize, inline: bool) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 || !inline {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => write_mapping(out, inner, indent + 2, true),
            Value::Array(inner) if !inner.is_empty() => write_sequence(out, inner, indent + 2, true),
            scalar => {
                write_scalar(out, scalar, indent + 2);
                out.push('\n');
            }
        }
    }
}

/// Writes a scalar or an empty collection; `indent` is that of a block scalar's lines.
fn write_scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(string) => write_string(out, string, indent),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn write_string(out: &mut String, string: &str, indent: usize) {
    let content = string.trim_end_matches('\n');
    let literal = content.contains('\n')
        && indent > 0
        && string.len() - content.len() <= 1
        && !content.starts_with([' ', '\n', '\t'])
        && content.chars().all(|character| character == '\n' || is_printable(character))
        && !content.lines().any(|line| line.ends_with(' '));
    if literal {
        out.push_str(if content.len() == string.len() { "|-" } else { "|" });
        for line in content.split('\n') {
            out.push('\n');
            if !line.is_empty() {
                pad(out, indent);
                out.push_str(line);
            }
        }
    } else if is_plain(string) {
        out.push_str(string);
    } else {
        out.push_str(&double_quoted(string));
    }
}

/// A string in double quotes, everything escaped that JSON or YAML demands.
pub(crate) fn double_quoted(string: &str) -> String {
    let mut out = String::with_capacity(string.len() + 2);
    out.push('"');
    for character in string.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if is_printable(other) => out.push(other),
            other => {
                // None of these characters lies beyond the Basic Multilingual Plane.
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
        }
    }
    out.push('"');
    out
}
