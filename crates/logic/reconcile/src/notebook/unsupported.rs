//! What existing clients may ask of a notebook and nobody does here. It is said, so that nobody relies on it.

use scantling_observed::{Notebook, View as _};

/// Annotations that are ignored, and what to use instead.
const IGNORED: [(&str, &str); 5] = [
    (
        "notebooks.opendatahub.io/inject-oauth",
        "no login proxy is put in front of it; let people in through a gateway that asks who they are",
    ),
    (
        "notebooks.opendatahub.io/inject-auth",
        "no login proxy is put in front of it; let people in through a gateway that asks who they are",
    ),
    (
        "notebooks.kubeflow.org/http-rewrite-uri",
        "no VirtualService is made; write one, or use a server that answers below its NB_PREFIX",
    ),
    ("notebooks.kubeflow.org/http-headers-request-set", "no VirtualService is made; write one"),
    ("opendatahub.io/accelerator-name", "accelerator profiles are not read; choose a hardware profile"),
];

/// What is ignored of a notebook, and what to use instead; nothing where all is done.
pub(super) fn ignored(notebook: Notebook<'_>) -> Option<String> {
    let asked = |name: &str| notebook.annotation(name).is_some_and(|value| !matches!(value, "" | "false"));
    let found: Vec<String> = IGNORED
        .into_iter()
        .filter(|(name, _)| asked(name))
        .map(|(name, instead)| format!("{name} is ignored: {instead}"))
        .collect();
    (!found.is_empty()).then(|| found.join("; "))
}
