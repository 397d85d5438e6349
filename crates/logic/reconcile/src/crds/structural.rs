//! From the schema of a Rust type to a structural schema.
//!
//! Rules: <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const LIST_TYPE: &str = "x-kubernetes-list-type";

/// Keywords that a structural schema may have here.
const ALLOWED: [&str; 22] = [
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    LIST_TYPE,
    PRESERVE,
];

/// The keyword for rules in CEL.
pub(super) const RULES: &str = "x-kubernetes-validations";

/// Formats that API servers know; for others they warn.
const FORMATS: [&str; 7] = ["byte", "date", "date-time", "double", "float", "int32", "int64"];

/// Makes a schema structural, as far as it can be; [`problems`] names what is left.
pub(super) fn convert(schema: Value) -> Value {
    // `true`: anything.
    let Value::Object(mut fields) = schema else { return json!({PRESERVE: true}) };
    for unused in ["$schema", "title", "deprecated", "readOnly", "writeOnly", "examples"] {
        fields.remove(unused);
    }
    if let Some(inner) = optional(&mut fields) {
        merge(&mut fields, inner);
    }
    variants(&mut fields);
    if let Some(value) = fields.remove("const") {
        fields.insert("enum".to_owned(), json!([value]));
    }
    types(&mut fields);
    if let Some(Value::String(text)) = fields.get("description") {
        let text = paragraphs(text);
        fields.insert("description".to_owned(), json!(text));
    }
    if fields.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
        fields.remove("format");
    }
    // `#[serde(default)]` says how a missing field is read, which needs no help of the server.
    if fields.get("default").is_some_and(is_empty) {
        fields.remove("default");
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for property in properties.values_mut() {
            *property = convert(property.take());
        }
        // It would forbid what the pruning of unknown fields takes care of.
        fields.remove("additionalProperties");
    }
    if fields.get("additionalProperties") == Some(&Value::Bool(true)) {
        fields.remove("additionalProperties");
        fields.insert(PRESERVE.to_owned(), json!(true));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(inner).filter(|schema| !schema.is_boolean()) {
            *schema = convert(schema.take());
        }
    }
    if fields.get("type").and_then(Value::as_str) == Some("array") {
        let unique = fields.remove("uniqueItems").is_some();
        fields.entry(LIST_TYPE).or_insert_with(|| json!(if unique { "set" } else { "atomic" }));
    }
    Value::Object(fields)
}

/// What `Option` makes of a type that has no `type` to add `null` to: `anyOf` it and `null`.
fn optional(fields: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    let alternatives = fields.get("anyOf")?.as_array()?;
    let [Value::Object(inner), Value::Object(null)] = alternatives.as_slice() else { return None };
    if null.get("type").and_then(Value::as_str) != Some("null") {
        return None;
    }
    let inner = inner.clone();
    fields.remove("anyOf");
    Some(inner)
}

/// Adds what is not said yet: the words of a field go before those of its type.
fn merge(fields: &mut Map<String, Value>, inner: Map<String, Value>) {
    for (name, value) in inner {
        fields.entry(name).or_insert(value);
    }
}

/// An enum whose variants have docs is `oneOf` constants; the server wants one list, and the docs go into the description.
fn variants(fields: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = fields.get("oneOf") else { return };
    let mut words = Vec::new();
    let mut lines = Vec::new();
    for alternative in alternatives {
        let found = match (alternative.get("const"), alternative.get("enum")) {
            (Some(word), _) => vec![word.clone()],
            (None, Some(Value::Array(words))) => words.clone(),
            // A variant with content: left as it is, and found by `problems`.
            _ => return,
        };
        if let (Some(text), [Value::String(word)]) =
            (alternative.get("description").and_then(Value::as_str), found.as_slice())
        {
            lines.push(format!("`{word}`: {}", paragraphs(text)));
        }
        words.extend(found);
    }
    fields.remove("oneOf");
    let about = fields.get("description").and_then(Value::as_str).map(paragraphs);
    let text: Vec<String> = about.into_iter().chain(lines).collect();
    if !text.is_empty() {
        fields.insert("description".to_owned(), json!(text.join("\n\n")));
    }
    fields.insert("type".to_owned(), json!("string"));
    fields.insert("enum".to_owned(), json!(words));
}

/// A value is there or not; `null` counts as not there, so it is no type of its own.
fn types(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = fields.get("type") {
        let mut types: Vec<Value> = types.iter().filter(|name| *name != "null").cloned().collect();
        if types.len() == 1 {
            let only = types.remove(0);
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
}

/// Lines of a doc comment, joined to paragraphs.
fn paragraphs(text: &str) -> String {
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    paragraphs.join("\n\n")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

/// Why an API server would not take a schema as structural, or would take it with a warning: one line for each place.
pub fn problems(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, "", &mut found);
    found
}

fn check(schema: &Value, at: &str, found: &mut Vec<String>) {
    let mut say = |what: String| found.push(format!("{}: {what}", if at.is_empty() { "." } else { at }));
    let Some(fields) = schema.as_object() else { return say("is no schema".to_owned()) };
    for name in fields.keys().filter(|name| !ALLOWED.contains(&name.as_str()) && *name != RULES) {
        say(format!("`{name}` has no place in a structural schema"));
    }
    let flag = |name: &str| fields.get(name) == Some(&Value::Bool(true));
    let kind = fields.get("type").and_then(Value::as_str);
    match kind {
        None if flag(PRESERVE) || flag("x-kubernetes-int-or-string") => {}
        None => say("has no type".to_owned()),
        Some("array") => {
            if !fields.get("items").is_some_and(Value::is_object) {
                say("a list has no items".to_owned());
            }
            if fields.get(LIST_TYPE).and_then(Value::as_str) == Some("map") {
                let keys: Vec<&str> = fields
                    .get("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array)
                    .map(|keys| keys.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                let required: BTreeSet<&str> = schema
                    .pointer("/items/required")
                    .and_then(Value::as_array)
                    .map(|names| names.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                if keys.is_empty() {
                    say("a list by keys names no keys".to_owned());
                }
                for key in keys.iter().filter(|key| !required.contains(*key)) {
                    say(format!("its items do not require their key `{key}`"));
                }
            }
        }
        Some(_) => {}
    }
    for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check(property, &format!("{at}.{name}"), found);
    }
    for (name, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = fields.get(name).filter(|inner| inner.is_object()) {
            check(inner, &format!("{at}{mark}"), found);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]
    use std::collections::{BTreeMap, BTreeSet};

    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    /// A thing.
    /// It has lines.
    ///
    /// And paragraphs.
    #[derive(JsonSchema, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Thing {
        plain_word: Option<String>,
        count: u32,
        /// One of them.
        choice: Option<Choice>,
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
        set: BTreeSet<String>,
        map: BTreeMap<String, Inner>,
        anything: Value,
        #[serde(default = "ten")]
        ten: i32,
        pod: Map<String, Value>,
        bare: Option<Bare>,
    }

    fn ten() -> i32 {
        10
    }

    /// An inner one.
    #[derive(JsonSchema, Serialize, Deserialize)]
    struct Inner {
        name: String,
    }

    #[derive(JsonSchema, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        /// The first.
        One,
        /// The second.
        Two,
    }

    #[derive(JsonSchema, Serialize, Deserialize)]
    enum Bare {
        A,
        B,
    }

    #[derive(JsonSchema, Serialize, Deserialize)]
    enum Loaded {
        A(u8),
        B { name: String },
    }

    fn of<T: JsonSchema>() -> Value {
        super::super::structural_schema(super::super::schema_of::<T>)
    }

    #[test]
    fn types_become_structural_schemas() {
        let schema = of::<Thing>();
        assert_eq!(problems(&schema), Vec::<String>::new());
        assert_eq!(schema["description"], "A thing. It has lines.\n\nAnd paragraphs.");
        let inner = json!({
            "type": "object", "description": "An inner one.", "properties": {"name": {"type": "string"}}, "required": ["name"],
        });
        for (name, expected) in [
            ("plainWord", json!({"type": "string"})),
            ("count", json!({"type": "integer", "minimum": 0})),
            (
                "choice",
                json!({
                    "type": "string", "enum": ["one", "two"],
                    "description": "One of them.\n\n`one`: The first.\n\n`two`: The second.",
                }),
            ),
            ("inner", inner.clone()),
            ("list", json!({"type": "array", "items": inner, "x-kubernetes-list-type": "atomic"})),
            ("set", json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})),
            ("map", json!({"type": "object", "additionalProperties": inner})),
            ("anything", json!({"x-kubernetes-preserve-unknown-fields": true})),
            ("ten", json!({"type": "integer", "format": "int32", "default": 10})),
            ("pod", json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
            ("bare", json!({"type": "string", "enum": ["A", "B"]})),
        ] {
            assert_eq!(schema["properties"][name], expected, "{name}");
        }
        assert!(schema["additionalProperties"].is_null());
    }

    #[test]
    fn what_cannot_be_structural_is_named() {
        assert_eq!(
            problems(&of::<Loaded>()),
            [".: `oneOf` has no place in a structural schema", ".: has no type"]
        );
        for (schema, problem) in [
            (json!({}), ".: has no type"),
            (json!({"type": "array"}), ".: a list has no items"),
            (
                json!({
                    "type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                }),
                ".: its items do not require their key `a`",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#"}}}}),
                ".a[]: `$ref` has no place in a structural schema",
            ),
        ] {
            assert_eq!(problems(&schema)[0], problem);
        }
    }
}
