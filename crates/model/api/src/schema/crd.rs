//! Types of custom resources, from the structural schema of their definition.
//!
//! Rules: <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>
//! and the merge markers of
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    DEDUCED, FieldFacts, KindSchema, ListKind, ListType, MAX_TYPE_DEPTH, MapType, OBJECT_META, Scalar,
    Schema, SchemaError, TypeDef, TypeRef, anything,
};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Types and kinds of one `CustomResourceDefinition` object.
pub(super) fn definition(object: &Value) -> Result<Schema, SchemaError> {
    let missing = |what: &str| SchemaError::Definition(format!("`{what}` is missing or not text"));
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .ok_or_else(|| missing(&pointer[1..].replace('/', ".")))
    };
    let (group, kind) = (text("/spec/group")?, text("/spec/names/kind")?);
    let cluster = object.pointer("/spec/scope").and_then(Value::as_str) == Some("Cluster");
    let versions = object
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .ok_or_else(|| SchemaError::Definition("`spec.versions` is missing or not a list".into()))?;
    let mut schema = Schema::default();
    for version in versions {
        if version.get("served").and_then(Value::as_bool) == Some(false) {
            continue;
        }
        let name =
            version.get("name").and_then(Value::as_str).ok_or_else(|| missing("spec.versions[].name"))?;
        let type_name = type_name(group, name, kind);
        let def = match version.pointer("/schema/openAPIV3Schema") {
            Some(json) => root(json, &type_name)?,
            None => anything(),
        };
        schema.types.insert(type_name.clone(), def);
        let status = version.pointer("/subresources/status").is_some();
        schema.insert_kind(group, name, kind, KindSchema { type_name, status, cluster, custom: true });
    }
    Ok(schema)
}

/// Group in reverse, version and kind: `com.example.stable.v1.Widget`.
fn type_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.rsplit('.').collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// The type of a whole object: the fields every object has are added.
fn root(json: &Value, at: &str) -> Result<TypeDef, SchemaError> {
    let mut def = convert(json, at, false, 0)?;
    let map =
        def.map.get_or_insert_with(|| MapType { fields: BTreeMap::new(), element: None, atomic: false });
    if map.fields.is_empty() && !preserves(json) {
        map.element = None;
    }
    add_object_fields(map);
    Ok(TypeDef { map: def.map, ..TypeDef::default() })
}

fn add_object_fields(map: &mut MapType) {
    for name in ["apiVersion", "kind"] {
        map.fields.insert(name.to_owned(), FieldFacts::of(TypeRef::scalar(Scalar::String)));
    }
    map.fields.insert("metadata".to_owned(), FieldFacts::of(TypeRef::named(OBJECT_META)));
}

fn preserves(json: &Value) -> bool {
    json.get(PRESERVE).and_then(Value::as_bool).unwrap_or(false)
}

/// `preserve` is inherited: below a field that keeps unknown fields, all structures keep them.
fn convert(json: &Value, at: &str, preserve: bool, depth: usize) -> Result<TypeDef, SchemaError> {
    if depth > MAX_TYPE_DEPTH {
        return Err(SchemaError::at(at, format!("types nest deeper than {MAX_TYPE_DEPTH}")));
    }
    let Some(object) = json.as_object() else {
        return Err(SchemaError::at(at, "expected an object"));
    };
    let preserve = preserve || preserves(json);
    let word = |name: &str| object.get(name).and_then(Value::as_str);
    if object.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return Ok(anything());
    }
    let scalar = |scalar| Ok(TypeDef { scalar: Some(scalar), ..TypeDef::default() });
    match word("type") {
        Some("object") => Ok(TypeDef { map: Some(map(object, at, preserve, depth)?), ..TypeDef::default() }),
        Some("array") => Ok(TypeDef { list: Some(list(object, at, preserve, depth)?), ..TypeDef::default() }),
        Some("integer" | "number") => scalar(Scalar::Number),
        Some("boolean") => scalar(Scalar::Boolean),
        Some("string") => match word("format") {
            None | Some("" | "byte") => scalar(Scalar::String),
            // Values of other formats may be rewritten, so they are compared without a type.
            Some(_) => scalar(Scalar::Untyped),
        },
        Some(other) => Err(SchemaError::at(at, format!("unknown type `{other}`"))),
        None if object.contains_key("properties") || object.contains_key("additionalProperties") => {
            Ok(TypeDef { map: Some(map(object, at, preserve, depth)?), ..TypeDef::default() })
        }
        None => Ok(anything()),
    }
}

fn reference(json: &Value, at: &str, preserve: bool, depth: usize) -> Result<TypeRef, SchemaError> {
    let def = convert(json, at, preserve, depth + 1)?;
    let container = def.scalar.is_none();
    let mut reference = TypeRef::inline(def);
    reference.nullable = container && json.get("nullable").and_then(Value::as_bool).unwrap_or(false);
    Ok(reference)
}

fn map(object: &Map<String, Value>, at: &str, preserve: bool, depth: usize) -> Result<MapType, SchemaError> {
    let mut map = MapType {
        fields: BTreeMap::new(),
        element: None,
        atomic: object.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
    };
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        for (name, json) in properties {
            let mut facts = FieldFacts::of(reference(json, &format!("{at}.{name}"), preserve, depth)?);
            facts.default = json.get("default").cloned();
            map.fields.insert(name.clone(), facts);
        }
    }
    if object.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true) {
        add_object_fields(&mut map);
    }
    match object.get("additionalProperties") {
        Some(json @ Value::Object(_)) => {
            map.element = Some(reference(json, &format!("{at}.*"), preserve, depth)?);
        }
        Some(Value::Bool(true)) => map.element = Some(TypeRef::named(DEDUCED)),
        _ if preserve || map.fields.is_empty() => map.element = Some(TypeRef::named(DEDUCED)),
        _ => {}
    }
    Ok(map)
}

fn list(
    object: &Map<String, Value>,
    at: &str,
    preserve: bool,
    depth: usize,
) -> Result<ListType, SchemaError> {
    let at = format!("{at}[]");
    let element = match object.get("items") {
        Some(items) => reference(items, &at, preserve, depth)?,
        None => TypeRef::named(DEDUCED),
    };
    let kind = match object.get("x-kubernetes-list-type").and_then(Value::as_str) {
        None | Some("atomic") => ListKind::Atomic,
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = object.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys: Vec<String> =
                keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            if keys.is_empty() {
                return Err(SchemaError::at(
                    &at,
                    "a list of type `map` names no `x-kubernetes-list-map-keys`",
                ));
            }
            ListKind::Map(keys)
        }
        Some(other) => {
            return Err(SchemaError::at(&at, format!("unknown `x-kubernetes-list-type` `{other}`")));
        }
    };
    Ok(ListType { element, kind })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    fn crd(schema: &Value) -> Value {
        json!({"spec": {"group": "a.b.c", "names": {"kind": "K"}, "scope": "Cluster", "versions": [
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}},
            {"name": "v0", "served": false}]}})
    }

    #[test]
    fn names_types_and_kinds() {
        let schema = Schema::from_crd(&crd(&json!({"type": "object"}))).unwrap();
        let facts = schema.kind("a.b.c", "v1", "K").unwrap();
        assert_eq!(facts.type_name, "c.b.a.v1.K");
        assert!(facts.status && facts.cluster && facts.custom);
        assert!(schema.kind("a.b.c", "v0", "K").is_none());
        let root = schema.type_def("c.b.a.v1.K").unwrap().map.as_ref().unwrap();
        assert_eq!(root.fields.keys().collect::<Vec<_>>(), ["apiVersion", "kind", "metadata"]);
        assert!(root.element.is_none());
    }

    #[test]
    fn converts_markers() {
        let schema = Schema::from_crd(&crd(&json!({"type": "object", "properties": {
            "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            "keyed": {"type": "array", "nullable": true, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["p"],
                      "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "boolean"}}},
            "keeps": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                      "properties": {"in": {"type": "object", "properties": {"x": {"type": "string"}}}}},
            "port": {"x-kubernetes-int-or-string": true},
            "when": {"type": "string", "format": "date-time"}}})))
        .unwrap();
        let fields = &schema.type_def("c.b.a.v1.K").unwrap().map.as_ref().unwrap().fields;
        let def = |name: &str| schema.resolve(&fields[name].t).unwrap();
        assert_eq!(def("set").list.as_ref().unwrap().kind, ListKind::Set);
        assert!(fields["keyed"].t.nullable);
        let item = schema.resolve(&def("keyed").list.as_ref().unwrap().element).unwrap();
        assert_eq!(item.map.as_ref().unwrap().fields["p"].default, Some(json!("TCP")));
        assert!(def("atom").map.as_ref().unwrap().atomic);
        let inner = schema.resolve(&def("keeps").map.as_ref().unwrap().fields["in"].t).unwrap();
        assert_eq!(inner.map.as_ref().unwrap().element, Some(TypeRef::named(DEDUCED)));
        assert_eq!(def("port"), &anything());
        assert_eq!(def("when").scalar, Some(Scalar::Untyped));
    }

    #[test]
    fn says_what_a_definition_lacks() {
        let cases = [
            (json!({}), "`spec.group`"),
            (json!({"spec": {"group": "g", "names": {"kind": "K"}}}), "`spec.versions`"),
            (
                crd(&json!({"type": "object", "properties": {"x": {"type": "text"}}})),
                "c.b.a.v1.K.x: unknown type",
            ),
        ];
        for (json, wanted) in cases {
            let message = Schema::from_crd(&json).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message}");
        }
    }
}
