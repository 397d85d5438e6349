//! Structural schemas: pruning, defaults, validation.
//!
//! Rules: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema` (pruning, defaulting) and `kube-openapi/pkg/validation`.

use regex::{Regex, RegexBuilder};
use scantling_api::schema::{OBJECT_META, Schema, TypeRef};
use serde_json::{Map, Value, json};

use super::super::Cause;

/// Deepest nesting of schemas and objects that is followed.
const MAX_DEPTH: usize = 100;
/// Problems that are named.
const MAX_CAUSES: usize = 50;

/// Largest compiled expression of a schema, in bytes.
const MAX_EXPRESSION: usize = 1 << 20;

/// Types that a schema may name.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Takes away the fields of a custom resource that its schema does not know and says which.
pub(super) fn prune(types: &Schema, schema: &Value, object: &mut Value) -> Vec<String> {
    let mut pruned = Vec::new();
    prune_object(types, schema, object, "", true, &mut pruned, 0);
    pruned
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn prune_value(
    types: &Schema,
    schema: &Value,
    value: &mut Value,
    at: &str,
    pruned: &mut Vec<String>,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => {
            let Some(element) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune_value(types, element, item, &format!("{at}[{index}]"), pruned, depth + 1);
            }
        }
        Value::Object(_) => prune_object(types, schema, value, at, flag(schema, EMBEDDED), pruned, depth),
        _ => {}
    }
}

fn prune_object(
    types: &Schema,
    schema: &Value,
    value: &mut Value,
    at: &str,
    is_resource: bool,
    pruned: &mut Vec<String>,
    depth: usize,
) {
    let Some(fields) = value.as_object_mut() else { return };
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    fields.retain(|name, field| {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        if is_resource && name == "metadata" {
            prune_metadata(types, field, &path, pruned);
            return true;
        }
        if is_resource && (name == "apiVersion" || name == "kind") {
            return true;
        }
        if let Some(property) = properties.and_then(|properties| properties.get(name)) {
            prune_value(types, property, field, &path, pruned, depth + 1);
            return true;
        }
        match others {
            Some(Value::Object(_)) => {
                prune_value(types, &schema["additionalProperties"], field, &path, pruned, depth + 1);
                true
            }
            Some(Value::Bool(true)) => true,
            _ if flag(schema, PRESERVE) => true,
            _ => {
                if pruned.len() < MAX_CAUSES {
                    pruned.push(format!("unknown field \"{path}\""));
                }
                false
            }
        }
    });
}

/// `metadata` keeps what every object has there.
fn prune_metadata(types: &Schema, metadata: &mut Value, at: &str, pruned: &mut Vec<String>) {
    let t = TypeRef::named(OBJECT_META);
    let known = types.resolve(&t).and_then(|def| def.map.as_ref());
    let (Some(known), Some(fields)) = (known, metadata.as_object_mut()) else { return };
    fields.retain(|name, field| {
        let keep = known.fields.contains_key(name);
        if !keep && pruned.len() < MAX_CAUSES {
            pruned.push(format!("unknown field \"{at}.{name}\""));
        }
        keep && !field.is_null()
    });
}

/// Sets the defaults of a schema where a field is missing, or null where it may not be.
pub(super) fn default(schema: &Value, object: &mut Value) {
    default_value(schema, object, 0);
}

/// Whether null is a value of its own; elsewhere it is the same as absent.
fn keeps_null(schema: &Value) -> bool {
    flag(schema, "nullable") || flag(schema, PRESERVE)
}

fn default_value(schema: &Value, value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                if depth == 0 && matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
                    continue;
                }
                if let Some(default) = property.get("default") {
                    let missing = match fields.get(name) {
                        None => true,
                        Some(found) => found.is_null() && !flag(property, "nullable"),
                    };
                    if missing {
                        fields.insert(name.clone(), default.clone());
                    }
                } else if fields.get(name).is_some_and(Value::is_null) && !keeps_null(property) {
                    fields.remove(name);
                }
                if let Some(field) = fields.get_mut(name) {
                    default_value(property, field, depth + 1);
                }
            }
            if let Some(element @ Value::Object(_)) = schema.get("additionalProperties") {
                let declared =
                    |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
                for (_, field) in fields.iter_mut().filter(|(name, _)| !declared(name)) {
                    default_value(element, field, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            if let Some(element) = schema.get("items") {
                for item in items {
                    default_value(element, item, depth + 1);
                }
            }
        }
        _ => {}
    }
}

/// What in an object its schema does not allow: types, `required`, `enum`, bounds of numbers, texts and lists.
pub(super) fn validate(schema: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    validate_value(schema, object, "", &mut causes, 0);
    causes
}

fn validate_value(schema: &Value, value: &Value, at: &str, causes: &mut Vec<Cause>, depth: usize) {
    if depth > MAX_DEPTH || causes.len() >= MAX_CAUSES {
        return;
    }
    if value.is_null() && flag(schema, "nullable") {
        return;
    }
    let wrong = wrong_type(schema, value);
    if let Some(wanted) = wrong {
        let found = json_type(value);
        let detail = format!("{} in body must be of type {wanted}: \"{found}\"", field_name(at));
        causes.push(Cause::type_invalid(field_name(at), &json!(found), detail));
    }
    if wrong.is_none() {
        pattern(schema, value, at, causes);
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let names: Vec<String> = allowed
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        causes.push(Cause::unsupported(field_name(at), value, &names));
    }
    if wrong.is_some() {
        return;
    }
    bounds(schema, value, at, causes);
    match value {
        Value::Object(fields) => object_fields(schema, fields, at, causes, depth),
        Value::Array(items) => {
            if let Some(element) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    validate_value(element, item, &format!("{at}[{index}]"), causes, depth + 1);
                }
            }
            list_keys(schema, items, at, causes);
        }
        _ => {}
    }
}

fn object_fields(
    schema: &Value,
    fields: &Map<String, Value>,
    at: &str,
    causes: &mut Vec<Cause>,
    depth: usize,
) {
    let child = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !fields.contains_key(name) {
            causes.push(Cause::required(child(name), ""));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties").filter(|others| others.is_object());
    for (name, field) in fields {
        // The server has its own rules for the parts that every object has.
        if depth == 0 && matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
            continue;
        }
        if let Some(property) = properties.and_then(|properties| properties.get(name)).or(others) {
            validate_value(property, field, &child(name), causes, depth + 1);
        }
    }
}

fn wrong_type(schema: &Value, value: &Value) -> Option<&'static str> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return (!value.is_string() && !value.is_i64() && !value.is_u64()).then_some("integer or string");
    }
    let whole = |value: &Value| {
        value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("object") if !value.is_object() => Some("object"),
        Some("array") if !value.is_array() => Some("array"),
        Some("string") if !value.is_string() => Some("string"),
        Some("boolean") if !value.is_boolean() => Some("boolean"),
        Some("number") if !value.is_number() => Some("number"),
        Some("integer") if !whole(value) => Some("integer"),
        _ => None,
    }
}

/// The type of a value in the words of JSON Schema.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A text matches the expression of its schema. The two engines have the same syntax but for corners that no schema
/// uses; an expression that cannot be read here was refused with its definition.
fn pattern(schema: &Value, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (Some(pattern), Value::String(text)) = (schema.get("pattern").and_then(Value::as_str), value) else {
        return;
    };
    if expression(pattern).is_some_and(|expression| !expression.is_match(text)) {
        let detail = format!("{} in body should match '{pattern}'", field_name(at));
        causes.push(Cause::invalid(field_name(at), value, detail));
    }
}

fn expression(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(MAX_EXPRESSION).build().ok()
}

fn bounds(schema: &Value, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let field = field_name(at);
    let count =
        |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
            if let Some(limit) = limit("minimum") {
                let exclusive = flag(schema, "exclusiveMinimum");
                if number < limit || exclusive && number <= limit {
                    let word = if exclusive { "greater than" } else { "greater than or equal to" };
                    causes.push(Cause::invalid(
                        &field,
                        value,
                        format!("{field} in body should be {word} {limit}"),
                    ));
                }
            }
            if let Some(limit) = limit("maximum") {
                let exclusive = flag(schema, "exclusiveMaximum");
                if number > limit || exclusive && number >= limit {
                    let word = if exclusive { "less than" } else { "less than or equal to" };
                    causes.push(Cause::invalid(
                        &field,
                        value,
                        format!("{field} in body should be {word} {limit}"),
                    ));
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            if let Some(limit) = count("minLength").filter(|limit| length < *limit) {
                let detail = format!("{field} in body should be at least {limit} chars long");
                causes.push(Cause::invalid(&field, value, detail));
            }
            if let Some(limit) = count("maxLength").filter(|limit| length > *limit) {
                causes.push(Cause::too_long(&field, limit));
            }
        }
        Value::Array(items) => {
            if let Some(limit) = count("minItems").filter(|limit| items.len() < *limit) {
                let detail = format!("{field} in body should have at least {limit} items");
                causes.push(Cause::invalid(&field, &json!(items.len()), detail));
            }
            if let Some(limit) = count("maxItems").filter(|limit| items.len() > *limit) {
                causes.push(Cause::too_many(&field, items.len(), limit));
            }
        }
        Value::Object(fields) => {
            if let Some(limit) = count("minProperties").filter(|limit| fields.len() < *limit) {
                let detail = format!("{field} in body should have at least {limit} properties");
                causes.push(Cause::invalid(&field, &json!(fields.len()), detail));
            }
            if let Some(limit) = count("maxProperties").filter(|limit| fields.len() > *limit) {
                causes.push(Cause::too_many(&field, fields.len(), limit));
            }
        }
        _ => {}
    }
}

/// Items of sets and maps occur once.
fn list_keys(schema: &Value, items: &[Value], at: &str, causes: &mut Vec<Cause>) {
    let keys = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => None,
        Some("map") => schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array),
        _ => return,
    };
    let mut seen = std::collections::BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let identity = match keys {
            None => item.clone(),
            Some(keys) => keys
                .iter()
                .filter_map(Value::as_str)
                .map(|key| (key.to_owned(), item.get(key).cloned().unwrap_or_default()))
                .collect(),
        };
        if !seen.insert(identity.to_string()) {
            causes.push(Cause::duplicate(format!("{}[{index}]", field_name(at)), &identity));
        }
    }
}

fn field_name(at: &str) -> String {
    if at.is_empty() { "<nil>".to_owned() } else { at.to_owned() }
}

/// What makes a schema not structural: every part says its type, and nothing refers to something else.
pub(super) fn validate_schema(schema: &Value, at: &str, causes: &mut Vec<Cause>) {
    if schema.get("type") != Some(&json!("object")) {
        let found = schema.get("type").unwrap_or(&Value::Null);
        causes.push(Cause::invalid(format!("{at}.type"), found, "must be object at the root"));
    }
    structural(schema, at, causes, 0);
}

fn structural(schema: &Value, at: &str, causes: &mut Vec<Cause>, depth: usize) {
    if causes.len() >= MAX_CAUSES {
        return;
    }
    if depth > MAX_DEPTH {
        causes.push(Cause::forbidden(at, "the schema nests too deep"));
        return;
    }
    let typed = schema.get("type").is_some_and(|t| *t != json!(""))
        || flag(schema, PRESERVE)
        || flag(schema, "x-kubernetes-int-or-string");
    if !typed {
        causes.push(Cause::required(format!("{at}.type"), "must not be empty for specified object fields"));
    }
    if let Some(found) = schema.get("type").filter(|found| **found != json!(""))
        && found.as_str().is_none_or(|name| !TYPES.contains(&name))
    {
        causes.push(Cause::unsupported(format!("{at}.type"), found, &TYPES));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && expression(pattern).is_none()
    {
        causes.push(Cause::invalid(
            format!("{at}.pattern"),
            &json!(pattern),
            "must be a valid regular expression",
        ));
    }
    if schema.get("$ref").is_some() {
        causes.push(Cause::forbidden(format!("{at}.$ref"), "$ref is not supported"));
    }
    if schema.get("type") == Some(&json!("array")) && schema.get("items").is_none() {
        causes.push(Cause::required(format!("{at}.items"), "must be specified"));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        structural(property, &format!("{at}.properties[{name}]"), causes, depth + 1);
    }
    if let Some(element) = schema.get("items") {
        structural(element, &format!("{at}.items"), causes, depth + 1);
    }
    if let Some(others @ Value::Object(_)) = schema.get("additionalProperties") {
        structural(others, &format!("{at}.additionalProperties"), causes, depth + 1);
    }
}
