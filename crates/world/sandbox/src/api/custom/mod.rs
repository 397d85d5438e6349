//! Custom resource definitions: a definition makes its kind served.
//!
//! Modelled: names and versions, the structural schema (pruning, defaults, types, `required`, `enum` and bounds),
//! subresources, printer columns, selectable fields, the clean-up finalizer. Conversion is by `apiVersion` alone
//! (`strategy: None`); a webhook for it is stored, and a request that would need it is answered with an error: the server's
//! as long as nothing is ready behind its service, else that it is not modelled. Rules in CEL are stored but not
//! evaluated, which a warning says.

mod definition;
mod structure;

use std::collections::BTreeMap;

use scantling_api::schema::Schema;
use scantling_api::{GroupVersionKind, KindFacts, ObjectKey, object};
use serde_json::Value;

use super::meta;
use super::table::{self, Columns, CustomColumn};
use super::write::Options;
use super::{ApiServer, Cause, DeleteOptions, Deleted, Moment, Status};

pub(super) use definition::ScalePaths;

/// Group and kind of definitions.
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");
/// Keeps a definition that is being deleted until its objects are gone.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The field manager of what the API server itself writes.
const SERVER: &str = "kube-apiserver";

/// One version of a custom kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CustomVersion {
    /// `openAPIV3Schema`.
    pub(super) schema: Value,
    /// Printer columns; none means name and age.
    pub(super) columns: Option<Vec<CustomColumn>>,
    /// Fields that field selectors may name.
    pub(super) selectable: Vec<String>,
    /// Where the scale subresource finds its numbers.
    pub(super) scale: Option<ScalePaths>,
    /// The warning of a deprecated version.
    pub(super) deprecation: Option<String>,
}

/// All custom kinds that are served.
pub(super) type CustomKinds = BTreeMap<GroupVersionKind, CustomVersion>;

/// Whether a kind is that of definitions.
pub(super) fn is_definition(group: &str, kind: &str) -> bool {
    (group, kind) == DEFINITION
}

impl ApiServer {
    /// Whether a kind is defined by a custom resource definition.
    pub(super) fn is_custom(&self, facts: &KindFacts) -> bool {
        self.custom.contains_key(&facts.gvk)
    }

    /// Refuses requests to a custom kind whose objects a webhook would have to convert: what it makes of them is not known.
    pub(super) fn conversion(&self, facts: &KindFacts) -> Result<(), Status> {
        if !self.is_custom(facts) {
            return Ok(());
        }
        let GroupVersionKind { group, version, kind } = &facts.gvk;
        let key = ObjectKey::cluster(DEFINITION.0, DEFINITION.1, format!("{}.{group}", facts.plural));
        let Some(definition) = self.store.get(&key) else { return Ok(()) };
        let stored = definition.pointer("/status/storedVersions").and_then(Value::as_array);
        let mut stored = stored.into_iter().flatten().filter_map(Value::as_str);
        let other = stored.find(|stored| *stored != version.as_str());
        let (Some(other), "Webhook") = (other, object::text(definition, "/spec/conversion/strategy")) else {
            return Ok(());
        };
        let service = |field: &str| {
            object::text(definition, &format!("/spec/conversion/webhook/clientConfig/service/{field}"))
        };
        let (namespace, name) = (service("namespace"), service("name"));
        let answers =
            self.store.list("discovery.k8s.io", "EndpointSlice", Some(namespace)).any(|(_, slice)| {
                object::label(slice, "kubernetes.io/service-name") == Some(name)
                    && slice.get("endpoints").and_then(Value::as_array).into_iter().flatten().any(
                        |endpoint| {
                            endpoint.pointer("/conditions/ready").and_then(Value::as_bool) == Some(true)
                        },
                    )
            });
        let why = if answers {
            "the sandbox does not model conversion by webhook".to_owned()
        } else {
            format!(
                "Post \"https://{name}.{namespace}.svc:443/\": no endpoints available for service \"{name}\""
            )
        };
        Err(Status::internal(format!("conversion webhook for {group}/{other}, Kind={kind} failed: {why}")))
    }

    /// The definition of a custom kind's version.
    pub(super) fn custom_version(&self, facts: &KindFacts) -> Option<&CustomVersion> {
        self.custom.get(&facts.gvk)
    }

    /// The fields of a custom kind that field selectors may name.
    pub(super) fn selectable_fields(&self, facts: &KindFacts) -> &[String] {
        self.custom_version(facts).map_or(&[], |version| version.selectable.as_slice())
    }

    /// The columns of a kind's tables.
    pub(super) fn columns(&self, facts: &KindFacts) -> Columns<'_> {
        match self.custom_version(facts) {
            None => table::built_in(facts),
            Some(CustomVersion { columns: Some(columns), .. }) => Columns::Custom(columns),
            Some(_) => Columns::NameAndAge,
        }
    }

    /// Takes away what the schema does not know and says what that was.
    pub(super) fn prune(&self, facts: &KindFacts, object: &mut Value) -> Vec<String> {
        let Some(version) = self.custom_version(facts) else { return Vec::new() };
        structure::prune(&self.schema, &version.schema, object)
    }

    /// Sets the schema's defaults.
    pub(super) fn default_custom(&self, facts: &KindFacts, object: &mut Value) {
        if let Some(version) = self.custom_version(facts) {
            structure::default(&version.schema, object);
        }
    }

    /// What the schema does not allow.
    pub(super) fn validate_custom(&self, facts: &KindFacts, object: &Value) -> Vec<Cause> {
        self.custom_version(facts)
            .map_or_else(Vec::new, |version| structure::validate(&version.schema, object))
    }

    /// Follows a change of definitions: called after one was written.
    pub(super) fn definition_written(&mut self, at: &mut Moment<'_>, key: &ObjectKey) -> Result<(), Status> {
        let Some(object) = self.store.get_shared(key).cloned() else {
            return Ok(());
        };
        if !object::text(&object, "/metadata/deletionTimestamp").is_empty() {
            return self.clean_up(at, key);
        }
        if let Some(problem) = self.name_conflict(&object) {
            return self.write_definition_status(at, key, &object, Some(&problem));
        }
        self.serve_definition(&object)?;
        self.write_definition_status(at, key, &object, None)
    }

    /// Stops to serve the kinds of a definition that is gone.
    pub(super) fn definition_removed(&mut self, definition: &Value) {
        self.forget_kinds(definition);
        let (group, kind) =
            (object::text(definition, "/spec/group"), object::text(definition, "/spec/names/kind"));
        self.end_watches(group, kind);
    }

    /// After an object of a custom kind is gone: a definition may have waited for it.
    pub(super) fn custom_object_removed(
        &mut self,
        at: &mut Moment<'_>,
        key: &ObjectKey,
    ) -> Result<(), Status> {
        let waiting = self.store.list(DEFINITION.0, DEFINITION.1, None).find(|(_, definition)| {
            object::text(definition, "/spec/group") == key.group
                && object::text(definition, "/spec/names/kind") == key.kind
                && !object::text(definition, "/metadata/deletionTimestamp").is_empty()
        });
        let Some(definition) = waiting.map(|(key, _)| key.clone()) else { return Ok(()) };
        if self.store.list(&key.group, &key.kind, None).next().is_none() {
            self.release_definition(at, &definition)?;
        }
        Ok(())
    }

    /// Another definition or a built-in kind has the names already.
    fn name_conflict(&self, definition: &Value) -> Option<String> {
        let group = object::text(definition, "/spec/group");
        let kind = object::text(definition, "/spec/names/kind");
        let plural = object::text(definition, "/spec/names/plural");
        let taken = self.kinds.iter().find(|facts| {
            facts.gvk.group == group && (facts.gvk.kind == kind) != (facts.plural == plural)
                || facts.gvk.group == group && facts.gvk.kind == kind && !self.custom.contains_key(&facts.gvk)
        })?;
        Some(if taken.plural == plural {
            format!("\"{plural}\" is already in use")
        } else {
            format!("\"{kind}\" is already in use")
        })
    }

    fn serve_definition(&mut self, definition: &Value) -> Result<(), Status> {
        let schema = Schema::from_crd(definition).map_err(|error| Status::internal(error.to_string()))?;
        self.forget_kinds(definition);
        self.schema.extend(schema);
        for (facts, version) in definition::versions(definition) {
            self.custom.insert(facts.gvk.clone(), version);
            self.kinds.insert(facts);
        }
        Ok(())
    }

    /// Versions that are no longer served go; watches of the kind stay.
    fn forget_kinds(&mut self, definition: &Value) {
        let (group, kind) =
            (object::text(definition, "/spec/group"), object::text(definition, "/spec/names/kind"));
        let served: Vec<GroupVersionKind> =
            self.custom.keys().filter(|gvk| gvk.group == group && gvk.kind == kind).cloned().collect();
        for gvk in served {
            self.custom.remove(&gvk);
            self.kinds.remove(&gvk);
        }
        self.definitions_generation += 1;
    }

    fn write_definition_status(
        &mut self,
        at: &mut Moment<'_>,
        key: &ObjectKey,
        definition: &Value,
        conflict: Option<&str>,
    ) -> Result<(), Status> {
        let facts = self.facts_of_key(key)?;
        let mut new = definition.clone();
        let now = at.seconds();
        definition::set_status(&mut new, &now, conflict);
        if new == *definition {
            return Ok(());
        }
        self.write_raw(at, &facts, key, &new, SERVER, Some("status"))
    }

    /// A definition is being deleted: its objects go first.
    fn clean_up(&mut self, at: &mut Moment<'_>, key: &ObjectKey) -> Result<(), Status> {
        let Some(definition) = self.store.get_shared(key).cloned() else { return Ok(()) };
        let (group, kind) =
            (object::text(&definition, "/spec/group"), object::text(&definition, "/spec/names/kind"));
        let keys: Vec<ObjectKey> = self.store.list(group, kind, None).map(|(key, _)| key.clone()).collect();
        let mut left = false;
        if let Some(facts) = self.kinds.by_kind(group, kind).cloned() {
            for key in &keys {
                let deleted = self.delete_object(at, &facts, key, &DeleteOptions::default())?;
                left |= matches!(deleted, Deleted::Pending(_));
            }
        }
        if left { Ok(()) } else { self.release_definition(at, key) }
    }

    fn release_definition(&mut self, at: &mut Moment<'_>, key: &ObjectKey) -> Result<(), Status> {
        let Some(definition) = self.store.get_shared(key).cloned() else { return Ok(()) };
        let mut new = definition.as_ref().clone();
        if !meta::remove_finalizer(&mut new, CLEANUP) {
            return Ok(());
        }
        let facts = self.facts_of_key(key)?;
        self.update_object(at, &facts, key, None, new, &Options::by(SERVER)).map(|_| ())
    }
}

/// What a person who writes a definition should know.
pub(super) fn warnings(definition: &Value) -> Vec<String> {
    fn has_rules(schema: &Value) -> bool {
        match schema {
            Value::Object(fields) => {
                fields.contains_key("x-kubernetes-validations") || fields.values().any(has_rules)
            }
            Value::Array(items) => items.iter().any(has_rules),
            _ => false,
        }
    }
    let versions = definition.pointer("/spec/versions").unwrap_or(&Value::Null);
    if has_rules(versions) {
        vec!["the sandbox does not evaluate x-kubernetes-validations".to_owned()]
    } else {
        Vec::new()
    }
}

/// The status of a new definition, before anyone has looked at it.
pub(super) fn status_of_created(definition: &mut Value) {
    definition::status_of_created(definition);
}

/// What is wrong with a definition.
pub(super) fn validate_definition(definition: &Value) -> Vec<Cause> {
    definition::validate(definition)
}

/// The defaults of a definition.
pub(super) fn default_definition(definition: &mut Value) {
    definition::default(definition);
}
