//! `OpenAPI`, as far as clients need it: kubectl looks up there whether a server validates fields, which kinds can be
//! patched, and how lists are merged.
//!
//! The documents are made from the same types that the server works with. They hold no prose, so `kubectl explain` shows
//! fields and types only.

use std::collections::BTreeSet;

use scantling_api::KindFacts;
use scantling_api::schema::{FieldFacts, ListKind, PatchStrategy, Scalar, Schema, TypeDef, TypeRef};
use serde_json::{Map, Value, json};

use super::{ApiServer, Status};

/// Deepest nesting of types written in place.
const MAX_DEPTH: usize = 64;
const PREFIX: &str = "#/components/schemas/";

impl ApiServer {
    /// `/openapi/v2`: nothing but its frame, for clients that ask for the old form in JSON.
    pub(super) fn openapi_v2() -> Value {
        json!({
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": super::discovery::GIT_VERSION},
            "paths": {},
            "definitions": {},
        })
    }

    /// `/openapi/v3`, or the document of one version (`api/v1`, `apis/apps/v1`).
    pub(super) fn openapi_v3(&self, document: Option<&str>) -> Result<Value, Status> {
        let Some(document) = document else {
            let mut paths = Map::new();
            for group in self.kinds.groups() {
                for version in &group.versions {
                    let path = path(&group.name, version);
                    // The hash lets clients keep documents; it changes with whatever can change one.
                    let kinds = self.kinds.in_version(&group.name, version).count();
                    let generation = self.definitions_generation;
                    let url = format!("/openapi/v3/{path}?hash={kinds:X}{generation:08X}");
                    paths.insert(path, json!({"serverRelativeURL": url}));
                }
            }
            return Ok(json!({"paths": paths}));
        };
        let (group, version) = match document.split('/').collect::<Vec<_>>().as_slice() {
            ["api", version] => (String::new(), (*version).to_owned()),
            ["apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
            _ => return Err(Status::no_such_resource()),
        };
        let kinds: Vec<&KindFacts> = self.kinds.in_version(&group, &version).collect();
        if kinds.is_empty() {
            return Err(Status::no_such_resource());
        }
        let mut paths = Map::new();
        for facts in &kinds {
            operations(facts, &mut paths);
        }
        Ok(json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": super::discovery::GIT_VERSION},
            "paths": paths,
            "components": {"schemas": Components::of(&self.schema, &kinds)},
        }))
    }
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn operations(facts: &KindFacts, paths: &mut Map<String, Value>) {
    let base = format!("/{}", path(&facts.gvk.group, &facts.gvk.version));
    let all = if facts.namespaced {
        format!("{base}/namespaces/{{namespace}}/{}", facts.plural)
    } else {
        format!("{base}/{}", facts.plural)
    };
    let kind = json!({"group": facts.gvk.group, "version": facts.gvk.version, "kind": facts.gvk.kind});
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"]
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .into();
    let schema = json!({"$ref": format!("{PREFIX}{}", facts.type_name)});
    let operation = |action: &str, body: Option<&[&str]>| {
        let mut operation = json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        });
        if let Some(types) = body {
            let content: Map<String, Value> =
                types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect();
            operation["requestBody"] = json!({"content": content, "required": true});
        }
        operation
    };
    let has = |verb: &str| facts.verbs.iter().any(|known| known == verb);
    let mut list = Map::new();
    let mut one = Map::new();
    if has("list") {
        list.insert("get".into(), operation("list", None));
    }
    if has("create") {
        list.insert("post".into(), operation("post", Some(&["application/json", "application/yaml"])));
    }
    if has("get") {
        one.insert("get".into(), operation("get", None));
    }
    if has("update") {
        one.insert("put".into(), operation("put", Some(&["application/json", "application/yaml"])));
    }
    if has("patch") {
        let mut types = vec![
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ];
        if facts.type_name.starts_with("io.k8s.") {
            types.push("application/strategic-merge-patch+json");
        }
        one.insert("patch".into(), operation("patch", Some(&types)));
    }
    if has("delete") {
        one.insert("delete".into(), operation("delete", None));
    }
    paths.insert(format!("{all}/{{name}}"), Value::Object(one));
    paths.insert(all, Value::Object(list));
}

/// The types that some kinds need, as `OpenAPI` schemas.
struct Components<'s> {
    schema: &'s Schema,
    wanted: Vec<String>,
}

impl<'s> Components<'s> {
    fn of(schema: &'s Schema, kinds: &[&KindFacts]) -> Map<String, Value> {
        let mut components = Self { schema, wanted: Vec::new() };
        let mut found = Map::new();
        for facts in kinds {
            let mut written = components.named(&facts.type_name);
            let gvk = json!({"group": facts.gvk.group, "version": facts.gvk.version, "kind": facts.gvk.kind});
            written["x-kubernetes-group-version-kind"] = json!([gvk]);
            found.insert(facts.type_name.clone(), written);
        }
        let mut seen = BTreeSet::new();
        while let Some(name) = components.wanted.pop() {
            if seen.insert(name.clone()) && !found.contains_key(&name) {
                let written = components.named(&name);
                found.insert(name, written);
            }
        }
        found
    }

    fn named(&mut self, name: &str) -> Value {
        let schema = self.schema;
        schema.type_def(name).map_or_else(|| json!({}), |def| self.definition(def, false, 0))
    }

    fn reference(&mut self, t: &TypeRef, depth: usize) -> Value {
        match t.name() {
            Some(name) if name.starts_with("__untyped") => {
                json!({"x-kubernetes-preserve-unknown-fields": true})
            }
            Some(name) => {
                self.wanted.push(name.to_owned());
                let mut written = json!({"allOf": [{"$ref": format!("{PREFIX}{name}")}]});
                if t.atomic {
                    written["x-kubernetes-map-type"] = json!("atomic");
                }
                written
            }
            None => {
                let schema = self.schema;
                schema.resolve(t).map_or_else(|| json!({}), |def| self.definition(def, t.atomic, depth + 1))
            }
        }
    }

    fn definition(&mut self, def: &TypeDef, atomic: bool, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return json!({});
        }
        match (&def.scalar, &def.list, &def.map) {
            (Some(scalar), None, None) => match scalar {
                Scalar::String => json!({"type": "string"}),
                Scalar::Number => json!({"type": "number"}),
                Scalar::Boolean => json!({"type": "boolean"}),
                Scalar::Untyped => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            },
            (None, Some(list), None) => {
                let mut written = json!({"type": "array", "items": self.reference(&list.element, depth)});
                let (kind, keys) = match &list.kind {
                    ListKind::Atomic => ("atomic", None),
                    ListKind::Set => ("set", None),
                    ListKind::Map(keys) => ("map", Some(keys)),
                };
                written["x-kubernetes-list-type"] = json!(kind);
                if let Some(keys) = keys {
                    written["x-kubernetes-list-map-keys"] = json!(keys);
                }
                written
            }
            (None, None, Some(map)) => {
                let mut written = json!({"type": "object"});
                let fields: Map<String, Value> =
                    map.fields.iter().map(|(name, facts)| (name.clone(), self.field(facts, depth))).collect();
                if !fields.is_empty() {
                    written["properties"] = Value::Object(fields);
                }
                if let Some(element) = &map.element {
                    written["additionalProperties"] = self.reference(element, depth);
                }
                if map.atomic || atomic {
                    written["x-kubernetes-map-type"] = json!("atomic");
                }
                written
            }
            _ => json!({"x-kubernetes-preserve-unknown-fields": true}),
        }
    }

    fn field(&mut self, facts: &FieldFacts, depth: usize) -> Value {
        let mut written = self.reference(&facts.t, depth);
        if let Some(default) = &facts.default {
            written["default"] = default.clone();
        }
        if !facts.patch_strategy.is_empty() {
            let names: Vec<&str> = facts
                .patch_strategy
                .iter()
                .map(|strategy| match strategy {
                    PatchStrategy::Merge => "merge",
                    PatchStrategy::RetainKeys => "retainKeys",
                    PatchStrategy::Replace => "replace",
                })
                .collect();
            written["x-kubernetes-patch-strategy"] = json!(names.join(","));
        }
        if let Some(key) = &facts.patch_merge_key {
            written["x-kubernetes-patch-merge-key"] = json!(key);
        }
        written
    }
}
