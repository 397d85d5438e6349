//! Structural schemas: pruning, defaults, validation.
//!
//! Rules: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema` (pruning, defaulting) and `kube-openapi/pkg/validation`.

use scantling_api::object::type_name;
use scantling_api::schema::{OBJECT_META, Schema, TypeRef};
use serde_json::{Map, Value, json};

use super::super::Cause;

/// Deepest nesting of schemas and objects that is followed.
const MAX_DEPTH: usize = 100;
/// Problems that are named.
const MAX_CAUSES: usize = 50;

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
    if let Some(wanted) = wrong_type(schema, value) {
        let detail = format!("{} in body must be of type {wanted}: \"{}\"", field_name(at), type_name(value));
        causes.push(Cause::type_invalid(field_name(at), value, detail));
        return;
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

fn bounds(schema: &Value, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let mut check = |name: &str, size: f64, exclusive: bool, detail: &str| {
        let Some(limit) = limit(name) else { return };
        let lower = name.starts_with("min");
        let outside = if lower { size < limit } else { size > limit }
            || exclusive && (size - limit).abs() < f64::EPSILON;
        if outside {
            causes.push(Cause::invalid(
                field_name(at),
                value,
                format!("{} in body should {detail} {limit}", field_name(at)),
            ));
        }
    };
    #[allow(clippy::cast_precision_loss)] // Sizes of bodies of a few megabytes are exact in a float.
    let size = |length: usize| length as f64;
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            check("minimum", number, flag(schema, "exclusiveMinimum"), "be greater than or equal to");
            check("maximum", number, flag(schema, "exclusiveMaximum"), "be less than or equal to");
        }
        Value::String(text) => {
            let length = size(text.chars().count());
            check("minLength", length, false, "be at least of length");
            check("maxLength", length, false, "be at most of length");
        }
        Value::Array(items) => {
            check("minItems", size(items.len()), false, "have at least as many items as");
            check("maxItems", size(items.len()), false, "have at most as many items as");
        }
        Value::Object(fields) => {
            check("minProperties", size(fields.len()), false, "have at least as many properties as");
            check("maxProperties", size(fields.len()), false, "have at most as many properties as");
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
                .map(|key| item.get(key).cloned().unwrap_or_default())
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
