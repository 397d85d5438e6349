//! The annotation that client-side apply left behind, and how an apply by `kubectl` takes it over.

use serde_json::{Map, Value};

use crate::compare::compare;
use crate::extract::owned_fields;
use crate::request::Request;
use crate::set::FieldSet;
use crate::update::bounded;
use crate::validate::validate;
use crate::value::write_json;

/// The only manager that takes over from client-side apply.
pub(crate) const KUBECTL: &str = "kubectl";
/// The annotation of client-side apply.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Most bytes all annotations of an object may have, keys and values together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The fields that the annotation has and that are still as it says; none without a readable annotation.
pub(crate) fn unchanged(request: &Request<'_>, live: &Value) -> Option<FieldSet> {
    let annotation = annotation(live)?;
    let root = request.root();
    validate(request.schema, Some(&root), live, false).ok()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    bounded("the last applied configuration", &last).ok()?;
    let text = |name: &str| last.get(name).and_then(Value::as_str);
    if text("apiVersion") != Some(request.api_version) || text("kind") != Some(request.kind) {
        return None;
    }
    validate(request.schema, Some(&root), &last, false).ok()?;
    let compared = compare(request.schema, Some(&root), &last, live).ok()?;
    Some(
        owned_fields(request.schema, Some(&root), &last)
            .difference(&compared.modified)
            .difference(&compared.added)
            .difference(&compared.removed),
    )
}

fn annotation(object: &Value) -> Option<&str> {
    let annotations = annotations(object)?;
    annotations.get(ANNOTATION).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The annotations, if all of them are text.
fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    let annotations = object.pointer("/metadata/annotations")?.as_object()?;
    annotations.values().all(Value::is_string).then_some(annotations)
}

/// Writes `applied` into the annotation of an object that has one.
pub(crate) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    let readable = annotations(&applied).is_some();
    if let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut) {
        if readable {
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(ANNOTATION);
            }
        } else {
            metadata.remove("annotations");
        }
    }
    let mut text = String::new();
    write_json(&applied, &mut text);
    text.push('\n');
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.insert(ANNOTATION.to_owned(), Value::String(text));
        let size: usize =
            annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        if size > MAX_ANNOTATIONS {
            annotations.remove(ANNOTATION);
        }
    }
}
