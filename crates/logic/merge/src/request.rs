//! What a write is about: the kind and its types, who writes, and what the server resets afterwards.

use scantling_api::schema::{DEDUCED, KindSchema, Schema, TypeRef};
use serde_json::{Map, Value, json};

use crate::path::Path;
use crate::set::FieldSet;

/// How the server keeps live objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// As plain JSON: custom resources.
    Json,
    /// Through the server's own type, which writes canonical quantities, adds fields it always writes and
    /// drops empty ones: built-in kinds.
    Typed,
}

/// One write to an object.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Types of the cluster's kinds.
    pub schema: &'a Schema,
    /// Name of the object's type in `schema`.
    pub type_name: &'a str,
    /// API version of the request; that of the body in an apply.
    pub api_version: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// The field manager.
    pub manager: &'a str,
    /// The subresource written to: `status`, or none for the object itself.
    pub subresource: Option<&'a str>,
    /// Time of the write, RFC 3339 with seconds.
    pub now: &'a str,
    /// How objects of this kind are kept.
    pub store: Store,
    /// The kind has a status that only the `status` subresource writes.
    pub status: bool,
}

impl<'a> Request<'a> {
    /// A write by `manager` to an object of the given kind. A kind that `schema` does not know has types
    /// deduced from its values and is kept as JSON.
    pub fn new(
        schema: &'a Schema,
        api_version: &'a str,
        kind: &'a str,
        manager: &'a str,
        now: &'a str,
    ) -> Self {
        let (group, version) = split(api_version);
        let facts = schema.kind(group, version, kind);
        Self {
            schema,
            type_name: facts.map_or(DEDUCED, |facts| facts.type_name.as_str()),
            api_version,
            kind,
            manager,
            subresource: None,
            now,
            store: match facts {
                Some(facts) if !facts.custom => Store::Typed,
                _ => Store::Json,
            },
            status: facts.is_some_and(|facts| facts.status),
        }
    }

    /// The same write to a subresource.
    #[must_use]
    pub fn to_subresource(mut self, subresource: &'a str) -> Self {
        self.subresource = Some(subresource);
        self
    }

    /// The type of the object as the request sees it.
    pub(crate) fn root(&self) -> TypeRef {
        TypeRef::named(self.type_name)
    }

    /// The type at another API version of the same kind; none if it is not served.
    pub(crate) fn root_at(&self, api_version: &str) -> Option<TypeRef> {
        if api_version == self.api_version || self.type_name == DEDUCED {
            return Some(self.root());
        }
        let (group, version) = split(api_version);
        self.schema.type_of(group, version, self.kind).map(TypeRef::named)
    }

    fn facts(&self) -> Option<&KindSchema> {
        let (group, version) = split(self.api_version);
        self.schema.kind(group, version, self.kind)
    }

    fn is_custom(&self) -> bool {
        self.facts().is_none_or(|facts| facts.custom)
    }

    fn to_status(&self) -> bool {
        self.subresource == Some("status")
    }

    /// Fields that this write can neither own nor change, with all below them.
    pub(crate) fn hidden(&self) -> FieldSet {
        self.reset_paths().into_iter().collect()
    }

    fn reset_paths(&self) -> Vec<Path> {
        if !self.status {
            return Vec::new();
        }
        if !self.to_status() {
            return if self.subresource.is_none() { vec![Path::fields(["status"])] } else { Vec::new() };
        }
        let mut paths = vec![Path::fields(["spec"])];
        match (split(self.api_version).0, self.kind) {
            ("apps", "Deployment") => paths.push(Path::fields(["metadata", "labels"])),
            ("", "Pod") => paths.push(Path::fields(["metadata", "ownerReferences"])),
            _ => {}
        }
        paths
    }

    /// Gives `object` back what this write may not change: the live value, or none.
    pub(crate) fn reset(&self, object: &mut Value, live: Option<&Value>) {
        if self.status && self.to_status() && self.is_custom() {
            let mut kept = live.cloned().unwrap_or_else(|| self.identity());
            if let Some(kept) = kept.as_object_mut() {
                match object.get_mut("status").map(Value::take) {
                    Some(status) => kept.insert("status".to_owned(), status),
                    None => kept.remove("status"),
                };
                kept.insert("apiVersion".to_owned(), json!(self.api_version));
            }
            *object = kept;
            return;
        }
        for path in self.reset_paths() {
            restore(object, &path, live.and_then(|live| path.select(live)));
        }
    }

    /// An object with nothing but its kind.
    pub(crate) fn identity(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind})
    }

    /// `object` at the version of the request: only `apiVersion` differs between versions.
    pub(crate) fn convert(&self, object: &Value) -> Value {
        at_version(object, self.api_version)
    }
}

/// `object` at another version.
pub(crate) fn at_version(object: &Value, api_version: &str) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".to_owned(), Value::String(api_version.to_owned()));
    }
    object
}

/// Group and version of an `apiVersion`; the core group is empty.
pub(crate) fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Sets the field at a path of field names, or removes it.
fn restore(object: &mut Value, path: &Path, value: Option<&Value>) {
    let Some((last, parents)) = path.0.split_last() else { return };
    let mut at = object;
    for parent in parents {
        let (crate::path::Element::Field(name), Some(map)) = (parent, at.as_object_mut()) else { return };
        if !map.contains_key(name) {
            if value.is_none() {
                return;
            }
            map.insert(name.clone(), Value::Object(Map::new()));
        }
        let Some(next) = map.get_mut(name) else { return };
        at = next;
    }
    if let (crate::path::Element::Field(name), Some(map)) = (last, at.as_object_mut()) {
        match value {
            Some(value) => map.insert(name.clone(), value.clone()),
            None => map.remove(name),
        };
    }
}
