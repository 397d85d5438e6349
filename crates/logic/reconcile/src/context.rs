//! What a reconciler knows besides the cluster.

use std::collections::BTreeMap;

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
}
