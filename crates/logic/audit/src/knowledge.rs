//! What an audit knows beside the cluster: locks of releases, and what registries have answered.

use std::collections::BTreeMap;

use scantling_image::{Digest, Reference};
use scantling_release::{Lock, LockedImage, Release};
use serde::Deserialize;
use thiserror::Error;

/// Answers that a file may hold: far more than any cluster has tags, far less than would fill memory.
pub const MAX_ANSWERS: usize = 200_000;

/// What is known beside the cluster.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// Releases. The first is the one that the cluster is held against; others only say what something is instead.
    pub releases: Vec<KnownRelease>,
    /// What registries answered at the time of the snapshot.
    pub registry: Option<RegistryAnswers>,
}

/// A release that is known.
#[derive(Debug)]
pub struct KnownRelease {
    /// Its name and version, as people say them.
    pub title: String,
    /// What its references lead to; none for a release that has not been locked, whose names then mean nothing here.
    pub lock: Option<Lock>,
    /// Its objects, if they were given too.
    pub release: Option<Release>,
}

impl KnownRelease {
    /// The images of its lock.
    pub fn images(&self) -> impl Iterator<Item = &LockedImage> {
        self.lock.iter().flat_map(|lock| &lock.images)
    }
}

/// What a registry answered for a reference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RegistryAnswer {
    /// The digest of the index or manifest.
    pub digest: Digest,
    /// The digest of its configuration, if it is one manifest and somebody looked.
    #[serde(default)]
    pub config: Option<Digest>,
}

/// Answers of registries, recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryAnswers {
    /// Where they were read, for evidence.
    pub origin: String,
    answers: BTreeMap<String, (Reference, RegistryAnswer)>,
}

/// Why recorded answers cannot be read.
#[derive(Debug, Error)]
pub enum AnswersError {
    /// Not JSON of the right form.
    #[error(
        "{origin}: no recorded answers of registries (a mapping from references to `digest` and `config`): {source}"
    )]
    Form {
        /// The file.
        origin: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A key is no reference.
    #[error("{origin}: {source}")]
    Reference {
        /// The file.
        origin: String,
        /// What is wrong.
        source: scantling_image::ReferenceError,
    },
    /// Too many.
    #[error("{origin}: more than {MAX_ANSWERS} answers")]
    TooMany {
        /// The file.
        origin: String,
    },
}

impl RegistryAnswers {
    /// Reads `{"REFERENCE": {"digest": "sha256:…", "config": "sha256:…"}, …}`.
    pub fn parse(origin: &str, bytes: &[u8]) -> Result<Self, AnswersError> {
        let read: BTreeMap<String, RegistryAnswer> = serde_json::from_slice(bytes)
            .map_err(|source| AnswersError::Form { origin: origin.to_owned(), source })?;
        if read.len() > MAX_ANSWERS {
            return Err(AnswersError::TooMany { origin: origin.to_owned() });
        }
        let mut answers = BTreeMap::new();
        for (written, answer) in read {
            let reference = Reference::parse(&written)
                .map_err(|source| AnswersError::Reference { origin: origin.to_owned(), source })?;
            answers.insert(reference.canonical(), (reference, answer));
        }
        Ok(Self { origin: origin.to_owned(), answers })
    }

    /// The answer for what a reference asks.
    pub fn get(&self, canonical: &str) -> Option<&RegistryAnswer> {
        self.answers.get(canonical).map(|(_, answer)| answer)
    }

    /// All answers.
    pub fn iter(&self) -> impl Iterator<Item = (&Reference, &RegistryAnswer)> {
        self.answers.values().map(|(reference, answer)| (reference, answer))
    }
}

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Rows only about these namespaces; empty: about all. Evidence is taken from everywhere.
    pub namespaces: Vec<String>,
    /// How many images a node lists at most (`nodeStatusMaxImages` of its kubelet).
    pub listed_images: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { namespaces: Vec::new(), listed_images: 50 }
    }
}

impl Options {
    pub(crate) fn wants(&self, namespace: Option<&str>) -> bool {
        self.namespaces.is_empty() || namespace.is_none_or(|name| self.namespaces.iter().any(|it| it == name))
    }
}
