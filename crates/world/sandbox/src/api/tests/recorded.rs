//! The answers of a real API server to two hundred requests, and ours to the same.
//!
//! `tests/data/recorded-1.35.jsonl` holds one exchange a line, in order: the request, the code and the answer of
//! Kubernetes 1.35.4 with what differs from run to run taken out, and under `except` the parts (JSON pointers) in which
//! this server is known to answer otherwise: mostly the wording of Go's decoders, and what controllers write meanwhile.
//! `cargo xtask record` writes the answers anew.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::Server;

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

#[test]
fn answers_are_those_of_a_real_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded-1.35.jsonl");
    let mut server = Server::new();
    let mut failures = Vec::new();
    let text = std::fs::read_to_string(path).unwrap();
    for (number, line) in text.lines().enumerate() {
        let exchange: Value = serde_json::from_str(line).unwrap();
        let request = &exchange["request"];
        let text =
            |field: &str, otherwise: &'static str| request[field].as_str().unwrap_or(otherwise).to_owned();
        let (method, path) = (text("method", ""), text("path", ""));
        let (code, answer) = server.ask_as(
            &method,
            &path,
            &request["body"],
            &text("contentType", "application/json"),
            &text("accept", "application/json"),
        );
        server.later(1);
        let about = format!("line {}, {}: {method} {path}", number + 1, exchange["about"]);
        if json!(code) != exchange["code"] {
            failures.push(format!("{about}: code {code}, recorded {}: {answer}", exchange["code"]));
        }
        let excepted: Vec<&str> =
            exchange["except"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut differences = Vec::new();
        compare(&exchange["answer"], &normal(&answer), "", &mut differences);
        for (pointer, what) in differences {
            if !excepted.iter().any(|known| pointer.starts_with(known)) {
                failures.push(format!("{about}: {pointer}: {what}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Takes out what differs from run to run.
fn normal(value: &Value) -> Value {
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
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => json!("TIME"),
        Value::String(text) => Value::String(without_times(&without_uids(text))),
        other => other.clone(),
    }
}

fn is_address(field: &Value) -> bool {
    !field.is_null() && *field != json!("") && *field != json!("None") && *field != json!(["None"])
}

/// `5s`, `2m10s`, `3h`.
fn is_age(item: &Value) -> bool {
    let Some(text) = item.as_str() else { return false };
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len()
        && (matches!(rest, "s" | "m" | "h") || rest.starts_with('m') && rest.ends_with('s'))
}

fn without_uids(text: &str) -> String {
    replace(text, 36, "UID", |at, byte| {
        if [8, 13, 18, 23].contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
    })
}

fn without_times(text: &str) -> String {
    replace(text, 20, "TIME", |at, byte| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        19 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    })
}

/// Replaces every stretch of `length` bytes that has the given form.
fn replace(text: &str, length: usize, by: &str, form: impl Fn(usize, u8) -> bool) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let stretch = rest.as_bytes().get(..length);
        if stretch.is_some_and(|bytes| bytes.iter().enumerate().all(|(at, byte)| form(at, *byte))) {
            replaced.push_str(by);
            rest = &rest[length..];
        } else {
            replaced.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    replaced
}

fn compare(recorded: &Value, ours: &Value, at: &str, differences: &mut Vec<(String, String)>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            for (name, value) in recorded {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                match ours.get(name) {
                    Some(other) => compare(value, other, &at, differences),
                    None => differences.push((at, format!("missing, recorded {value}"))),
                }
            }
            for (name, value) in ours.iter().filter(|(name, _)| !recorded.contains_key(*name)) {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                differences.push((at, format!("{value}, not recorded")));
            }
        }
        (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
            for (index, (value, other)) in recorded.iter().zip(ours).enumerate() {
                compare(value, other, &format!("{at}/{index}"), differences);
            }
        }
        _ if recorded == ours => {}
        _ => differences.push((at.to_owned(), format!("{ours}, recorded {recorded}"))),
    }
}
