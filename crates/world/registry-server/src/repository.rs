//! What a host stores.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use scantling_image::Digest;
use serde::Deserialize;

use crate::route::{is_repository, is_tag};
use crate::uploads::Upload;

/// Largest manifest, in bytes: the limit that the specification asks registries to accept.
pub const MAX_MANIFEST_BYTES: usize = 4 * 1024 * 1024;
/// Largest blob, in bytes. Images of the sandbox are small; what is larger is a mistake or an attack.
pub const MAX_BLOB_BYTES: usize = 512 * 1024 * 1024;
/// Most tags of one repository.
pub const MAX_TAGS: usize = 100_000;

/// An image ready to be stored: plain data, so that this crate needs no builder.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// Media type of the root document.
    pub media_type: String,
    /// Digest of the root document: an index or a manifest. It is among the blobs.
    pub root: Digest,
    /// Everything: digest, media type, bytes. Manifests and indexes are recognised by their media type.
    pub blobs: Vec<(Digest, String, Bytes)>,
}

/// Why content was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The repository's name breaks the grammar.
    #[error(
        "cannot push to repository {0:?}: the name breaks the distribution grammar; write lower-case path components such as \"team/image\""
    )]
    Repository(String),
    /// The tag breaks the grammar.
    #[error(
        "cannot tag {repository} as {tag:?}: a tag is 1 to 128 letters, digits, '_', '.' and '-', and begins with none of the last two"
    )]
    Tag {
        /// The repository.
        repository: String,
        /// The refused tag.
        tag: String,
    },
    /// Bytes and digest disagree.
    #[error("cannot push to {repository}: content given as {given} has digest {computed}")]
    Digest {
        /// The repository.
        repository: String,
        /// What the caller said.
        given: Digest,
        /// What the bytes say.
        computed: Digest,
    },
    /// The root is not among the blobs, or not a manifest.
    #[error("cannot push to {repository}: the root {root} is not among the manifests given")]
    Root {
        /// The repository.
        repository: String,
        /// The missing root.
        root: Digest,
    },
    /// A manifest does not parse.
    #[error("cannot push to {repository}: manifest {digest}: {reason}")]
    Manifest {
        /// The repository.
        repository: String,
        /// The manifest.
        digest: Digest,
        /// Why.
        reason: String,
    },
    /// Tagging something that is not there.
    #[error("cannot tag {repository}:{tag}: no manifest {digest} in that repository; push it first")]
    Missing {
        /// The repository.
        repository: String,
        /// The tag.
        tag: String,
        /// The digest that was asked for.
        digest: Digest,
    },
}

/// One stored manifest or index.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
    pub(crate) facts: ManifestFacts,
}

/// Content and tags under one name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repository {
    pub(crate) manifests: BTreeMap<Digest, Manifest>,
    pub(crate) blobs: BTreeMap<Digest, Bytes>,
    pub(crate) tags: BTreeMap<String, Digest>,
    pub(crate) uploads: BTreeMap<String, Upload>,
}

impl Repository {
    /// The digest that a tag or a digest selects, if its manifest is here.
    pub(crate) fn resolve(&self, tag_or_digest: &str) -> Option<&Digest> {
        if let Some(digest) = self.tags.get(tag_or_digest) {
            return self.manifests.get_key_value(digest).map(|(key, _)| key);
        }
        let digest = Digest::parse(tag_or_digest).ok()?;
        self.manifests.get_key_value(&digest).map(|(key, _)| key)
    }

    /// Stores everything or nothing.
    pub(crate) fn store(&mut self, name: &str, tag: Option<&str>, pushed: &Pushed) -> Result<(), PushError> {
        if let Some(tag) = tag
            && !is_tag(tag)
        {
            return Err(PushError::Tag { repository: name.to_owned(), tag: tag.to_owned() });
        }
        let mut manifests = BTreeMap::new();
        let mut blobs = BTreeMap::new();
        for (digest, media_type, bytes) in &pushed.blobs {
            check_digest(name, digest, bytes)?;
            if is_manifest_type(media_type) {
                let facts = ManifestFacts::parse(media_type, bytes).map_err(|reason| {
                    PushError::Manifest { repository: name.to_owned(), digest: digest.clone(), reason }
                })?;
                let manifest = Manifest { media_type: media_type.clone(), bytes: bytes.clone(), facts };
                manifests.insert(digest.clone(), manifest);
            } else {
                blobs.insert(digest.clone(), bytes.clone());
            }
        }
        if !manifests.contains_key(&pushed.root) {
            return Err(PushError::Root { repository: name.to_owned(), root: pushed.root.clone() });
        }
        self.manifests.extend(manifests);
        self.blobs.extend(blobs);
        if let Some(tag) = tag {
            self.tags.insert(tag.to_owned(), pushed.root.clone());
        }
        Ok(())
    }

    /// Points a tag at a manifest that is here.
    pub(crate) fn tag(&mut self, name: &str, tag: &str, digest: &Digest) -> Result<(), PushError> {
        if !is_tag(tag) {
            return Err(PushError::Tag { repository: name.to_owned(), tag: tag.to_owned() });
        }
        if !self.manifests.contains_key(digest) {
            let (repository, tag) = (name.to_owned(), tag.to_owned());
            return Err(PushError::Missing { repository, tag, digest: digest.clone() });
        }
        self.tags.insert(tag.to_owned(), digest.clone());
        Ok(())
    }

    /// Takes away a tag, or by digest a manifest (with its tags) or a blob. Says whether there was one.
    pub(crate) fn remove(&mut self, tag_or_digest: &str) -> bool {
        if self.tags.remove(tag_or_digest).is_some() {
            return true;
        }
        let Ok(digest) = Digest::parse(tag_or_digest) else { return false };
        let manifest = self.manifests.remove(&digest).is_some();
        if manifest {
            self.tags.retain(|_, target| *target != digest);
        }
        self.blobs.remove(&digest).is_some() || manifest
    }
}

fn check_digest(name: &str, given: &Digest, bytes: &[u8]) -> Result<(), PushError> {
    if given.verifies(bytes) {
        Ok(())
    } else {
        let mut hasher = given.verifier();
        hasher.update(bytes);
        Err(PushError::Digest {
            repository: name.to_owned(),
            given: given.clone(),
            computed: hasher.finish(),
        })
    }
}

/// Checks a repository's name for the Rust interface.
pub(crate) fn check_repository(name: &str) -> Result<(), PushError> {
    if is_repository(name) { Ok(()) } else { Err(PushError::Repository(name.to_owned())) }
}

/// OCI image index.
pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// OCI image manifest.
pub(crate) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Docker's manifest list.
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Docker's manifest, schema 2.
pub(crate) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// Is this the media type of a manifest or an index?
pub(crate) fn is_manifest_type(media_type: &str) -> bool {
    matches!(media_type, OCI_INDEX | OCI_MANIFEST | DOCKER_LIST | DOCKER_MANIFEST)
}

/// Is this the media type of an index?
pub(crate) fn is_index_type(media_type: &str) -> bool {
    matches!(media_type, OCI_INDEX | DOCKER_LIST)
}

/// What the registry itself needs to know of a manifest.
#[derive(Debug, Clone, Default)]
pub(crate) struct ManifestFacts {
    /// Blobs that must be in the repository.
    pub(crate) blobs: BTreeSet<Digest>,
    /// Manifests of an index that must be in the repository, in their order, with `os/architecture`.
    pub(crate) manifests: Vec<(Digest, Option<String>)>,
    /// What this manifest refers to.
    pub(crate) subject: Option<Digest>,
    /// Type of an artifact: `artifactType`, else the configuration's media type.
    pub(crate) artifact_type: Option<String>,
    /// Annotations, for the referrers listing.
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u32,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    #[serde(rename = "size")]
    _size: u64,
    #[serde(default)]
    urls: Vec<String>,
    platform: Option<PlatformFacts>,
}

#[derive(Deserialize)]
struct PlatformFacts {
    architecture: String,
    os: String,
}

impl Descriptor {
    fn digest(&self) -> Result<Digest, String> {
        Digest::parse(&self.digest).map_err(|error| format!("descriptor: {error}"))
    }

    /// A layer that is licensed to be fetched from elsewhere need not be here.
    fn is_elsewhere(&self) -> bool {
        !self.urls.is_empty()
            && (self.media_type.contains("nondistributable") || self.media_type.contains("foreign"))
    }
}

impl ManifestFacts {
    /// Reads a manifest of the media type it was sent with.
    pub(crate) fn parse(media_type: &str, bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(format!(
                "{} bytes are more than the {MAX_MANIFEST_BYTES} that a manifest may have",
                bytes.len()
            ));
        }
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| format!("not a manifest: {error}"))?;
        if document.schema_version != 2 {
            return Err(format!("schemaVersion {} is not supported, only 2", document.schema_version));
        }
        if let Some(own) = &document.media_type
            && own != media_type
        {
            return Err(format!(
                "mediaType {own:?} of the document differs from the Content-Type {media_type:?}"
            ));
        }
        let mut facts = Self { annotations: document.annotations, ..Self::default() };
        facts.subject = document.subject.as_ref().map(Descriptor::digest).transpose()?;
        if is_index_type(media_type) {
            let manifests = document.manifests.ok_or("an index needs \"manifests\"")?;
            if document.layers.is_some() || document.config.is_some() {
                return Err("an index has neither \"config\" nor \"layers\"".to_owned());
            }
            for entry in &manifests {
                let platform = entry.platform.as_ref().map(|p| format!("{}/{}", p.os, p.architecture));
                facts.manifests.push((entry.digest()?, platform));
            }
            facts.artifact_type = document.artifact_type;
        } else {
            let config = document.config.ok_or("an image manifest needs \"config\"")?;
            if document.manifests.is_some() {
                return Err("an image manifest has no \"manifests\"".to_owned());
            }
            facts.blobs.insert(config.digest()?);
            for layer in document.layers.ok_or("an image manifest needs \"layers\"")? {
                if !layer.is_elsewhere() {
                    facts.blobs.insert(layer.digest()?);
                }
            }
            facts.artifact_type = document.artifact_type.or(Some(config.media_type));
        }
        Ok(facts)
    }
}
