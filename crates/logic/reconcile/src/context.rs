//! What a reconciler knows besides the cluster.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_image::{Digest, ImageIdentity};
use scantling_observed::PackageVersion;
use serde::{Deserialize, Serialize};

use crate::platform::PlatformFacts;

/// An image whose contents were read, now or for an earlier release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownImage {
    /// Its digests.
    pub identity: ImageIdentity,
    /// Its packages.
    pub packages: Vec<PackageVersion>,
}

/// Images by every one of their digests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownImages {
    images: Vec<KnownImage>,
    by_digest: BTreeMap<Digest, usize>,
}

impl KnownImages {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an image. For a digest that is known already, the newer knowledge wins.
    pub fn insert(&mut self, image: KnownImage) {
        for digest in image.identity.digests() {
            self.by_digest.insert(digest.clone(), self.images.len());
        }
        self.images.push(image);
    }

    /// The image that has this digest.
    pub fn get(&self, digest: &Digest) -> Option<&KnownImage> {
        self.images.get(*self.by_digest.get(digest)?)
    }
}

impl FromIterator<KnownImage> for KnownImages {
    fn from_iter<T: IntoIterator<Item = KnownImage>>(images: T) -> Self {
        let mut known = Self::new();
        images.into_iter().for_each(|image| known.insert(image));
        known
    }
}

/// When notebooks were used last, in seconds since 1970, by the uid of the `Notebook`: those whose server answered when it was asked the
/// last time. Whoever is not here may be in use without anybody knowing.
pub type LastUses = BTreeMap<String, i64>;

/// What whoever runs the reconcilers has learned elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Images whose contents are known.
    pub images: KnownImages,
    /// What the cluster's bookkeeping says; none where nobody reads it, and the platform's status is not written then.
    pub platform: Option<PlatformFacts>,
    /// What notebooks answered.
    pub last_uses: LastUses,
}

/// What whoever writes for the reconcilers has met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Met {
    /// Writes that the API server refuses, by the object for whose sake they are: which, and what the server says.
    pub refused: BTreeMap<ObjectKey, String>,
    /// Objects that are read by name and could not be read: why.
    pub unread: BTreeMap<ObjectKey, String>,
}

/// What a reconciler is told.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The time, RFC 3339 with seconds, in UTC.
    pub now: &'a str,
    /// The namespace of the platform, where the catalogue is.
    pub namespace: &'a str,
    /// Images whose contents are known.
    pub images: &'a KnownImages,
    /// What the cluster's bookkeeping says, where somebody reads it.
    pub platform: Option<&'a PlatformFacts>,
    /// What notebooks answered.
    pub last_uses: &'a LastUses,
    /// What was met when writing and reading.
    pub met: &'a Met,
}

impl Context<'_> {
    /// What the API server refuses about an object, as a reason and a sentence.
    pub(crate) fn refused(&self, subject: &ObjectKey) -> Option<(&'static str, String)> {
        let why = self.met.refused.get(subject)?;
        let (reason, fix) = if why.contains("exceeded quota") {
            (
                "QuotaExceeded",
                "ask for less, remove something else of this namespace, or have the quota raised",
            )
        } else {
            ("Refused", "put right what it names; it is tried again by itself")
        };
        Some((reason, format!("the API server refuses it; {fix}: {why}")))
    }
}
