//! What the cluster shows, and the contents of images that run in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_contents::shown_version;
use scantling_image::{Digest, Platform as ImagePlatform, Reference};
use scantling_observed::{Notebook, Observed, PackageVersion, Pod, PodContainer, View as _};
use scantling_reconcile::{KnownImage, KnownImages};
use scantling_registry::RegistryClient;
use serde_json::Value;
use tokio::time::Instant;

use crate::activity::Target;

/// After this time an image whose contents could not be read is tried again.
const UNREAD_FOR: Duration = Duration::from_mins(10);
/// Images that are read one after the other before anything else is looked at again.
const AT_A_TIME: usize = 16;

/// What of the cluster others than the reconcilers need.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The platform.
    pub(crate) platform: Option<Value>,
    /// Running notebooks.
    pub(crate) targets: Vec<Target>,
    /// Images that run, by digest.
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
        let asked = policy.culling.enabled || policy.restart == scantling_observed::NotebookRestart::Idle;
        for pod in observed.pods().filter(|pod| pod.is_running()) {
            let containers = pod.containers().into_iter();
            seen.running.extend(
                containers
                    .filter_map(PodContainer::image_id)
                    .filter_map(Result::ok)
                    .filter_map(|id| id.reference().cloned()),
            );
            if asked && let Some(notebook) = notebook_of(observed, pod) {
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

fn notebook_of<'a>(observed: &'a Observed, pod: Pod<'a>) -> Option<Notebook<'a>> {
    let owners = observed.owners_of(pod.object());
    let is_notebook = |object: &&Value| {
        scantling_api::object::gvk(object)
            .is_ok_and(|gvk| (gvk.group.as_str(), gvk.kind.as_str()) == ("kubeflow.org", "Notebook"))
    };
    owners.into_iter().find(is_notebook).map(Notebook::of)
}

/// The contents of images that no run has read.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    read: BTreeMap<Reference, KnownImage>,
    unread: BTreeMap<Reference, Instant>,
    /// What was shown when they were read.
    shown: BTreeSet<String>,
}

impl Contents {
    /// What runs, whose contents nobody knows and were not tried lately: a few.
    pub(crate) fn missing(&mut self, seen: &Seen, images: &KnownImages) -> Vec<Reference> {
        if self.shown != seen.shown {
            self.shown.clone_from(&seen.shown);
            self.read.clear();
        }
        let now = Instant::now();
        self.unread.retain(|image, since| seen.running.contains(image) && now - *since < UNREAD_FOR);
        self.read.retain(|image, _| seen.running.contains(image));
        let known = |digest: Option<&Digest>| digest.is_none_or(|digest| images.get(digest).is_some());
        let wanted = seen.running.iter().filter(|image| {
            !known(image.digest()) && !self.read.contains_key(*image) && !self.unread.contains_key(*image)
        });
        wanted.take(AT_A_TIME).cloned().collect()
    }

    pub(crate) fn took(&mut self, image: Reference, contents: Result<KnownImage, String>) -> Option<String> {
        match contents {
            Ok(known) => {
                self.read.insert(image, known);
                None
            }
            Err(why) => {
                self.unread.insert(image, Instant::now());
                Some(why)
            }
        }
    }

    /// When something is to be tried again.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.unread.values().map(|since| *since + UNREAD_FOR).min()
    }

    /// Everything that is known, what runs have read included.
    pub(crate) fn with(&self, images: &KnownImages) -> KnownImages {
        let mut all = images.clone();
        self.read.values().cloned().for_each(|image| all.insert(image));
        all
    }
}

/// What an image contains, of what screens show.
///
/// # Errors
/// In words, when the registry cannot be asked or the image cannot be read.
pub async fn contents_of(
    registry: &RegistryClient,
    image: &Reference,
    shown: &BTreeSet<String>,
) -> Result<KnownImage, String> {
    let resolved = registry.resolve(image).await.map_err(|error| error.to_string())?;
    let platform =
        resolved.platforms.first().map_or_else(ImagePlatform::linux_amd64, |it| it.platform.clone());
    let contents = registry.contents(image, &platform).await.map_err(|error| error.to_string())?;
    let packages = shown.iter().filter_map(|name| {
        let version = shown_version(&contents, name)?;
        Some(PackageVersion { name: name.clone(), version })
    });
    Ok(KnownImage { identity: resolved.identity, packages: packages.collect() })
}
