//! What the cluster shows, and the contents of images that run in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_contents::shown_version;
use scantling_image::{Digest, Platform as ImagePlatform, Reference};
use scantling_observed::{Notebook, Observed, PackageVersion, PodContainer, StatefulSet, View as _};
use scantling_reconcile::{Catalogue, KnownImage, KnownImages};
use scantling_registry::RegistryClient;
use serde_json::Value;
use tokio::time::Instant;

use crate::activity::Target;

/// After this time an image whose contents could not be read is tried again.
const UNREAD_FOR: Duration = Duration::from_mins(10);
/// How long one image is read for. Its layers may be large, and a registry may be slow; one that is silent is another matter.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

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
        let catalogue = Catalogue::of(observed);
        for pod in observed.pods().filter(|pod| pod.is_running()) {
            let notebook = observed.notebook_of(pod);
            let own = notebook.and_then(Notebook::container);
            let own = own.as_ref().map(scantling_api::object::Container::name);
            // Pods of others are looked at, too, for the devices that they hold; their images are nobody's business.
            let counts = |container: &PodContainer<'_>| {
                own == Some(container.name)
                    || container.reference().is_ok_and(|image| catalogue.is_named(&image))
            };
            seen.running.extend(
                pod.regular_containers()
                    .filter(counts)
                    .filter_map(PodContainer::image_id)
                    .filter_map(Result::ok)
                    .filter_map(|id| id.reference().cloned()),
            );
            if asked && let Some(notebook) = notebook {
                seen.targets.extend(Target::of(notebook, pod, port_of(observed, notebook)));
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

/// The port that a notebook's server listens on, as its set says.
fn port_of(observed: &Observed, notebook: Notebook<'_>) -> Option<u16> {
    let set: StatefulSet<'_> = observed.one(notebook.namespace(), notebook.name())?;
    let own = notebook.container()?;
    let containers = scantling_api::object::pod_containers(set.template()?.get("spec")?);
    let container = containers.into_iter().find(|container| container.name() == own.name())?;
    let port = container.value.pointer("/ports/0/containerPort").and_then(Value::as_u64);
    port.and_then(|port| port.try_into().ok())
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
    /// Something that runs, whose contents nobody knows and were not tried lately.
    pub(crate) fn missing(&mut self, seen: &Seen, images: &KnownImages) -> Option<Reference> {
        if self.shown != seen.shown {
            self.shown.clone_from(&seen.shown);
            self.read.clear();
        }
        let now = Instant::now();
        self.unread.retain(|image, since| seen.running.contains(image) && now - *since < UNREAD_FOR);
        self.read.retain(|image, _| seen.running.contains(image));
        let known = |digest: Option<&Digest>| digest.is_none_or(|digest| images.get(digest).is_some());
        let mut wanted = seen.running.iter().filter(|image| {
            !known(image.digest()) && !self.read.contains_key(*image) && !self.unread.contains_key(*image)
        });
        wanted.next().cloned()
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
