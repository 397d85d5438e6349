//! A release, read.

use std::collections::BTreeSet;

use scantling_finding::{Finding, Place};
use scantling_image::Reference;

use crate::{
    Build, Catalogue, Environment, Generated, Ownership, ReleaseObject, StreamTag, UsedReference, Version,
};

/// A named version of a platform, or a plain folder of manifests, which has no version and no rules.
#[derive(Debug, Clone)]
pub struct Release {
    /// Its name; for a plain folder "unnamed".
    pub name: String,
    /// Its version; none for a plain folder.
    pub version: Option<Version>,
    /// The releases that it may follow; none: it can only be installed fresh.
    pub follows: Vec<Version>,
    /// Where namespaced objects without a namespace go.
    pub namespace: Option<String>,
    /// What it applies, in the order of waves, then of files.
    pub objects: Vec<ReleaseObject>,
    /// Every image reference in it, in the order of files; of one reference every use.
    pub references: Vec<UsedReference>,
    /// Secrets that are made once per cluster.
    pub generated: Vec<Generated>,
    /// What happens to fields that someone else changed.
    pub ownership: Ownership,
    /// Which image streams people choose notebooks from.
    pub catalogue: Option<Catalogue>,
    /// The tags of its image streams.
    pub streams: Vec<StreamTag>,
    /// What it builds on the cluster.
    pub builds: Vec<Build>,
    /// The clusters that it is for.
    pub environments: Vec<Environment>,
    /// What was found wrong while reading; the release is whole all the same.
    pub findings: Vec<Finding>,
    /// Where it says who it is.
    pub place: Place,
}

impl Release {
    /// Name and version, as people say them.
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.clone(),
        }
    }

    /// Every reference once.
    pub fn distinct_references(&self) -> BTreeSet<Reference> {
        self.references.iter().map(|used| used.reference.clone()).collect()
    }

    /// Whether it was made to follow another release.
    pub fn may_follow(&self, other: &Version) -> bool {
        self.follows.contains(other)
    }

    /// The tags that people choose notebooks from.
    pub fn offered(&self) -> impl Iterator<Item = &StreamTag> {
        self.streams.iter().filter(|tag| tag.offered)
    }
}
