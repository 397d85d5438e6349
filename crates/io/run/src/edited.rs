//! What somebody has changed of the release that is installed, found by the plan's own decision about every object: what was
//! applied last is what is wanted.
//!
//! Nothing is written and no registry is asked: references lead where they led when the release was brought.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::Schema;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{ClusterError, Served};
use scantling_plan::{
    Desired, ForeignField, Frame, GeneratedValues, Outcome, Step, encode_string_data, steps,
};
use scantling_release::{Release, Wave};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::bundle::Bundle;
use crate::environment::Environment;
use crate::state::State;

/// An object of the release of which somebody has changed fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edited {
    /// The object.
    pub key: ObjectKey,
    /// The fields, each with those who own it now.
    pub fields: Vec<ForeignField>,
}

/// What was found out about fields.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Objects with fields that differ from what the release wants.
    pub(crate) edited: Vec<Edited>,
    /// Objects with fields that are left to whoever wrote them: by a rule of the release, or because it says nothing of them.
    pub(crate) left: Vec<Edited>,
}

/// Holds every object that is there against what was applied.
///
/// # Errors
/// Why it cannot be told.
pub(crate) async fn compare(
    env: &Environment,
    served: &Served,
    state: &State,
    live: &BTreeMap<ObjectKey, Value>,
) -> Result<Compared, String> {
    // The rules about fields are in the release's files.
    let bundle = Bundle::load(env, &state.version).await.map_err(|e| e.to_string())?;
    let release = bundle.release().map_err(|e| e.to_string())?;
    let schema = types(env, served, state, live).await?;
    let mut compared = Compared::default();
    let values = GeneratedValues::decide(
        &release.generated,
        release.namespace.as_deref(),
        live,
        // What is gone differs, whatever is put in its place.
        |_, length| "-".repeat(length),
    );
    if let Err(disagreements) = &values {
        for it in disagreements {
            let field = ForeignField { field: ".data".to_owned(), owners: Vec::new(), rule: None };
            compared.edited.push(Edited { key: it.other_key.clone(), fields: vec![field] });
        }
    }
    let values = values.ok();
    let desired = state.objects.iter().filter_map(|applied| {
        let key = object::key(applied).ok()?;
        let value = with_values(applied, &key, &release, values.as_ref(), live.get(&key));
        Some(Desired { key, wave: Wave::Resources, value, adjusted: Vec::new() })
    });
    let desired: Vec<Desired> = desired.collect();
    let keys: BTreeSet<&ObjectKey> = desired.iter().map(|d| &d.key).collect();
    let nobody = BTreeSet::new();
    let frame = Frame { schema: &schema, rules: &release.ownership, legacy_managers: &nobody };
    let steps = steps(&frame, &desired, &state.previous(), live).map_err(|e| e.to_string())?;
    for step in steps.iter().filter(|step| keys.contains(&step.key)) {
        let add = |to: &mut Vec<Edited>, fields: Vec<ForeignField>| {
            if !fields.is_empty() {
                to.push(Edited { key: step.key.clone(), fields });
            }
        };
        add(&mut compared.edited, differing(step));
        add(&mut compared.left, step.kept.clone());
    }
    compared.edited.sort_by(|a, b| a.key.cmp(&b.key));
    compared.left.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(compared)
}

/// The fields that the release wants otherwise. Where we own every field that differs, it is the server that keeps a value in
/// words of its own.
fn differing(step: &Step) -> Vec<ForeignField> {
    if !matches!(step.outcome, Outcome::Updated | Outcome::Replaced | Outcome::Conflict) || step.repeats {
        return Vec::new();
    }
    let mut fields: BTreeMap<&str, ForeignField> = BTreeMap::new();
    for field in step.conflicts.iter().chain(&step.taken) {
        fields.insert(&field.field, field.clone());
    }
    let changed = step.changes.iter().map(|change| &change.field).chain(&step.immutable);
    for field in changed {
        let nobodys = || ForeignField { field: field.clone(), owners: Vec::new(), rule: None };
        fields.entry(field).or_insert_with(nobodys);
    }
    fields.into_values().collect()
}

/// An object as it was applied, with the values of a Secret, which are not stored with it: those that the release declares or
/// generates; those that are there where it says nothing.
fn with_values(
    applied: &Value,
    key: &ObjectKey,
    release: &Release,
    values: Option<&GeneratedValues>,
    live: Option<&Value>,
) -> Value {
    let mut object = applied.clone();
    if !key.group.is_empty() || key.kind != "Secret" {
        return object;
    }
    let declared = release.objects.iter().find(|object| object.key == *key);
    let mut declared = declared.map_or(Value::Object(Map::new()), |object| object.value.clone());
    encode_string_data(&mut declared);
    if let Some(values) = values {
        values.fill(&mut declared, key, live);
    }
    let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) else { return object };
    let value_in = |of: Option<&Value>, name: &str| of?.get("data")?.get(name).cloned();
    for (name, value) in data.iter_mut().filter(|(_, value)| value.is_null()) {
        let known = value_in(Some(&declared), name).or_else(|| value_in(live, name));
        *value = known.unwrap_or_else(|| Value::String(String::new()));
    }
    object
}

/// The types of all kinds of the release.
async fn types(
    env: &Environment,
    served: &Served,
    state: &State,
    live: &BTreeMap<ObjectKey, Value>,
) -> Result<Schema, String> {
    let mut schema = Schema::kubernetes().clone();
    schema.extend(Schema::openshift().clone());
    let is_definition = |object: &&Value| object::text(object, "/kind") == "CustomResourceDefinition";
    for definition in live.values().chain(&state.objects).filter(is_definition) {
        schema.extend(Schema::from_crd(definition).map_err(|e| e.to_string())?);
    }
    let kinds: BTreeSet<_> = state.objects.iter().filter_map(|applied| object::gvk(applied).ok()).collect();
    for gvk in kinds {
        if schema.kind(&gvk.group, &gvk.version, &gvk.kind).is_some() {
            continue;
        }
        let Some(resource) = served.by_gvk(&gvk) else { continue };
        let name = format!("{}.{}", resource.plural, gvk.group);
        let key = ObjectKey::cluster("apiextensions.k8s.io", "CustomResourceDefinition", &name);
        let found = env.cluster.get_by_key(served, &key).await;
        if let Some(definition) = found.map_err(|error: ClusterError| error.to_string())? {
            schema.extend(Schema::from_crd(&definition).map_err(|e| e.to_string())?);
        }
    }
    Ok(schema)
}
