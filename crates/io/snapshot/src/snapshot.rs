//! What a reading gives.

use scantling_api::ObjectKey;
use scantling_observed::Observed;

use crate::error::Skipped;

/// A cluster as its dump shows it.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Its objects: pods and nodes as records, everything else reduced.
    pub observed: Observed,
    /// What was not read, in the order of paths and places.
    pub skipped: Vec<Skipped>,
    /// So many more things were not read than [`Snapshot::skipped`] holds.
    pub skipped_more: usize,
    /// Logs that were passed over, as they hold no objects.
    pub logs: usize,
    /// Objects of kinds that say nothing about images or configuration.
    pub passed_over: usize,
    /// Objects that came more than once and differed.
    pub repeated: Vec<Repeated>,
    /// Kinds that whoever took the snapshot was not allowed to see, or that failed.
    pub not_seen: Vec<NotSeen>,
    /// When the snapshot was taken, on the server's clock (RFC 3339), if it says so.
    pub taken: Option<String>,
    /// Bytes that were read, unpacked.
    pub bytes: u64,
    /// Files that held objects.
    pub files: usize,
}

/// An object that came more than once and differed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// Which.
    pub key: ObjectKey,
    /// The `resourceVersion` that is kept.
    pub kept: String,
    /// The one that is not.
    pub dropped: String,
    /// The file in which it came again.
    pub path: String,
    /// Whether the two could be compared; if not, the one that came first is kept.
    pub comparable: bool,
}

/// A kind that is not in a snapshot although the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSeen {
    /// Its name in paths and group: `secrets`, `notebooks.kubeflow.org`.
    pub resource: String,
    /// Why.
    pub why: String,
    /// The right that is missing, if that is why: `list secrets`.
    pub missing: Option<String>,
}

/// How far a reading is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were read, unpacked.
    pub bytes: u64,
    /// Bytes of all files, as they lie on disk.
    pub total: u64,
    /// Objects that were read.
    pub objects: usize,
}
