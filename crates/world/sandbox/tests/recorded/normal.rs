//! An API server's answer without what differs from run to run, so that two can be compared.

use serde_json::{Map, Value, json};

/// Fields that differ from run to run.
const VOLATILE: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "time",
    "deletionTimestamp",
    "selfLink",
    "lastTransitionTime",
];

/// Takes out what differs from run to run.
pub(crate) fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, field) in fields {
                let placeholder = match name.as_str() {
                    "storageVersionHash" => continue,
                    "continue" if *field == json!("") => continue,
                    name if VOLATILE.contains(&name) && !field.is_object() => Some("V"),
                    "clusterIP" | "clusterIPs" if is_address(field) => Some("IP"),
                    "nodePort" => Some("NP"),
                    _ => None,
                };
                let mut field = placeholder.map_or_else(|| normal(field), |text| json!(text));
                if name == "columnDefinitions" {
                    for column in field.as_array_mut().into_iter().flatten() {
                        column.as_object_mut().map(|column| column.remove("description"));
                    }
                }
                kept.insert(name.clone(), field);
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(
            items.iter().map(|item| if is_age(item) { json!("AGE") } else { normal(item) }).collect(),
        ),
        Value::String(text) => Value::String(without_age(&without_times(&without_uids(text)))),
        other => other.clone(),
    }
}

fn is_address(field: &Value) -> bool {
    !field.is_null() && *field != json!("") && *field != json!("None") && *field != json!(["None"])
}

/// `5s`, `2m10s`, `3d4h`.
fn is_age(item: &Value) -> bool {
    let Some(mut rest) = item.as_str() else { return false };
    let mut parts = 0;
    while let Some(after) = part_of_age(rest) {
        rest = after;
        parts += 1;
    }
    rest.is_empty() && (1..=2).contains(&parts)
}

/// What follows a number and its unit.
fn part_of_age(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == text.len() { None } else { rest.strip_prefix(['s', 'm', 'h', 'd', 'y']) }
}

/// `3 (5s ago)`, as restarts are shown.
fn without_age(text: &str) -> String {
    match text.split_once('(') {
        Some((before, rest)) if rest.ends_with(" ago)") => format!("{before}(AGE ago)"),
        _ => text.to_owned(),
    }
}

fn without_uids(text: &str) -> String {
    replace(text, 36, "UID", |at, byte| {
        if [8, 13, 18, 23].contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
    })
}

/// RFC 3339 in UTC, with or without a fraction of a second.
fn without_times(text: &str) -> String {
    let seconds = |at: usize, byte: u8| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    let end = |at: usize, byte: u8| if at == 19 { byte == b'Z' } else { seconds(at, byte) };
    let fraction = |at: usize, byte: u8| match at {
        19 => byte == b'.',
        26 => byte == b'Z',
        _ => seconds(at, byte),
    };
    replace(&replace(text, 20, "TIME", end), 27, "TIME", fraction)
}

/// Replaces every stretch of `length` bytes that has the given form.
fn replace(text: &str, length: usize, by: &str, form: impl Fn(usize, u8) -> bool) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let stretch = rest.as_bytes().get(..length);
        if stretch.is_some_and(|bytes| bytes.iter().enumerate().all(|(at, byte)| form(at, *byte))) {
            replaced.push_str(by);
            rest = rest.get(length..).unwrap_or_default();
        } else {
            replaced.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    replaced
}
