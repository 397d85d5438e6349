//! A release, read.

use std::collections::BTreeSet;

use scantling_api::ObjectKey;
use scantling_finding::{Finding, Place};
use scantling_image::Reference;

use crate::{
    Build, Catalogue, Component, Environment, Generated, OfferedImage, Ownership, ReleaseObject, Requirement,
    StreamTag, UsedReference, Version,
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
    /// The versions of Scantling that may bring it.
    pub requires: Option<Requirement>,
    /// Where namespaced objects without a namespace go.
    pub namespace: Option<String>,
    /// Where its images live, if that is for the admin to say.
    pub registry: Option<String>,
    /// The parts that an admin can leave out or ask for.
    pub components: Vec<Component>,
    /// Those of them that are there: nothing of the others is in the fields below.
    pub selected: BTreeSet<String>,
    /// The workload that is applied and waited for before every other one.
    pub operator: Option<ObjectKey>,
    /// What it applies, in the order of waves, then of files.
    pub objects: Vec<ReleaseObject>,
    /// Every image reference in it, in the order of files; of one reference every use.
    pub references: Vec<UsedReference>,
    /// Secrets that are made once per cluster.
    pub generated: Vec<Generated>,
    /// What happens to fields that someone else changed.
    pub ownership: Ownership,
    /// What people choose notebooks from, as written.
    pub catalogue: Option<Catalogue>,
    /// The images that it lists for people to choose, each tag by itself.
    pub images: Vec<OfferedImage>,
    /// The tags of its image streams.
    pub streams: Vec<StreamTag>,
    /// What it builds on the cluster.
    pub builds: Vec<Build>,
    /// The clusters that it is for: all of them, or the one that was chosen.
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

    /// The tags of image streams that people choose notebooks from.
    pub fn offered(&self) -> impl Iterator<Item = &StreamTag> {
        self.streams.iter().filter(|tag| tag.offered)
    }
}
