//! Ownership of fields, and server-side apply of hostile objects.

use scantling_api::schema::Schema;
use scantling_merge::{FieldSet, Request, apply, field_owners, merge_patch, strategic_merge_patch, update};
use serde_json::Value;

use super::{part, parts};

/// The time of all writes; it is of no consequence.
const NOW: &str = "2026-01-01T00:00:00Z";

/// Kinds whose types are tried: built-in ones with lists of every kind, and one that nobody knows.
const KINDS: [(&str, &str); 5] = [
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("v1", "ConfigMap"),
    ("example.com/v1", "Widget"),
];

/// What must hold of all objects. The parts are two field sets or objects, as JSON.
pub fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let parts = parts(data);
    let json = |index| serde_json::from_slice::<Value>(part(&parts, index)).ok();
    let (one, other) = (json(0), json(1));
    if let (Some(one), Some(other)) = (&one, &other) {
        sets(one, other);
    }
    if let Some(one) = one {
        let (api_version, name) = KINDS[usize::from(*kind) % KINDS.len()];
        objects(api_version, name, &one, &other.unwrap_or_default());
    }
}

fn sets(one: &Value, other: &Value) {
    let Ok(one) = FieldSet::from_fields_v1(one) else { return };
    let again = FieldSet::from_fields_v1(&one.to_fields_v1());
    assert_eq!(again.as_ref().ok(), Some(&one), "a set is readable as written");
    let Ok(other) = FieldSet::from_fields_v1(other) else { return };
    let union = one.union(&other);
    assert_eq!(union, other.union(&one));
    let intersection = one.intersection(&other);
    assert_eq!(intersection, other.intersection(&one));
    assert_eq!(one.difference(&other).union(&intersection), one);
    assert!(one.difference(&other).intersection(&other).is_empty());
    assert_eq!(union.len() + intersection.len(), one.len() + other.len());
    for path in one.paths() {
        assert!(union.contains(&path));
    }
}

fn objects(api_version: &str, kind: &str, one: &Value, other: &Value) {
    let schema = Schema::kubernetes();
    let named = |value: &Value| {
        let mut value = value.clone();
        if let Some(object) = value.as_object_mut() {
            object.insert("apiVersion".to_owned(), api_version.into());
            object.insert("kind".to_owned(), kind.into());
        }
        value
    };
    let (one, other) = (named(one), named(other));
    let request = Request::new(schema, api_version, kind, "fuzz", NOW);
    if let Ok(applied) = apply(&request, None, &one, false) {
        // Applying the same again changes nothing, and needs no force.
        let again = apply(&request, Some(&applied), &one, false).expect("nobody else owns anything");
        assert_eq!(again, applied);
        let _ = field_owners(&applied);
        let second = Request::new(schema, api_version, kind, "second", NOW);
        if let Ok(both) = apply(&second, Some(&applied), &other, true) {
            // Whoever forced owns what it applied: without force it is theirs now.
            assert!(apply(&second, Some(&both), &other, false).is_ok());
        }
        let _ = update(&second, Some(&applied), &other);
        let _ = strategic_merge_patch(schema, request.type_name, &applied, &other);
    }
    let _ = update(&request, Some(&one), &other);
    let _ = merge_patch(&one, &other);
}
