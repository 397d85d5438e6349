//! A reference, resolved: digest, platforms, identity.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use scantling_endpoint::{Attempt, Selector, attempts};
use scantling_image::{Digest, ImageIdentity, Platform, Reference};

use crate::client::{Inner, RegistryClient};
use crate::document::{CONFIG_MAX, Content, Document, Manifest, config_platform};
use crate::error::{Place, Problem, RegistryError};
use crate::verdict::Verdict;

/// What a reference stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The digest of the index or manifest: what to pin.
    pub digest: Digest,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes, without what it names.
    pub size: u64,
    /// The registry that answered.
    pub host: String,
    /// Its repository, which a mirror rule may have changed.
    pub repository: String,
    /// Every digest under which the image may be seen.
    pub identity: ImageIdentity,
    /// The images, one per platform, in the order of the index.
    pub platforms: Vec<PlatformImage>,
    /// Platforms that the index names and whose manifest the registry does not have (a partial copy).
    pub missing: Vec<(Platform, Digest)>,
}

/// The image of one platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformImage {
    /// The platform.
    pub platform: Platform,
    /// Digest of its manifest.
    pub manifest: Digest,
    /// Digest of its configuration.
    pub config: Digest,
    /// Bytes that a node without any of it has to fetch: manifest, configuration and layers as they are stored.
    pub size: u64,
    /// Its layers, the lowest first.
    pub layers: Vec<Layer>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The digest of the layer as it is stored.
    pub digest: Digest,
    /// How it is stored.
    pub media_type: String,
    /// Its stored size in bytes.
    pub size: u64,
}

impl RegistryClient {
    /// Resolves a reference at the first place that has it, in the order in which a node asks.
    ///
    /// `HEAD` gives the digest; manifests are fetched by that digest, so that a tag which moves meanwhile cannot mix two images.
    pub async fn resolve(&self, reference: &Reference) -> Result<Resolved, RegistryError> {
        let attempts = self.inner.attempts(reference)?;
        self.inner.resolve_first(&attempts, reference).await.map(|(_, resolved)| resolved)
    }

    /// The same, but what a tag leads to is said by the registry that the reference names, if it answers: a mirror may be
    /// behind, and what is pinned is pinned for good.
    pub async fn resolve_as_named(&self, reference: &Reference) -> Result<Resolved, RegistryError> {
        let attempts = self.inner.attempts(reference)?;
        let (from, found) = self.inner.resolve_first(&attempts, reference).await?;
        let is_tag = matches!(from.selector, Selector::Tag(_));
        let named = attempts.iter().find(|a| a.via.is_none()).filter(|_| is_tag && from.via.is_some());
        let Some(named) = named else { return Ok(found) };
        Ok(match self.inner.head(named, &named.selector).await {
            Ok(Some(digest)) if digest == found.digest => found,
            Ok(_) => self.inner.resolve_at(named).await.unwrap_or(found),
            Err(_) => found,
        })
    }

    /// The digest that a reference stands for now, and nothing more: mostly one `HEAD`, which rate limits count least.
    pub async fn digest(&self, reference: &Reference) -> Result<Digest, RegistryError> {
        let mut errors: Vec<RegistryError> = Vec::new();
        for attempt in self.inner.attempts(reference)? {
            let found = match self.inner.head(&attempt, &attempt.selector).await {
                Ok(Some(digest)) => Ok(digest),
                Ok(None) => {
                    let document = self.inner.manifest(&attempt, &attempt.selector).await;
                    document.map(|document| document.digest.clone())
                }
                Err(error) => Err(error),
            };
            match found {
                Ok(digest) => return Ok(digest),
                Err(error) => errors.push(error),
            }
        }
        Err(most_telling(errors, reference))
    }
}

/// The error whose verdict holds for all places.
pub(crate) fn most_telling(errors: Vec<RegistryError>, reference: &Reference) -> RegistryError {
    let joined = Verdict::joined(errors.iter().map(RegistryError::verdict));
    errors.into_iter().rev().find(|error| error.verdict() == joined).unwrap_or_else(|| {
        let place = Place::new(reference.registry(), reference.repository(), reference.canonical());
        place.error(Problem::RefusedByPolicy { rule: "no place to ask is left".to_owned() })
    })
}

impl Inner {
    /// The places to ask; an error if rules leave none.
    pub(crate) fn attempts(&self, reference: &Reference) -> Result<Vec<Attempt>, RegistryError> {
        let found = attempts(reference, &self.mirrors, &self.keyring);
        if found.is_empty() {
            let rule = self.mirrors.refusal(reference);
            let rule = rule.unwrap_or_else(|| "no place to ask is left".to_owned());
            let place =
                Place::new(reference.registry(), reference.repository(), Selector::of(reference).to_string());
            return Err(place.error(Problem::RefusedByPolicy { rule }));
        }
        Ok(found)
    }

    async fn resolve_first<'a>(
        &self,
        attempts: &'a [Attempt],
        reference: &Reference,
    ) -> Result<(&'a Attempt, Resolved), RegistryError> {
        let mut errors: Vec<RegistryError> = Vec::new();
        for attempt in attempts {
            match self.resolve_at(attempt).await {
                Ok(resolved) => return Ok((attempt, resolved)),
                Err(error) => errors.push(error),
            }
        }
        Err(most_telling(errors, reference))
    }

    pub(crate) async fn resolve_at(&self, attempt: &Attempt) -> Result<Resolved, RegistryError> {
        let root = match self.head(attempt, &attempt.selector).await? {
            Some(digest) => self.known_manifest(attempt, &digest).await?,
            None => self.manifest(attempt, &attempt.selector).await?,
        };
        let mut resolved = empty(attempt, &root);
        match &root.content {
            Content::Manifest(manifest) => {
                let platform = self.platform_of(attempt, manifest).await?;
                resolved.add(platform, &root, manifest);
            }
            Content::Index(entries) => {
                let images = entries.iter().filter_map(|entry| Some((entry, entry.platform.clone()?)));
                let asked: Vec<_> = images
                    .map(|(entry, platform)| async move {
                        (platform, entry, self.known_manifest(attempt, &entry.descriptor.digest).await)
                    })
                    .collect();
                let mut fetched = stream::iter(asked).buffered(self.options.parallel.max(1));
                while let Some((platform, entry, document)) = fetched.next().await {
                    resolved.identity.manifests.insert(entry.descriptor.digest.clone());
                    match document {
                        Ok(document) => {
                            let manifest = as_manifest(attempt, &document)?;
                            resolved.add(platform, &document, manifest);
                        }
                        Err(error) if error.verdict() == Verdict::Absent => {
                            resolved.missing.push((platform, entry.descriptor.digest.clone()));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(resolved)
    }

    /// The platform of a single manifest, which only its configuration knows.
    pub(crate) async fn platform_of(
        &self,
        attempt: &Attempt,
        manifest: &Manifest,
    ) -> Result<Platform, RegistryError> {
        let bytes = self.blob(attempt, &manifest.config, "configuration", CONFIG_MAX).await?;
        platform_in(attempt, manifest, &bytes)
    }
}

/// The platform that the configuration says.
pub(crate) fn platform_in(
    attempt: &Attempt,
    manifest: &Manifest,
    config: &[u8],
) -> Result<Platform, RegistryError> {
    let digest = &manifest.config.digest;
    let place = Place::new(&attempt.host, &attempt.repository, format!("configuration {digest}"));
    match config_platform(config) {
        Ok(Some(platform)) => Ok(platform),
        Ok(None) => Err(place.malformed(format!(
            "no operating system and architecture in it ({}): this is no container image",
            manifest.config.media_type
        ))),
        Err(problem) => Err(place.malformed(problem)),
    }
}

/// The document as a manifest; an index within an index is not followed.
pub(crate) fn as_manifest<'a>(
    attempt: &Attempt,
    document: &'a Document,
) -> Result<&'a Manifest, RegistryError> {
    match &document.content {
        Content::Manifest(manifest) => Ok(manifest),
        Content::Index(_) => {
            let place =
                Place::new(&attempt.host, &attempt.repository, format!("manifest {}", document.digest));
            Err(place.malformed("an index within an index"))
        }
    }
}

pub(crate) fn empty(attempt: &Attempt, root: &Arc<Document>) -> Resolved {
    let mut identity = ImageIdentity::default();
    if matches!(root.content, Content::Index(_)) {
        identity.index.insert(root.digest.clone());
    }
    Resolved {
        digest: root.digest.clone(),
        media_type: root.media_type.clone(),
        size: root.bytes.len() as u64,
        host: attempt.host.clone(),
        repository: attempt.repository.clone(),
        identity,
        platforms: Vec::new(),
        missing: Vec::new(),
    }
}

impl Resolved {
    pub(crate) fn add(&mut self, platform: Platform, document: &Document, manifest: &Manifest) {
        let layers: Vec<Layer> = manifest
            .layers
            .iter()
            .map(|layer| Layer {
                digest: layer.digest.clone(),
                media_type: layer.media_type.clone(),
                size: layer.size,
            })
            .collect();
        let size = layers
            .iter()
            .fold(manifest.config.size, |sum, layer| sum.saturating_add(layer.size))
            .saturating_add(document.bytes.len() as u64);
        self.identity.manifests.insert(document.digest.clone());
        self.identity.configs.insert(manifest.config.digest.clone());
        self.platforms.push(PlatformImage {
            platform,
            manifest: document.digest.clone(),
            config: manifest.config.digest.clone(),
            size,
            layers,
        });
    }
}
