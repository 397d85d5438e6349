//! Generated values: kept, repeated, made, and never told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::ObjectKey;
use scantling_plan::{GeneratedValues, ValueOrigin, encode_string_data, without_values};
use scantling_release::Generated;
use serde_json::{Value, json};

fn generated() -> Vec<Generated> {
    let entry =
        |name: &str, key: &str, length: Option<usize>, pointer: Option<&str>, same_as: Option<&str>| {
            Generated {
                kind: "Secret".to_owned(),
                namespace: None,
                name: name.to_owned(),
                key: key.to_owned(),
                length,
                json_pointer: pointer.map(str::to_owned),
                same_as: same_as.map(str::to_owned),
            }
        };
    vec![
        // The one that repeats comes first on purpose.
        entry("connection", "text", None, Some("/auth/password"), Some("root/password")),
        entry("root", "password", Some(20), None, None),
        entry("other", "token", Some(12), None, None),
    ]
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("", "Secret", "n", name)
}

fn secret(name: &str, data: &[(&str, &str)]) -> (ObjectKey, Value) {
    let data: BTreeMap<&str, String> = data.iter().map(|(k, v)| (*k, STANDARD.encode(v))).collect();
    (
        key(name),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "n"}, "data": data}),
    )
}

fn decide(live: &BTreeMap<ObjectKey, Value>) -> Result<GeneratedValues, Vec<scantling_plan::Disagreement>> {
    GeneratedValues::decide(&generated(), Some("n"), live, |purpose, length| {
        format!("made for {purpose} with {length}")
    })
}

fn filled(
    values: &GeneratedValues,
    name: &str,
    template: &[(&str, &str)],
    live: Option<&Value>,
    field: &str,
) -> String {
    let (key, mut object) = secret(name, template);
    values.fill(&mut object, &key, live);
    String::from_utf8(STANDARD.decode(object["data"][field].as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn what_nobody_has_is_made_once_and_repeated() {
    let values = decide(&BTreeMap::new()).ok().unwrap();
    let made = "made for Secret n/root key password with 20";
    assert_eq!(filled(&values, "root", &[], None, "password"), made);
    let text = filled(&values, "connection", &[("text", r#"{"url": "x"}"#)], None, "text");
    let text: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text, json!({"url": "x", "auth": {"password": made}}));
    assert!(values.decisions().all(|(_, origin)| origin == ValueOrigin::Made));
    assert!(values.concerns(&key("root")) && !values.concerns(&key("else")));
}

#[test]
fn what_one_has_the_other_gets() {
    let live = BTreeMap::from([secret("connection", &[("text", r#"{"auth": {"password": "kept"}}"#)])]);
    let values = decide(&live).ok().unwrap();
    assert_eq!(filled(&values, "root", &[], None, "password"), "kept");
    let origins: BTreeMap<String, ValueOrigin> = values.decisions().collect();
    assert_eq!(origins["Secret n/connection key text at /auth/password"], ValueOrigin::Kept);
    assert_eq!(origins["Secret n/root key password"], ValueOrigin::Repeated);
    assert_eq!(origins["Secret n/other key token"], ValueOrigin::Made);
}

#[test]
fn a_text_that_says_the_same_stays_letter_by_letter() {
    let written = "{ \"auth\":{\"password\":\"kept\"},\n \"url\":\"x\" }";
    let (name, object) = secret("connection", &[("text", written)]);
    let live = BTreeMap::from([(name, object.clone()), secret("root", &[("password", "kept")])]);
    let values = decide(&live).ok().unwrap();
    assert_eq!(filled(&values, "connection", &[("text", r#"{"url": "x"}"#)], Some(&object), "text"), written);
    let moved = filled(&values, "connection", &[("text", r#"{"url": "y"}"#)], Some(&object), "text");
    let moved: Value = serde_json::from_str(&moved).unwrap();
    assert_eq!(moved, json!({"url": "y", "auth": {"password": "kept"}}));
}

#[test]
fn values_that_must_be_equal_and_are_not_are_named_without_being_told() {
    let live = BTreeMap::from([
        secret("connection", &[("text", r#"{"auth": {"password": "one"}}"#)]),
        secret("root", &[("password", "two")]),
    ]);
    let disagreements = decide(&live).err().unwrap();
    assert_eq!(disagreements.len(), 1);
    assert_eq!(disagreements[0].one_key, key("root"));
    assert_eq!(disagreements[0].other_key, key("connection"));
    let text = format!("{disagreements:?}");
    assert!(!text.contains("one\"") && !text.contains("two"), "{text}");
}

#[test]
fn an_unreadable_or_empty_value_counts_as_missing() {
    for data in [json!({"password": ""}), json!({"password": "%%%"}), json!({}), json!(null)] {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "root", "namespace": "n"}, "data": data});
        let values = decide(&BTreeMap::from([(key("root"), object)])).ok().unwrap();
        assert!(filled(&values, "root", &[], None, "password").starts_with("made for"));
    }
}

#[test]
fn string_data_is_encoded_and_stored_values_are_withheld() {
    let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "root", "namespace": "n"},
        "data": {"a": "YQ=="}, "stringData": {"b": "b"}});
    encode_string_data(&mut object);
    assert_eq!(object["data"], json!({"a": "YQ==", "b": "Yg=="}));
    assert!(object.get("stringData").is_none());
    let stored = without_values(&key("root"), &object);
    assert_eq!(stored["data"], json!({"a": null, "b": null}));
}
