//! Who uses which image of the catalogue.
//!
//! # Flow
//! Notebooks (what they select, what they run, what they last started) → `NotebookImage.status.inUse`.
//!
//! # Guarantees
//! An image that a notebook would ask for when its pod is drained counts as used, so that whoever takes old images out of the catalogue
//! and the registry can tell which ones must stay.
//!
//! # Assumptions
//! None.
//!
//! # Caveats
//! Pods that are no notebooks' are not counted.
//!
//! # Errors
//! None: an entry that cannot be used is used by nobody.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::ObjectKey;
use scantling_image::{Digest, Reference};
use scantling_observed::{Notebook, NotebookImage, NotebookImageStatus, Observed, Pod, View as _};
use serde_json::json;

use crate::action::{Action, Target};
use crate::catalogue::Catalogue;
use crate::context::Context;
use crate::reconciler::Reconciler;

/// The reconciler of the use of images.
pub const CATALOGUE_USE: Reconciler = Reconciler {
    name: "catalogue-use",
    watches: &[
        ("kubeflow.org", "v1", "Notebook"),
        ("scantling.dev", "v1alpha1", "NotebookImage"),
        ("", "v1", "Pod"),
    ],
    named: &[],
    names: crate::reconciler::no_names,
    reconcile,
};

fn reconcile(observed: &Observed, context: &Context<'_>) -> Vec<Action> {
    let used = catalogue_users(observed, context.namespace);
    observed
        .notebook_images()
        .filter(|image| !image.is_being_deleted())
        .filter_map(|image| {
            let key = (image.namespace().to_owned(), image.name().to_owned());
            let in_use = used.get(&key).copied().unwrap_or_default();
            // Of an image that nobody has used yet, nothing is said.
            if written(image).unwrap_or_default() == u64::from(in_use) {
                return None;
            }
            let status = serde_json::to_value(NotebookImageStatus { in_use }).unwrap_or_else(|_| json!({}));
            Some(Action::PatchStatus { target: Target::of(image.object())?, status })
        })
        .collect()
}

/// How many notebooks select each entry of the catalogue, run it, or would come back with it; by namespace and name of the entry.
/// Selections without a namespace are in that of the platform.
pub fn catalogue_users(observed: &Observed, platform_namespace: &str) -> BTreeMap<(String, String), u32> {
    let catalogue = Catalogue::of(observed);
    let mut used = BTreeMap::new();
    for notebook in observed.notebooks().filter(|notebook| !notebook.is_being_deleted()) {
        for (namespace, name) in entries_of(&catalogue, observed, platform_namespace, notebook) {
            *used.entry((namespace.to_owned(), name.to_owned())).or_default() += 1;
        }
    }
    used
}

fn written(image: NotebookImage<'_>) -> Option<u64> {
    image.object().pointer("/status/inUse")?.as_u64()
}

/// Namespace and name of every entry that a notebook selects, runs or would come back with.
fn entries_of<'a>(
    catalogue: &'a Catalogue,
    observed: &Observed,
    platform_namespace: &str,
    notebook: Notebook<'_>,
) -> BTreeSet<(&'a str, &'a str)> {
    let namespace = notebook.catalogue_namespace();
    let selected = notebook
        .selection()
        .and_then(|selection| catalogue.select(namespace.unwrap_or(platform_namespace), selection).ok());
    let digests = running(observed, notebook).into_iter().chain(started(notebook));
    let by_digest = digests.filter_map(|digest| catalogue.with_digest(&digest));
    selected
        .into_iter()
        .chain(by_digest)
        .map(|entry| (entry.namespace.as_str(), entry.name.as_str()))
        .collect()
}

fn running(observed: &Observed, notebook: Notebook<'_>) -> Option<Digest> {
    let key = ObjectKey::namespaced("", "Pod", notebook.namespace(), format!("{}-0", notebook.name()));
    let pod = Pod::of(observed.get(&key)?);
    let name = notebook.container()?.name();
    let container = pod.regular_containers().find(|container| container.name == name)?;
    Some(container.image_id()?.ok()?.digest().clone())
}

fn started(notebook: Notebook<'_>) -> Option<Digest> {
    let written = scantling_api::object::text(notebook.object(), "/status/startedImage");
    Reference::parse(written).ok()?.digest().cloned()
}
