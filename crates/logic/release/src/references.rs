//! The image references of a release.

use std::collections::BTreeSet;

use scantling_finding::Place;
use scantling_image::Reference;
use scantling_yaml::Node;
use serde::Serialize;

use crate::read::{Tree, shown};
use crate::source::Source;
use crate::substitution::Substitutions;
use crate::{Fallback, LiveWhen, Release};

/// One use of a reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsedReference {
    /// The reference.
    pub reference: Reference,
    /// Where it is written.
    pub place: Place,
    /// How it becomes live.
    pub reach: Reach,
}

/// How a reference becomes live.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reach {
    /// It is in what is applied.
    Applied,
    /// It is in code, and used when this holds.
    Fallback(LiveWhen),
    /// It is in code, and the release does not say when it is used.
    Undeclared,
}

/// Finds the references of a release in its manifests and sources.
pub(crate) fn read(
    release: &mut Release,
    root: &str,
    tree: &Tree,
    manifests: &BTreeSet<&str>,
    sources: &BTreeSet<&str>,
    fallbacks: &[Fallback],
    substitutions: &Substitutions,
) {
    for file in manifests.union(sources) {
        let Some(bytes) = tree.get(*file) else { continue };
        let Ok(source) = Source::new(shown(root, file), bytes) else { continue };
        let reach = if manifests.contains(file) {
            Reach::Applied
        } else {
            match fallbacks.iter().find(|fallback| fallback.file == *file) {
                Some(fallback) => Reach::Fallback(fallback.live_when.clone()),
                None => Reach::Undeclared,
            }
        };
        for document in source.documents().unwrap_or_default() {
            walk(&source, &document.root, substitutions, &mut |reference, place| {
                release.references.push(UsedReference { reference, place, reach: reach.clone() });
            });
        }
    }
}

fn walk(
    source: &Source<'_>,
    node: &Node,
    substitutions: &Substitutions,
    found: &mut impl FnMut(Reference, Place),
) {
    for entry in node.entries() {
        if let Some(text) = entry.value.as_str() {
            let text = substitutions.filled(text).unwrap_or_else(|| text.to_owned());
            if (entry.key == "image" || text.contains("@sha256:"))
                && let Ok(reference) = Reference::parse(&text)
            {
                found(reference, source.value_place(&entry.value));
            }
        }
        walk(source, &entry.value, substitutions, found);
    }
    for item in node.items() {
        walk(source, item, substitutions, found);
    }
}
