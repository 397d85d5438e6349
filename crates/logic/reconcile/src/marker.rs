//! Marks on pods that run something older than their name now means.
//!
//! # Flow
//! Every running pod whose written image is a name of a catalogue entry (or whose notebook selected one), whoever made it: the digest of its
//! image ID is held against the entry's identity class. Another image → annotation `scantling.dev/update-pending` with what a restart would
//! change: "tensorflow 2.4.1 → 2.7.0".
//!
//! # Guarantees
//! - Nothing is restarted, stopped or otherwise touched: one annotation is written, and taken away when it is no longer true.
//! - The text comes from the contents of both images; where one is not known, it has their digests.
//!
//! # Assumptions
//! Aliases of the catalogue name what the vendor's spawner writes.
//!
//! # Caveats
//! An image ID that nothing knows may be the right image under a digest of another repository; the text then says that it is not known.
//!
//! # Errors
//! None: a pod without an image ID, or with one that does not parse, is not marked.

use std::collections::BTreeMap;

use scantling_observed::{Observed, Pod, View as _, annotations};

use crate::action::{Action, Target};
use crate::catalogue::{Catalogue, Entry};
use crate::context::Context;
use crate::notebook::pending;
use crate::reconciler::Reconciler;

/// The reconciler of marks.
pub const MARKER: Reconciler = Reconciler {
    name: "update-marks",
    watches: &[
        ("", "v1", "Pod"),
        ("scantling.dev", "v1alpha1", "NotebookImage"),
        ("kubeflow.org", "v1", "Notebook"),
        ("apps", "v1", "StatefulSet"),
    ],
    named: &[],
    names: crate::reconciler::no_names,
    reconcile,
};

fn reconcile(observed: &Observed, context: &Context<'_>) -> Vec<Action> {
    let catalogue = Catalogue::of(observed);
    observed.pods().filter_map(|pod| mark(observed, context, &catalogue, pod)).collect()
}

fn mark(observed: &Observed, context: &Context<'_>, catalogue: &Catalogue, pod: Pod<'_>) -> Option<Action> {
    if pod.is_being_deleted() {
        return None;
    }
    let wanted = text(observed, context, catalogue, pod);
    if wanted.as_deref() == pod.annotation(annotations::UPDATE_PENDING) {
        return None;
    }
    let target = Target::of(pod.object())?;
    let annotations = BTreeMap::from([(annotations::UPDATE_PENDING.to_owned(), wanted)]);
    Some(Action::Annotate { target, annotations })
}

/// What the mark should say; nothing when there should be none.
fn text(observed: &Observed, context: &Context<'_>, catalogue: &Catalogue, pod: Pod<'_>) -> Option<String> {
    if !pod.is_running() {
        return None;
    }
    let selected = selected(observed, context, catalogue, pod);
    let texts: Vec<String> = pod
        .regular_containers()
        .filter_map(|container| {
            let entry = selected
                .as_ref()
                .filter(|(_, name)| *name == container.name)
                .map(|(entry, _)| *entry)
                .or_else(|| catalogue.named(&container.reference().ok()?))?;
            let running = container.image_id()?.ok()?;
            pending(catalogue, entry, running.digest(), context)
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The entry that the owner of the pod's notebook selected, and the container that runs it.
fn selected<'a>(
    observed: &'a Observed,
    context: &Context<'_>,
    catalogue: &'a Catalogue,
    pod: Pod<'_>,
) -> Option<(&'a Entry, &'a str)> {
    let notebook = observed.notebook_of(pod)?;
    let namespace = notebook.catalogue_namespace();
    let entry = catalogue.select(namespace.unwrap_or(context.namespace), notebook.selection()?).ok()?;
    Some((entry, notebook.container()?.name()))
}
