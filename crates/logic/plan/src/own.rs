//! Objects that a release needs and does not bring itself: the product's kinds and the release's namespace.

use scantling_api::{ObjectKey, object};
use scantling_release::{Release, Wave};
use serde_json::{Value, json};

/// The objects that a run adds to those of the release, each with its wave.
pub fn own_objects(release: &Release) -> Vec<(ObjectKey, Wave, Value)> {
    let mut objects: Vec<Value> =
        scantling_reconcile::DEFINITIONS.iter().map(scantling_reconcile::Definition::to_value).collect();
    if let Some(namespace) = &release.namespace {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
    }
    let theirs = |key: &ObjectKey| release.objects.iter().any(|o| o.key == *key);
    objects
        .into_iter()
        .filter_map(|value| {
            let key = object::key(&value).ok()?;
            let wave = if key.kind == "Namespace" { Wave::Namespaces } else { Wave::Definitions };
            Some((key, wave, value)).filter(|(key, ..)| !theirs(key))
        })
        .collect()
}
