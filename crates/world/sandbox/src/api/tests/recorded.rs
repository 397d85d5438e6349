//! The answers of a real API server to two hundred requests, and ours to the same.
//!
//! `tests/recorded/1.35.jsonl` holds one exchange a line, in order: the request, the code and the answer of
//! Kubernetes 1.35.4 with what differs from run to run taken out, and under `except` the parts (JSON pointers) in which
//! this server is known to answer otherwise: mostly the wording of Go's decoders, and what controllers write meanwhile.
//! `cargo xtask record` writes the answers anew.

#[path = "../../../tests/recorded/normal.rs"]
mod normal;

use std::path::Path;

use serde_json::{Value, json};

use super::Server;

#[test]
fn answers_are_those_of_a_real_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/1.35.jsonl");
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
        compare(&normal::normal(&exchange["answer"]), &normal::normal(&answer), "", &mut differences);
        for (pointer, what) in differences {
            if !excepted.iter().any(|known| pointer.starts_with(known)) {
                failures.push(format!("{about}: {pointer}: {what}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
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
