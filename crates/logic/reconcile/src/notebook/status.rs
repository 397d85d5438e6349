//! What a notebook's status says.

use scantling_image::{Digest, Sameness};
use scantling_observed::{Notebook, PackageVersion, Pod, PodContainer, View as _};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::definition::{Claimed, DesiredImage, NotebookCondition, NotebookStatus, RunningImage};
use crate::catalogue::{Catalogue, Entry};
use crate::condition::{Condition, live};
use crate::context::Context;
use crate::difference::difference;

/// Whether the catalogue has what was selected.
pub(super) const IMAGE_RESOLVED: &str = "ImageResolved";
/// Whether anything keeps it from starting.
pub(super) const STARTABLE: &str = "Startable";
/// Whether everything that it asks for is done.
pub(super) const SUPPORTED: &str = "Supported";
/// Whether a restart would bring something else.
pub(crate) const UPDATE_PENDING: &str = "UpdatePending";

/// What the pod of a notebook runs, from its image ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) digest: Digest,
    pub(super) node: Option<String>,
}

impl Running {
    pub(super) fn of(pod: Pod<'_>, container: PodContainer<'_>) -> Option<Self> {
        if !pod.is_running() {
            return None;
        }
        let id = container.image_id()?.ok()?;
        Some(Self { digest: id.digest().clone(), node: pod.node().map(str::to_owned) })
    }
}

/// What a restart would change, for an entry that the running digest is not.
pub(crate) fn pending(
    catalogue: &Catalogue,
    entry: &Entry,
    running: &Digest,
    context: &Context<'_>,
) -> Option<String> {
    let sameness = catalogue.compare(entry, running, context);
    if sameness == Sameness::Same {
        return None;
    }
    let packages = catalogue.packages(running, context);
    let differing = packages.and_then(|packages| difference(packages, &entry.spec.packages));
    let target = entry.spec.image.digest().map(Digest::short).unwrap_or_default();
    Some(match differing {
        Some(text) => text,
        None if sameness == Sameness::Unknown => {
            format!("{} → {target} (the running image is not known)", running.short())
        }
        None => format!("{} → {target}", running.short()),
    })
}

/// Everything that the status is made from.
pub(super) struct Facts<'a> {
    pub(super) entry: Option<&'a Entry>,
    /// The image that the owner wrote, without an entry.
    pub(super) image: Option<&'a str>,
    pub(super) running: Option<Running>,
    pub(super) ready: bool,
    pub(super) container_state: Option<Value>,
    pub(super) started_image: Option<String>,
    pub(super) pod: Option<Pod<'a>>,
    pub(super) conditions: Vec<Condition>,
}

impl Facts<'_> {
    /// The status.
    pub(super) fn status(
        &self,
        notebook: Notebook<'_>,
        catalogue: &Catalogue,
        context: &Context<'_>,
    ) -> NotebookStatus {
        let claimed = self.entry.map(|entry| Claimed {
            selection: entry.spec.selection.clone(),
            title: entry.spec.title.clone(),
            packages: entry.spec.packages.clone(),
        });
        let desired = match (self.entry, self.image) {
            (Some(entry), _) => {
                let known = entry.spec.image.digest().and_then(|digest| catalogue.packages(digest, context));
                let packages = shown(known.unwrap_or(&entry.spec.packages), &entry.spec.packages);
                Some(DesiredImage { image: entry.spec.image.written().to_owned(), packages: Some(packages) })
            }
            (None, image) => image.map(|image| DesiredImage { image: image.to_owned(), packages: None }),
        };
        let running = self.running.as_ref().map(|running| {
            let known = catalogue.packages(&running.digest, context);
            let wanted = self.entry.map_or(&[][..], |entry| &entry.spec.packages);
            RunningImage {
                digest: running.digest.to_string(),
                node: running.node.clone(),
                packages: known.map(|known| shown(known, wanted)),
            }
        });
        let container_state = match &self.container_state {
            Some(Value::Object(state)) => state.clone(),
            _ => Map::new(),
        };
        NotebookStatus {
            conditions: self.all_conditions(notebook, context),
            ready_replicas: i32::from(self.ready),
            container_state,
            observed_generation: notebook.object().pointer("/metadata/generation").and_then(Value::as_i64),
            claimed,
            desired,
            running,
            started_image: self.started_image.clone(),
        }
    }

    /// The pod's conditions come first: clients show the first one that has a reason.
    fn all_conditions(&self, notebook: Notebook<'_>, context: &Context<'_>) -> Vec<NotebookCondition> {
        let of_pod = self.pod.and_then(|pod| pod.object().pointer("/status/conditions")?.as_array());
        let ours = |kind: &str| self.conditions.iter().any(|condition| condition.kind == kind);
        let mut all: Vec<NotebookCondition> = of_pod
            .into_iter()
            .flatten()
            .filter_map(|condition| NotebookCondition::deserialize(condition).ok())
            .filter(|condition| !ours(&condition.kind))
            .collect();
        all.extend(self.conditions.iter().map(|condition| NotebookCondition {
            kind: condition.kind.to_owned(),
            status: condition.word().to_owned(),
            reason: condition.reason.map(str::to_owned),
            message: Some(condition.message.clone()),
            last_transition_time: Some(
                condition.since(live(notebook.object(), condition.kind), context.now).to_owned(),
            ),
            last_probe_time: None,
        }));
        all
    }
}

/// The packages that the screen shows, with their versions in this image; all, where the screen names none.
fn shown(packages: &[PackageVersion], named: &[PackageVersion]) -> Vec<PackageVersion> {
    let key = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    packages
        .iter()
        .filter(|package| {
            named.is_empty() || named.iter().any(|wanted| key(&wanted.name) == key(&package.name))
        })
        .cloned()
        .collect()
}

/// A status with `null` for every field that has nothing to say, so that it goes from a live one.
pub(super) fn whole(status: &NotebookStatus) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        for optional in ["observedGeneration", "claimed", "desired", "running", "startedImage"] {
            fields.entry(optional).or_insert(Value::Null);
        }
    }
    value
}
