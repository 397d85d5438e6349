//! Typed schemas of API objects: which fields exist, how lists and maps are merged, and what the
//! server's own types do with empty values.
//!
//! A [`Schema`] is a set of named types plus a table of the kinds that use them. It is read from the
//! JSON form that ships with the program ([`Schema::from_json`]), or made from a
//! `CustomResourceDefinition` ([`Schema::from_crd`]); several schemas are joined with [`Schema::extend`].

mod crd;
mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// Name of the type whose shape is deduced from the value: maps are merged, lists are atomic.
pub const DEDUCED: &str = "__untyped_deduced_";
/// Name of the type of anything inside an untyped list: one leaf, whatever it holds.
pub const ATOMIC: &str = "__untyped_atomic_";
/// Name of the type of `metadata` of every object.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Deepest nesting of inline types; the deepest published type nests far less.
const MAX_TYPE_DEPTH: usize = 64;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A part has another shape than the format says.
    #[error("schema at {at}: {problem}")]
    Malformed {
        /// Where, as a path of keys.
        at: String,
        /// What is wrong there.
        problem: String,
    },
    /// A `CustomResourceDefinition` lacks something that a schema needs.
    #[error("custom resource definition: {0}")]
    Definition(String),
}

impl SchemaError {
    fn at(at: &str, problem: impl Into<String>) -> Self {
        Self::Malformed { at: at.to_owned(), problem: problem.into() }
    }
}

/// Kinds of scalar values a type may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    String,
    /// An integer or a float.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any of the three.
    Untyped,
}

/// How the items of a list relate to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind {
    /// The list is one value.
    Atomic,
    /// Items are scalars, each present at most once.
    Set,
    /// Items are maps, identified by the named fields.
    Map(Vec<String>),
}

/// The type of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListType {
    /// Type of the items.
    pub element: TypeRef,
    /// How the items relate.
    pub kind: ListKind,
}

/// The type of a map or of a structure with named fields.
#[derive(Debug, Clone, PartialEq)]
pub struct MapType {
    /// Declared fields.
    pub fields: BTreeMap<String, FieldFacts>,
    /// Type of the keys that are not declared; none means such keys are refused.
    pub element: Option<TypeRef>,
    /// The map is one value.
    pub atomic: bool,
}

/// One declared field of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldFacts {
    /// Type of the field.
    pub t: TypeRef,
    /// Default value, used when the field is a missing key of a list item.
    pub default: Option<Value>,
    /// The server's type always writes this field; this is what it writes when nothing was given.
    pub zero: Option<Value>,
    /// The server's type drops the field when its value is zero or empty.
    pub omitzero: bool,
    /// How a strategic merge patch treats the field.
    pub patch_strategy: Vec<PatchStrategy>,
    /// The field that identifies items of a list in a strategic merge patch.
    pub patch_merge_key: Option<String>,
}

impl FieldFacts {
    /// A field about which nothing but its type is known.
    pub fn of(t: TypeRef) -> Self {
        Self {
            t,
            default: None,
            zero: None,
            omitzero: false,
            patch_strategy: Vec::new(),
            patch_merge_key: None,
        }
    }
}

/// What a strategic merge patch does with a list or a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Merge the items of the list.
    Merge,
    /// Replace the whole value.
    Replace,
    /// Keep only the keys that the patch names.
    RetainKeys,
}

/// All forms a value of one type may take; usually one of the three.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TypeDef {
    /// The scalar form.
    pub scalar: Option<Scalar>,
    /// The list form.
    pub list: Option<ListType>,
    /// The map form.
    pub map: Option<MapType>,
}

/// A type by name or in place.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeRef {
    /// The type meant.
    pub target: TypeTarget,
    /// The map or list named by `target` is one value here, whatever its own type says.
    pub atomic: bool,
    /// An explicit null is a valid value; an emptied container becomes null.
    pub nullable: bool,
}

/// What a [`TypeRef`] points at.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeTarget {
    /// A named type of the schema.
    Named(String),
    /// A type written in place.
    Inline(Arc<TypeDef>),
}

impl TypeRef {
    /// A reference to a named type.
    pub fn named(name: impl Into<String>) -> Self {
        Self { target: TypeTarget::Named(name.into()), atomic: false, nullable: false }
    }

    /// A type in place.
    pub fn inline(def: TypeDef) -> Self {
        Self { target: TypeTarget::Inline(Arc::new(def)), atomic: false, nullable: false }
    }

    /// A scalar type.
    pub fn scalar(scalar: Scalar) -> Self {
        Self::inline(TypeDef { scalar: Some(scalar), ..TypeDef::default() })
    }

    /// The name, if the type is a named one.
    pub fn name(&self) -> Option<&str> {
        match &self.target {
            TypeTarget::Named(name) => Some(name),
            TypeTarget::Inline(_) => None,
        }
    }
}

/// What is known of one kind at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindSchema {
    /// Name of its type.
    pub type_name: String,
    /// It has a status that is written through the `status` subresource.
    pub status: bool,
    /// Objects belong to no namespace.
    pub cluster: bool,
    /// It was defined by a `CustomResourceDefinition`, so objects are kept as plain JSON.
    pub custom: bool,
}

/// Named types and the kinds that use them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    types: BTreeMap<String, TypeDef>,
    /// `(group, kind)` → version → facts.
    kinds: BTreeMap<(String, String), BTreeMap<String, KindSchema>>,
}

impl Schema {
    /// A schema that knows the two deduced types and nothing else: every object is taken as it is.
    pub fn deduced() -> Self {
        let mut schema = Self::default();
        for (name, element, atomic) in [(DEDUCED, DEDUCED, false), (ATOMIC, ATOMIC, true)] {
            let map = MapType { fields: BTreeMap::new(), element: Some(TypeRef::named(element)), atomic };
            schema.types.insert(name.to_owned(), untyped(map));
        }
        schema
    }

    /// Reads the JSON form: `types` and `customTypes` (name → type) and `kinds`
    /// (`group/version/Kind` → `{type, status, cluster}`).
    pub fn from_json(json: &Value) -> Result<Self, SchemaError> {
        read::schema(json)
    }

    /// Makes the types of a `CustomResourceDefinition`, one per served version.
    ///
    /// The result refers to the types of [`Schema::deduced`] and to [`OBJECT_META`]; join it with a schema
    /// that has them.
    pub fn from_crd(definition: &Value) -> Result<Self, SchemaError> {
        crd::definition(definition)
    }

    /// Adds all types and kinds of `other`; where both know a name, `other` wins.
    pub fn extend(&mut self, other: Self) {
        self.types.extend(other.types);
        for (kind, versions) in other.kinds {
            self.kinds.entry(kind).or_default().extend(versions);
        }
    }

    /// Adds or replaces one kind.
    pub fn insert_kind(&mut self, group: &str, version: &str, kind: &str, facts: KindSchema) {
        self.kinds.entry((group.to_owned(), kind.to_owned())).or_default().insert(version.to_owned(), facts);
    }

    /// The type of that name.
    pub fn type_def(&self, name: &str) -> Option<&TypeDef> {
        self.types.get(name)
    }

    /// The type a reference points at. The reference's own `atomic` is for the caller to honour.
    pub fn resolve<'a>(&'a self, reference: &'a TypeRef) -> Option<&'a TypeDef> {
        match &reference.target {
            TypeTarget::Named(name) => self.types.get(name),
            TypeTarget::Inline(def) => Some(def),
        }
    }

    /// Facts of one kind at one version; the core group is the empty string.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&KindSchema> {
        self.versions(group, kind)?.get(version)
    }

    /// All versions of a kind.
    pub fn versions(&self, group: &str, kind: &str) -> Option<&BTreeMap<String, KindSchema>> {
        self.kinds.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Name of the type of a kind.
    pub fn type_of(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        self.kind(group, version, kind).map(|facts| facts.type_name.as_str())
    }

    /// Facts of the kind of an object, by its `apiVersion` and `kind`.
    pub fn kind_of(&self, object: &Value) -> Option<&KindSchema> {
        let api_version = object.get("apiVersion")?.as_str()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kind(group, version, object.get("kind")?.as_str()?)
    }

    /// Every kind as `(group, version, kind, facts)`, in order of group, kind and version.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str, &str, &KindSchema)> {
        self.kinds.iter().flat_map(|((group, kind), versions)| {
            versions
                .iter()
                .map(move |(version, facts)| (group.as_str(), version.as_str(), kind.as_str(), facts))
        })
    }

    /// Every named type, in order of name.
    pub fn types(&self) -> impl Iterator<Item = (&str, &TypeDef)> {
        self.types.iter().map(|(name, def)| (name.as_str(), def))
    }
}

/// Any scalar, an atomic list of anything, or the given map.
fn untyped(map: MapType) -> TypeDef {
    TypeDef {
        scalar: Some(Scalar::Untyped),
        list: Some(ListType { element: TypeRef::named(ATOMIC), kind: ListKind::Atomic }),
        map: Some(map),
    }
}

/// A value of any form whose maps are merged key by key.
fn anything() -> TypeDef {
    untyped(MapType { fields: BTreeMap::new(), element: Some(TypeRef::named(DEDUCED)), atomic: false })
}
