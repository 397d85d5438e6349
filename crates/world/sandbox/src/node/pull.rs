//! One pull of one image, in steps on the virtual clock: resolve, config, then layer after layer. Each
//! request is made at the moment at which it is due, so a registry that goes down in the middle of a pull
//! fails that pull.

use scantling_endpoint::Attempt;
use scantling_image::{Digest, Platform, Reference};
use scantling_registry_server::RegistryServer;

use crate::distribution::{Descriptor, FetchError, Login, Manifest, Session};
use crate::node::store::{Arrival, ImageStore};
use crate::time::Time;

/// What a node downloads in a second: 1 Gbit/s, the usual network of a node.
pub(crate) const BYTES_PER_SECOND: u64 = 125_000_000;
/// The shortest time that one request to a registry takes, in milliseconds; up to as much again is added
/// from the seed.
pub(crate) const REQUEST_MILLIS: u64 = 20;

/// One endpoint that may serve the image, with the login for it.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) attempt: Attempt,
    pub(crate) login: Option<Login>,
    /// Whether the login is one of the pod's pull secrets.
    pub(crate) of_pod: bool,
}

/// Where a pull stands.
#[derive(Debug, Clone)]
enum Stage {
    Resolve,
    Config(Box<Partial>),
    Layers { partial: Box<Partial>, next: usize },
}

/// Everything but the layers' bytes; the description comes with the config.
#[derive(Debug, Clone)]
struct Partial {
    root: Digest,
    manifest: Manifest,
    config: Descriptor,
    description: serde_json::Value,
    layers: Vec<Descriptor>,
}

/// What a step leads to.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The next step is due after so many milliseconds.
    Again(u64),
    /// The image is here, after so many downloaded bytes.
    Done(Box<Arrival>, u64),
    /// No source has it.
    Failed(PullError),
}

/// Why a pull failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullError {
    /// Where it stopped.
    pub(crate) step: Step,
    /// What the registry, or the disk, said.
    pub(crate) cause: Cause,
}

/// The steps of a pull, as error messages tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Which digest a name has.
    Resolve,
    /// Content by digest.
    Copy(Digest),
}

/// What ended a pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A request failed.
    Fetch(FetchError),
    /// The disk is full.
    NoSpace,
}

/// A pull in progress.
#[derive(Debug, Clone)]
pub(crate) struct Pull {
    reference: Reference,
    platform: Platform,
    sources: Vec<Source>,
    source: usize,
    session: Option<Session>,
    stage: Stage,
    bytes: u64,
    first_error: Option<PullError>,
}

impl Pull {
    /// A pull that tries the sources in order.
    pub(crate) fn new(reference: Reference, platform: Platform, sources: Vec<Source>) -> Self {
        Self {
            reference,
            platform,
            sources,
            source: 0,
            session: None,
            stage: Stage::Resolve,
            bytes: 0,
            first_error: None,
        }
    }

    /// The reference that is pulled.
    pub(crate) fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The pod's credential with which the last request was made, if it was made with one.
    pub(crate) fn pods_login(&self) -> Option<&Login> {
        self.sources.get(self.source).filter(|source| source.of_pod).and_then(|source| source.login.as_ref())
    }

    /// Makes the request that is due now. `disk_bytes` is the size of the node's image disk.
    pub(crate) fn step(
        &mut self,
        registry: &mut RegistryServer,
        store: &ImageStore,
        disk_bytes: u64,
        jitter: u64,
    ) -> Progress {
        let step = match &self.stage {
            Stage::Resolve => Step::Resolve,
            Stage::Config(partial) => Step::Copy(partial.config.digest.clone()),
            Stage::Layers { partial, next } => Step::Copy(
                partial.layers.get(*next).map_or_else(|| partial.root.clone(), |layer| layer.digest.clone()),
            ),
        };
        match self.advance(registry, store, disk_bytes) {
            Ok(Advance::Wait(bytes)) => {
                self.bytes = self.bytes.saturating_add(bytes);
                Progress::Again(REQUEST_MILLIS + jitter + transfer_millis(bytes))
            }
            Ok(Advance::Done(arrival)) => Progress::Done(arrival, self.bytes),
            Err(cause) => {
                let error = PullError { step, cause };
                let full = error.cause == Cause::NoSpace;
                let absent = matches!(&error.cause, Cause::Fetch(fetch) if fetch.is_absent());
                let last = self.source + 1 >= self.sources.len();
                // An answer "not found" is the last word only when no earlier endpoint failed otherwise.
                if !absent && self.first_error.is_none() {
                    self.first_error = Some(error.clone());
                }
                if full || last {
                    return Progress::Failed(self.first_error.take().unwrap_or(error));
                }
                self.source += 1;
                self.session = None;
                self.stage = Stage::Resolve;
                Progress::Again(REQUEST_MILLIS + jitter)
            }
        }
    }

    fn advance(
        &mut self,
        registry: &mut RegistryServer,
        store: &ImageStore,
        disk_bytes: u64,
    ) -> Result<Advance, Cause> {
        let source = self.sources.get(self.source).ok_or(Cause::Fetch(FetchError::Refused))?;
        let session = self.session.get_or_insert_with(|| {
            Session::new(&source.attempt.host, &source.attempt.repository, source.login.clone())
        });
        match std::mem::replace(&mut self.stage, Stage::Resolve) {
            Stage::Resolve => {
                let found =
                    session.manifest(registry, source.attempt.selector.as_str()).map_err(Cause::Fetch)?;
                let root = found.digest.clone();
                let mut size = found.bytes.len() as u64;
                let manifest = if found.is_index() {
                    let chosen = found.select(&self.platform).map_err(Cause::Fetch)?;
                    let manifest =
                        session.manifest(registry, chosen.digest.as_str()).map_err(Cause::Fetch)?;
                    size = size.saturating_add(manifest.bytes.len() as u64);
                    manifest
                } else {
                    found
                };
                let (config, layers) = manifest.parts().map_err(Cause::Fetch)?;
                let description = serde_json::Value::Null;
                self.stage = Stage::Config(Box::new(Partial { root, manifest, config, description, layers }));
                Ok(Advance::Wait(size))
            }
            Stage::Config(mut partial) => {
                let digest = partial.config.digest.clone();
                let bytes = session.blob(registry, &digest).map_err(Cause::Fetch)?;
                let description: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| {
                    Cause::Fetch(FetchError::Malformed { what: format!("config {digest}: {error}") })
                })?;
                self.check_platform(&description).map_err(Cause::Fetch)?;
                partial.description = description;
                self.stage = Stage::Layers { partial, next: 0 };
                Ok(Advance::Wait(bytes.len() as u64))
            }
            Stage::Layers { partial, next } => {
                let Some(position) = partial
                    .layers
                    .iter()
                    .enumerate()
                    .skip(next)
                    .find(|(_, layer)| !store.has_layer(&layer.digest))
                    .map(|(position, _)| position)
                else {
                    return Ok(Advance::Done(Box::new(partial.arrival(&self.reference))));
                };
                let Some(layer) = partial.layers.get(position).cloned() else {
                    return Ok(Advance::Done(Box::new(partial.arrival(&self.reference))));
                };
                let used = store.disk_bytes().saturating_add(self.bytes);
                if used.saturating_add(layer.size) > disk_bytes {
                    return Err(Cause::NoSpace);
                }
                let bytes = session.blob(registry, &layer.digest).map_err(Cause::Fetch)?;
                self.stage = Stage::Layers { partial, next: position + 1 };
                Ok(Advance::Wait(bytes.len() as u64))
            }
        }
    }

    /// A manifest without an index says its platform in its config; containerd runs what it says only
    /// when it fits the node.
    fn check_platform(&self, description: &serde_json::Value) -> Result<(), FetchError> {
        let os = crate::value::nonempty(description, "/os");
        let architecture = crate::value::nonempty(description, "/architecture");
        let (Some(os), Some(architecture)) = (os, architecture) else { return Ok(()) };
        let variant = crate::value::nonempty(description, "/variant");
        match Platform::new(os, architecture, variant) {
            Ok(platform) if platform.matches(&self.platform) => Ok(()),
            _ => Err(FetchError::NoPlatform),
        }
    }
}

/// What one request brought.
enum Advance {
    /// So many bytes; there is more to ask for.
    Wait(u64),
    Done(Box<Arrival>),
}

impl Partial {
    fn arrival(&self, reference: &Reference) -> Arrival {
        Arrival {
            reference: reference.clone(),
            root: self.root.clone(),
            manifest: self.manifest.digest.clone(),
            config: self.config.digest.clone(),
            layers: self.layers.iter().map(|layer| (layer.digest.clone(), layer.size)).collect(),
            overhead: self.config.size.saturating_add(self.manifest.bytes.len() as u64),
            description: self.description.clone(),
        }
    }
}

/// How long so many bytes take.
pub(crate) fn transfer_millis(bytes: u64) -> u64 {
    bytes.saturating_mul(1000) / BYTES_PER_SECOND
}

/// A download of a node: which pod's container waits for which pull.
#[derive(Debug, Clone)]
pub(crate) struct Download {
    pub(crate) pull: Pull,
    /// When the kubelet asked for it.
    pub(crate) asked: Time,
    /// When its first request was made; nothing while it waits behind another.
    pub(crate) started: Option<Time>,
    /// When its next request is due.
    pub(crate) due: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_time_is_whole_milliseconds() {
        assert_eq!(transfer_millis(0), 0);
        assert_eq!(transfer_millis(BYTES_PER_SECOND), 1000);
        assert_eq!(transfer_millis(1), 0);
    }
}
