//! The index of a snapshot of our own: what is in it, what is not, and where a second run continues.

use serde::{Deserialize, Serialize};

/// The form of our own snapshots that this program knows.
pub(crate) const INDEX_VERSION: &str = "scantling.dev/v1";
/// The kind of the index.
pub(crate) const INDEX_KIND: &str = "SnapshotIndex";
/// The file that holds it.
pub(crate) const INDEX_FILE: &str = "index.json";

/// What a snapshot holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Index {
    /// Its form.
    pub api_version: String,
    /// Always `SnapshotIndex`.
    pub kind: String,
    /// The program that wrote it.
    pub written_by: String,
    /// The server's address.
    pub server: String,
    /// The server's version.
    pub server_version: String,
    /// Which cluster it is: the uid of its namespace `kube-system`, the same for as long as the cluster lives. Empty if it may not be read.
    pub cluster: String,
    /// The namespace that it is limited to; objects of the cluster itself are in it nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// When it was begun, on the server's clock (RFC 3339).
    pub taken: String,
    /// Seconds that the server's clock is ahead of the clock of whoever took it; none if the server does not tell its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_skew_seconds: Option<i64>,
    /// When it was complete, on the server's clock; empty until then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub finished: String,
    /// The kinds, in the order in which they were asked for.
    pub resources: Vec<IndexedResource>,
}

/// A kind in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IndexedResource {
    /// Its name in paths, with its group: `pods`, `deployments.apps`.
    pub resource: String,
    /// The version in which it was read, `apps/v1`.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Objects that are in the files.
    pub objects: usize,
    /// Its files, below the folder of the snapshot.
    pub files: Vec<String>,
    /// The `resourceVersion` of its list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Whether all of it is here, or will never be.
    pub done: bool,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// Why it is not here.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub not_seen: String,
    /// The right that is missing, if that is why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub missing_right: String,
}
