//! `release.lock`: what every reference of a release leads to.

use std::collections::{BTreeMap, BTreeSet};

use scantling_contents::Contents;
use scantling_finding::{Finding, Place, codes};
use scantling_image::{Digest, ImageIdentity, Platform, Reference};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::format::API_VERSION;
use crate::{ImageName, Release};

/// The name of the lock file, beside `release.yaml`.
pub const LOCK_FILE: &str = "release.lock";
const KIND: &str = "Lock";

/// Every reference of a release, resolved. Sorted, so that two locks of the same thing are the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lock {
    /// Always `scantling.dev/v1alpha1`.
    api_version: String,
    /// Always `Lock`.
    kind: String,
    /// Which release it was made for.
    pub release: LockedRelease,
    /// The images, by reference.
    pub images: Vec<LockedImage>,
    /// What is built on the cluster and has no digest before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<LockedBuild>,
}

/// Name and version of the release that was locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedRelease {
    /// The release's name.
    pub name: String,
    /// Its version; none for a plain folder of manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// One reference, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedImage {
    /// The reference as the release writes it.
    pub reference: Reference,
    /// What it led to: the digest of the index, or of the manifest if there is no index.
    pub digest: Digest,
    /// The media type of what the digest names.
    pub media_type: String,
    /// The host that answered.
    pub found_at: String,
    /// The platforms.
    pub platforms: Vec<LockedPlatform>,
}

/// One platform of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedPlatform {
    /// Such as `linux/amd64`.
    pub platform: Platform,
    /// The digest of the platform's manifest.
    pub manifest: Digest,
    /// The digest of its configuration.
    pub config: Digest,
    /// Bytes of the layers, compressed as they are pulled.
    pub size: u64,
    /// What is in it; none if that was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
}

/// An image that is built on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedBuild {
    /// The image stream's tag that the build pushes to, as `namespace/stream:tag`.
    pub output: String,
    /// The repository of its sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The branch, tag or commit.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<String>,
    /// The folder inside the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_dir: Option<String>,
    /// The image it builds upon, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// Why a lock cannot be read or made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LockError {
    /// The file is not a lock.
    #[error("{path}:{line}:{column}: {message}")]
    Unreadable {
        /// The file.
        path: String,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// What is wrong with it.
        message: String,
    },
    /// A lock must be complete.
    #[error("{} of the release's references are not resolved, the first is {first}", .count)]
    Incomplete {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
}

impl Lock {
    /// Makes the lock of a release from what its references were resolved to.
    ///
    /// # Errors
    /// When a reference of the release is missing: a lock is complete or it is none.
    pub fn from_resolved(
        release: &Release,
        images: impl IntoIterator<Item = LockedImage>,
    ) -> Result<Self, LockError> {
        let mut by_reference: BTreeMap<Reference, LockedImage> = BTreeMap::new();
        for mut image in images {
            image.platforms.sort_by(|a, b| (&a.platform, &a.manifest).cmp(&(&b.platform, &b.manifest)));
            by_reference.insert(image.reference.clone(), image);
        }
        let wanted = release.distinct_references();
        let missing: Vec<_> = wanted.iter().filter(|wanted| !by_reference.contains_key(wanted)).collect();
        if let Some(first) = missing.first() {
            return Err(LockError::Incomplete { count: missing.len(), first: first.written().to_owned() });
        }
        let mut built: Vec<LockedBuild> = release
            .builds
            .iter()
            .map(|build| {
                let text =
                    |written: &Option<crate::Written>| written.as_ref().map(|written| written.text.clone());
                LockedBuild {
                    output: build.output.to_string(),
                    uri: text(&build.source.uri),
                    git_ref: text(&build.source.git_ref),
                    context_dir: text(&build.source.context_dir),
                    base: build.base.as_ref().map(ImageName::to_string),
                }
            })
            .collect();
        built.sort();
        Ok(Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            release: LockedRelease {
                name: release.name.clone(),
                version: release.version.as_ref().map(ToString::to_string),
            },
            images: by_reference.into_values().filter(|image| wanted.contains(&image.reference)).collect(),
            built,
        })
    }

    /// Reads a lock. `path` is for messages.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self, LockError> {
        let text = String::from_utf8_lossy(bytes);
        let lines = scantling_yaml::LineIndex::new(&text);
        let fail = |start: usize, message: String| {
            let (line, column) = lines.position(start);
            LockError::Unreadable { path: path.to_owned(), line, column, message }
        };
        let documents = scantling_yaml::parse(text.as_bytes())
            .map_err(|error| fail(error.span.start, error.message.clone()))?;
        let [document] = documents.as_slice() else {
            return Err(fail(0, format!("a lock is one document, this has {}", documents.len())));
        };
        let root = &document.root;
        let at = |field: &str| root.get(field).map_or(0, |node| node.span.start);
        let text_of =
            |field: &str| root.get(field).and_then(scantling_yaml::Node::as_str).unwrap_or_default();
        if text_of("kind") != KIND {
            return Err(fail(at("kind"), format!("kind is not {KIND}")));
        }
        if text_of("apiVersion") != API_VERSION {
            return Err(fail(
                at("apiVersion"),
                format!(
                    "apiVersion {:?} is not known; this program reads {API_VERSION}",
                    text_of("apiVersion")
                ),
            ));
        }
        scantling_yaml::decode(root).map_err(|error| fail(error.span.start, error.to_string()))
    }

    /// The lock as it is written to a file.
    pub fn to_text(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        format!(
            "# Made by `scantling lock`; make it again instead of editing it.\n{}",
            scantling_yaml::to_yaml(&value)
        )
    }

    /// The entry of a reference.
    pub fn image(&self, reference: &Reference) -> Option<&LockedImage> {
        self.images
            .binary_search_by(|image| image.reference.cmp(reference))
            .ok()
            .and_then(|at| self.images.get(at))
    }

    /// Every digest under which a reference's image may be reported.
    pub fn identity(&self, reference: &Reference) -> Option<ImageIdentity> {
        self.image(reference).map(LockedImage::identity)
    }

    /// References of a release that the lock does not hold.
    pub fn missing(&self, release: &Release) -> Vec<Finding> {
        let mut seen = BTreeSet::new();
        release
            .references
            .iter()
            .filter(|used| self.image(&used.reference).is_none() && seen.insert(&used.reference))
            .map(|used| {
                Finding::new(
                    codes::publication::NOT_IN_LOCK,
                    format!("{} is not in the lock", used.reference.written()),
                    used.place.clone(),
                )
            })
            .collect()
    }

    /// Where findings about the lock itself point to.
    pub fn place(path: &str) -> Place {
        Place::file(path, 1, 1)
    }
}

impl LockedImage {
    /// Every digest under which this image may be reported.
    pub fn identity(&self) -> ImageIdentity {
        let manifests: BTreeSet<Digest> = self.platforms.iter().map(|p| p.manifest.clone()).collect();
        let index = if manifests.contains(&self.digest) {
            BTreeSet::new()
        } else {
            BTreeSet::from([self.digest.clone()])
        };
        let configs = self.platforms.iter().map(|p| p.config.clone()).collect();
        ImageIdentity { index, manifests, configs }
    }

    /// The same image by its digest.
    pub fn pinned(&self) -> Reference {
        self.reference.with_digest(&self.digest)
    }
}
