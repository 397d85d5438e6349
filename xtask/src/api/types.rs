//! The types of the API from the `OpenAPI` documents, in the terms of structured merge: scalars, lists with their kind
//! and keys, maps, fields with default and patch strategy. The rules are those of `k8s.io/kube-openapi/pkg/schemaconv`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

const REFERENCE: &str = "#/components/schemas/";
/// An arbitrary object inside another one: the server keeps its bytes, so it is replaced as a whole.
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// All types of all documents.
#[derive(Default)]
pub(crate) struct Types {
    pub(crate) types: BTreeMap<String, Value>,
    /// `group/version/Kind` to the type's name.
    pub(crate) by_kind: BTreeMap<String, String>,
}

/// A value of unknown shape that is replaced as a whole.
pub(crate) fn untyped_atomic() -> Value {
    json!({"atomic": true, "list": "#__untyped_atomic_", "map": "#__untyped_atomic_", "scalar": "untyped", "type": "atomic"})
}

/// A value of unknown shape whose maps are merged and whose lists are replaced.
pub(crate) fn untyped_deduced() -> Value {
    json!({"list": "#__untyped_atomic_", "map": "#__untyped_deduced_", "scalar": "untyped", "type": "atomic"})
}

/// Reads every document of the folder; a type that several documents describe is described alike in all of them.
pub(crate) fn read(folder: &Path) -> Result<Types> {
    let mut found = Types::default();
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let document: Value =
            serde_json::from_slice(&bytes).with_context(|| format!("parsing {}", path.display()))?;
        let Some(schemas) = document["components"]["schemas"].as_object() else { continue };
        for (name, schema) in schemas {
            found.add(name, schema);
        }
    }
    Ok(found)
}

impl Types {
    fn add(&mut self, name: &str, schema: &Value) {
        self.types.insert(name.to_owned(), convert(schema));
        // Types such as DeleteOptions belong to every group; only those of one kind are of interest.
        if let Some([kind]) = schema["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice) {
            let part = |name: &str| kind[name].as_str().unwrap_or_default();
            let key = match part("group") {
                "" => format!("{}/{}", part("version"), part("kind")),
                group => format!("{group}/{}/{}", part("version"), part("kind")),
            };
            self.by_kind.insert(key, name.to_owned());
        }
    }

    /// The types that are needed to describe the given ones.
    pub(crate) fn reachable<'a>(&self, roots: impl Iterator<Item = &'a str>) -> BTreeMap<String, Value> {
        let mut names: Vec<String> = roots.map(str::to_owned).collect();
        let mut seen = BTreeSet::new();
        let mut found = BTreeMap::new();
        while let Some(name) = names.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            if let Some(t) = self.types.get(&name) {
                references(t, &mut names);
                found.insert(name, t.clone());
            }
        }
        found
    }
}

fn references(t: &Value, names: &mut Vec<String>) {
    match t {
        Value::String(text) => names.extend(text.strip_prefix('#').map(str::to_owned)),
        Value::Object(fields) => {
            names.extend(fields.get("ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

fn convert(schema: &Value) -> Value {
    if let Some(name) = reference(schema) {
        return match schema["x-kubernetes-map-type"].as_str() {
            _ if name == RAW => json!("#__untyped_atomic_"),
            // The field says otherwise than the type that it refers to.
            Some("granular") => json!({"ref": name, "atomic": false}),
            Some("atomic") => json!({"ref": name, "atomic": true}),
            _ => json!(format!("#{name}")),
        };
    }
    let mut t = Map::new();
    if schema["x-kubernetes-preserve-unknown-fields"] == json!(true) {
        let Value::Object(deduced) = untyped_deduced() else { return Value::Null };
        return Value::Object(deduced);
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, &mut t),
        Some("array") => list(schema, &mut t),
        Some(scalar) => return json!(scalar_name(scalar, schema["format"].as_str().unwrap_or_default())),
        // Alternatives (quantities, integers or strings) and nothing at all are scalars of any kind; a type without
        // any word is an arbitrary value.
        None if schema.get("oneOf").is_some() || schema.get("format").is_some() => return json!("untyped"),
        None => return untyped_deduced(),
    }
    Value::Object(t)
}

fn reference(schema: &Value) -> Option<&str> {
    let direct = schema["$ref"].as_str().or_else(|| match schema["allOf"].as_array().map(Vec::as_slice) {
        Some([only]) => only["$ref"].as_str(),
        _ => None,
    })?;
    direct.strip_prefix(REFERENCE)
}

fn scalar_name(scalar: &str, format: &str) -> &'static str {
    match (scalar, format) {
        ("integer" | "number", _) => "number",
        ("boolean", _) => "boolean",
        // `byte` is base64 in a string; every other format of a string is compared as it is written.
        ("string", "" | "byte") => "string",
        _ => "untyped",
    }
}

fn object(schema: &Value, t: &mut Map<String, Value>) {
    if let Some(properties) = schema["properties"].as_object() {
        let fields: Map<String, Value> =
            properties.iter().map(|(name, property)| (name.clone(), field(property))).collect();
        t.insert("fields".into(), Value::Object(fields));
    }
    match schema.get("additionalProperties") {
        Some(Value::Object(values)) => {
            t.insert("map".into(), convert(&Value::Object(values.clone())));
        }
        _ if schema.get("properties").is_none() => {
            t.insert("map".into(), json!("#__untyped_deduced_"));
        }
        _ => {}
    }
    if schema["x-kubernetes-map-type"] == json!("atomic") {
        t.insert("atomic".into(), json!(true));
    }
}

fn list(schema: &Value, t: &mut Map<String, Value>) {
    t.insert("list".into(), convert(&schema["items"]));
    let relation = schema["x-kubernetes-list-type"].as_str().unwrap_or("atomic");
    t.insert("type".into(), json!(relation));
    if let Some(keys) = schema.get("x-kubernetes-list-map-keys") {
        t.insert("keys".into(), keys.clone());
    }
}

fn field(property: &Value) -> Value {
    let mut facts = json!({"t": convert(property)});
    let mut put = |name: &str, value: Option<&Value>| {
        if let Some(value) = value {
            facts[name] = value.clone();
        }
    };
    put("default", property.get("default"));
    put("patchStrategy", property.get("x-kubernetes-patch-strategy"));
    put("patchMergeKey", property.get("x-kubernetes-patch-merge-key"));
    facts
}
