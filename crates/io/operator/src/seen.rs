//! What others than the reconcilers need of the cluster.

use std::collections::BTreeSet;

use scantling_image::Reference;
use scantling_observed::{NotebookRestart, Observed, PodContainer, View as _};
use serde_json::Value;

use crate::activity::Target;

/// What of the cluster others than the reconcilers need.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The platform.
    pub(crate) platform: Option<Value>,
    /// Running notebooks.
    pub(crate) targets: Vec<Target>,
    /// Images that notebooks run, by digest. What else runs in the cluster nobody compares with anything, and its images may be as
    /// large and as far away as they like.
    pub(crate) running: BTreeSet<Reference>,
    /// Names of packages for which screens show a version.
    pub(crate) shown: BTreeSet<String>,
}

impl Seen {
    /// Looks at a cluster.
    pub fn of(observed: &Observed) -> Self {
        let entries = observed.notebook_images().filter_map(|entry| entry.spec().ok());
        let mut seen = Self {
            platform: observed.platform().map(|platform| without_status(platform.object())),
            shown: entries.flat_map(|spec| spec.packages.into_iter().map(|package| package.name)).collect(),
            ..Self::default()
        };
        let policy = observed.policy().notebooks;
        let asked = policy.culling.enabled || policy.restart == NotebookRestart::Idle;
        for pod in observed.pods().filter(|pod| pod.is_running()) {
            let Some(notebook) = observed.notebook_of(pod) else { continue };
            let own = notebook.container().map(|container| container.name().to_owned());
            let container = pod.regular_containers().find(|container| Some(container.name) == own.as_deref());
            let id = container.and_then(PodContainer::image_id).and_then(Result::ok);
            seen.running.extend(id.and_then(|id| id.reference().cloned()));
            if asked {
                seen.targets.extend(Target::of(notebook, pod));
            }
        }
        seen
    }
}

/// What is decided follows from the spec, and a change of the status is our own.
fn without_status(platform: &Value) -> Value {
    let mut platform = platform.clone();
    if let Some(fields) = platform.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = platform.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    platform
}
