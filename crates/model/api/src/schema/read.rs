//! Reading a schema from its JSON form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    FieldFacts, KindSchema, ListKind, ListType, MAX_TYPE_DEPTH, MapType, PatchStrategy, Scalar, Schema,
    SchemaError, TypeDef, TypeRef,
};

/// Reads the whole document.
pub(super) fn schema(json: &Value) -> Result<Schema, SchemaError> {
    let root = object(json, "")?;
    let mut schema = Schema::default();
    for section in ["types", "customTypes"] {
        let Some(types) = root.get(section) else { continue };
        for (name, json) in object(types, section)? {
            schema.types.insert(name.clone(), definition(json, name, 0)?);
        }
    }
    let custom = root.get("customTypes").and_then(Value::as_object);
    if let Some(kinds) = root.get("kinds") {
        for (key, json) in object(kinds, "kinds")? {
            read_kind(&mut schema, key, json, custom)?;
        }
    }
    Ok(schema)
}

fn read_kind(
    schema: &mut Schema,
    key: &str,
    json: &Value,
    custom: Option<&Map<String, Value>>,
) -> Result<(), SchemaError> {
    let mut parts = key.rsplitn(3, '/');
    let (Some(kind), Some(version)) = (parts.next(), parts.next()) else {
        return Err(SchemaError::at(key, "a kind is named `group/version/Kind`, or `version/Kind`"));
    };
    let group = parts.next().unwrap_or("");
    let facts = object(json, key)?;
    let type_name = facts
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(|| SchemaError::at(key, "the name of the type is missing"))?;
    let flag = |name: &str| facts.get(name).and_then(Value::as_bool).unwrap_or(false);
    let facts = KindSchema {
        type_name: type_name.to_owned(),
        status: flag("status"),
        cluster: flag("cluster"),
        custom: flag("custom") || custom.is_some_and(|types| types.contains_key(type_name)),
    };
    schema.insert_kind(group, version, kind, facts);
    Ok(())
}

/// A named type: a scalar by its word, or an object.
fn definition(json: &Value, at: &str, depth: usize) -> Result<TypeDef, SchemaError> {
    if depth > MAX_TYPE_DEPTH {
        return Err(SchemaError::at(at, format!("types nest deeper than {MAX_TYPE_DEPTH}")));
    }
    if let Some(word) = json.as_str() {
        return Ok(TypeDef { scalar: Some(scalar(word, at)?), ..TypeDef::default() });
    }
    let json = object(json, at)?;
    let mut def = TypeDef::default();
    if let Some(word) = json.get("scalar") {
        let word = word.as_str().ok_or_else(|| SchemaError::at(at, "`scalar` is not a word"))?;
        def.scalar = Some(scalar(word, at)?);
    }
    if let Some(element) = json.get("list") {
        let element = reference(element, &format!("{at}[]"), depth + 1)?;
        def.list = Some(ListType { element, kind: list_kind(json, at)? });
    }
    let atomic = json.get("atomic").and_then(Value::as_bool).unwrap_or(false);
    if json.contains_key("fields") || json.contains_key("map") {
        let mut fields = BTreeMap::new();
        if let Some(declared) = json.get("fields") {
            for (name, json) in object(declared, at)? {
                fields.insert(name.clone(), field(json, &format!("{at}.{name}"), depth + 1)?);
            }
        }
        let element =
            json.get("map").map(|element| reference(element, &format!("{at}.*"), depth + 1)).transpose()?;
        def.map = Some(MapType { fields, element, atomic });
    }
    Ok(def)
}

fn reference(json: &Value, at: &str, depth: usize) -> Result<TypeRef, SchemaError> {
    if let Some(word) = json.as_str() {
        return match word.strip_prefix('#') {
            Some(name) => Ok(TypeRef::named(name)),
            None => Ok(TypeRef::scalar(scalar(word, at)?)),
        };
    }
    let map = object(json, at)?;
    let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
    let mut result = match map.get("ref").and_then(Value::as_str) {
        Some(name) => TypeRef { atomic: flag("atomic"), ..TypeRef::named(name.trim_start_matches('#')) },
        None => TypeRef::inline(definition(json, at, depth)?),
    };
    result.nullable = flag("nullable");
    Ok(result)
}

fn field(json: &Value, at: &str, depth: usize) -> Result<FieldFacts, SchemaError> {
    let map = object(json, at)?;
    let t = map.get("t").ok_or_else(|| SchemaError::at(at, "a field has no type (`t`)"))?;
    let mut patch_strategy = Vec::new();
    for word in map.get("patchStrategy").and_then(Value::as_str).unwrap_or("").split(',') {
        patch_strategy.push(match word {
            "" => continue,
            "merge" => PatchStrategy::Merge,
            "replace" => PatchStrategy::Replace,
            "retainKeys" => PatchStrategy::RetainKeys,
            other => return Err(SchemaError::at(at, format!("unknown patch strategy `{other}`"))),
        });
    }
    Ok(FieldFacts {
        t: reference(t, at, depth)?,
        default: map.get("default").cloned(),
        zero: map.get("zero").cloned(),
        omitzero: map.get("omitzero").and_then(Value::as_bool).unwrap_or(false),
        patch_strategy,
        patch_merge_key: map.get("patchMergeKey").and_then(Value::as_str).map(str::to_owned),
    })
}

fn list_kind(json: &Map<String, Value>, at: &str) -> Result<ListKind, SchemaError> {
    match json.get("type").and_then(Value::as_str) {
        Some("atomic") => Ok(ListKind::Atomic),
        Some("set") => Ok(ListKind::Set),
        Some("map") => {
            let keys: Vec<String> = json
                .get("keys")
                .and_then(Value::as_array)
                .map(|keys| keys.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                .unwrap_or_default();
            if keys.is_empty() {
                return Err(SchemaError::at(at, "a list of type `map` names no keys"));
            }
            Ok(ListKind::Map(keys))
        }
        _ => Err(SchemaError::at(at, "a list says no `type` of `atomic`, `set` or `map`")),
    }
}

fn scalar(word: &str, at: &str) -> Result<Scalar, SchemaError> {
    match word {
        "string" => Ok(Scalar::String),
        "number" => Ok(Scalar::Number),
        "boolean" => Ok(Scalar::Boolean),
        "untyped" => Ok(Scalar::Untyped),
        other => Err(SchemaError::at(at, format!("unknown scalar type `{other}`"))),
    }
}

fn object<'a>(json: &'a Value, at: &str) -> Result<&'a Map<String, Value>, SchemaError> {
    json.as_object().ok_or_else(|| SchemaError::at(at, "expected an object"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_every_part_of_the_format() {
        let schema = Schema::from_json(&json!({
            "kinds": {"apps/v1/Deployment": {"type": "D", "status": true}, "v1/Node": {"type": "N", "cluster": true},
                      "x.io/v1/Thing": {"type": "T"}},
            "types": {
                "D": {"fields": {
                    "name": {"t": "string", "default": "", "zero": ""},
                    "items": {"t": {"list": "#N", "type": "map", "keys": ["a", "b"]}, "omitzero": true,
                              "patchStrategy": "merge,retainKeys", "patchMergeKey": "a"},
                    "one": {"t": {"ref": "#N", "atomic": true}},
                    "free": {"t": {"map": "string", "nullable": true}}}},
                "N": "untyped"},
            "customTypes": {"T": {"atomic": true, "fields": {}}}
        }))
        .unwrap();
        assert_eq!(schema.type_of("apps", "v1", "Deployment"), Some("D"));
        let node = schema.kind("", "v1", "Node").unwrap();
        assert!(node.cluster && !node.status && !node.custom);
        assert!(schema.kind("x.io", "v1", "Thing").unwrap().custom);
        let map = schema.type_def("D").unwrap().map.as_ref().unwrap();
        let items = &map.fields["items"];
        assert_eq!(items.patch_strategy, [PatchStrategy::Merge, PatchStrategy::RetainKeys]);
        assert_eq!(
            schema.resolve(&items.t).unwrap().list.as_ref().unwrap().kind,
            ListKind::Map(vec!["a".into(), "b".into()])
        );
        assert!(map.fields["one"].t.atomic);
        assert!(map.fields["free"].t.nullable);
        assert_eq!(map.fields["name"].zero, Some(json!("")));
        assert!(schema.type_def("T").unwrap().map.as_ref().unwrap().atomic);
    }

    #[test]
    fn says_where_a_schema_is_wrong() {
        let cases = [
            (json!([]), "expected an object"),
            (json!({"types": {"A": "text"}}), "schema at A: unknown scalar type `text`"),
            (json!({"types": {"A": {"fields": {"x": {}}}}}), "schema at A.x: a field has no type"),
            (json!({"types": {"A": {"list": "string"}}}), "schema at A: a list says no `type`"),
            (json!({"types": {"A": {"list": "string", "type": "map"}}}), "names no keys"),
            (json!({"kinds": {"Pod": {}}}), "schema at Pod: a kind is named"),
        ];
        for (json, wanted) in cases {
            let message = Schema::from_json(&json).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn refuses_endless_nesting() {
        let mut json = json!("string");
        for _ in 0..200 {
            json = json!({"map": json});
        }
        assert!(Schema::from_json(&json!({"types": {"A": json}})).is_err());
    }
}
