//! The definitions of the kinds that this project serves, made from the types that the code itself reads and writes.
//!
//! A kind joins in two steps: derive `JsonSchema` for the types of its `spec` and `status` (doc comments become descriptions), and add a
//! [`Definition`] with them to [`DEFINITIONS`]. `cargo xtask crds` then writes `crds/PLURAL.GROUP.yaml`, and `cargo xtask crds --check` fails while
//! that file is not what the types say.
//!
//! What types do not say is said by `#[schemars(extend("x-kubernetes-…" = …))]`: `preserve-unknown-fields` where a pod's spec stands,
//! `list-type` and `list-map-keys`, and `validations` (CEL). Lists of which nothing is said are atomic.

mod structural;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub use structural::problems;

/// Where objects of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// A column that `kubectl get` shows.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its head.
    pub name: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// Where its value is, as a JSON path of `kubectl`: `.spec.title`.
    pub path: &'static str,
    /// Shown only with `-o wide`.
    pub wide: bool,
}

impl Column {
    /// A text.
    pub const fn text(name: &'static str, path: &'static str) -> Self {
        Self { name, kind: "string", path, wide: false }
    }

    /// A whole number.
    pub const fn number(name: &'static str, path: &'static str) -> Self {
        Self { name, kind: "integer", path, wide: false }
    }

    /// A time, shown as an age.
    pub const fn age(name: &'static str, path: &'static str) -> Self {
        Self { name, kind: "date", path, wide: false }
    }

    /// The same column, shown only with `-o wide`.
    #[must_use]
    pub const fn wide(mut self) -> Self {
        self.wide = true;
        self
    }
}

/// A rule in CEL about a whole object. Rules about fields stand at their types.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// What must be true.
    pub rule: &'static str,
    /// What to tell somebody for whom it is not.
    pub message: &'static str,
}

/// The definition of a kind. It is served and stored in one version.
#[derive(Clone, Copy)]
pub struct Definition {
    /// What an object of it is, in a sentence.
    pub about: &'static str,
    /// API group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, in small letters.
    pub plural: &'static str,
    /// Short names for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Groups of kinds for `kubectl get`, such as `all`.
    pub categories: &'static [&'static str],
    /// Where its objects are.
    pub scope: Scope,
    /// The columns of `kubectl get`. Without any, the server shows the age; with some, it shows these and nothing else.
    pub columns: &'static [Column],
    /// Rules about the whole object.
    pub rules: &'static [Rule],
    /// The spec: [`schema_of`] its type.
    pub spec: SchemaOf,
    /// The status, a subresource of its own: [`schema_of`] its type.
    pub status: Option<SchemaOf>,
}

/// Makes the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Definition({})", self.name())
    }
}

/// The schema of a type.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

fn structural_schema(schema: SchemaOf) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    structural::convert(schema(&mut settings.into_generator()).to_value())
}

/// Every definition, in the order of their names.
pub const DEFINITIONS: &[Definition] = &[
    crate::serving::CLUSTER_RUNTIME_DEFINITION,
    crate::hardware_profile::HARDWARE_PROFILE_DEFINITION,
    crate::serving::SERVICE_DEFINITION,
    crate::catalogue::NOTEBOOK_IMAGE_DEFINITION,
    crate::notebook::NOTEBOOK_DEFINITION,
    crate::platform::PLATFORM_DEFINITION,
    crate::serving::RUNTIME_DEFINITION,
];

impl Definition {
    /// The name of the `CustomResourceDefinition`: `notebooks.kubeflow.org`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The structural schema of the whole object.
    pub fn structural_schema(&self) -> Value {
        let mut properties = json!({"spec": structural_schema(self.spec)});
        if let Some(status) = self.status {
            properties["status"] = structural_schema(status);
        }
        let mut schema = json!({
            "type": "object", "description": self.about, "required": ["spec"], "properties": properties,
        });
        if !self.rules.is_empty() {
            let rules = self.rules.iter().map(|rule| json!({"rule": rule.rule, "message": rule.message}));
            schema[structural::RULES] = rules.collect();
        }
        schema
    }

    /// The `CustomResourceDefinition`.
    pub fn to_value(&self) -> Value {
        let singular = self.kind.to_lowercase();
        let mut names = json!({
            "kind": self.kind, "listKind": format!("{}List", self.kind), "plural": self.plural, "singular": singular,
        });
        for (field, list) in [("shortNames", self.short_names), ("categories", self.categories)] {
            if !list.is_empty() {
                names[field] = json!(list);
            }
        }
        let mut version = Map::new();
        version.insert("name".to_owned(), json!(self.version));
        version.insert("served".to_owned(), json!(true));
        version.insert("storage".to_owned(), json!(true));
        version.insert("schema".to_owned(), json!({"openAPIV3Schema": self.structural_schema()}));
        if self.status.is_some() {
            version.insert("subresources".to_owned(), json!({"status": {}}));
        }
        if !self.columns.is_empty() {
            let columns: Vec<Value> = self.columns.iter().map(column).collect();
            version.insert("additionalPrinterColumns".to_owned(), json!(columns));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": match self.scope { Scope::Namespaced => "Namespaced", Scope::Cluster => "Cluster" },
                "versions": [version],
            },
        })
    }
}

fn column(column: &Column) -> Value {
    let mut value = json!({"name": column.name, "type": column.kind, "jsonPath": column.path});
    if column.wide {
        value["priority"] = json!(1);
    }
    value
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::path::Path;

    use super::*;

    #[test]
    fn definitions_are_structural_ordered_and_readable() {
        let names: Vec<String> = DEFINITIONS.iter().map(Definition::name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for definition in DEFINITIONS {
            let name = definition.name();
            assert_eq!(problems(&definition.structural_schema()), Vec::<String>::new(), "{name}");
            scantling_api::schema::Schema::from_crd(&definition.to_value()).unwrap();
        }
    }

    #[test]
    fn columns_show_fields_that_exist() {
        for definition in DEFINITIONS {
            let schema = definition.structural_schema();
            for column in definition.columns.iter().filter(|column| !column.path.starts_with(".metadata.")) {
                let mut at = &schema;
                let path = column.path.split(['[', '?']).next().unwrap();
                for field in path.split('.').filter(|field| !field.is_empty()) {
                    at = &at["properties"][field];
                }
                assert!(at.is_object(), "{}: {} shows nothing", definition.name(), column.name);
            }
        }
    }

    #[test]
    fn the_committed_files_are_what_the_types_say() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
        for definition in DEFINITIONS {
            let path = folder.join(format!("{}.yaml", definition.name()));
            let text = std::fs::read(&path).unwrap();
            let committed = scantling_yaml::parse(&text).unwrap()[0].root.to_json();
            assert!(committed == definition.to_value(), "{}: run `cargo xtask crds`", path.display());
        }
    }
}
