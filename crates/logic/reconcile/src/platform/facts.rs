//! What whoever runs the reconcilers knows of the platform's runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use scantling_observed::{PlatformComponent, PlatformRun};
use serde::{Deserialize, Serialize};

/// One of the six promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Promise {
    /// Every reference that the release can reach can be pulled.
    Pullable,
    /// What runs is what the lock says.
    Pinned,
    /// The upgraded cluster is what a fresh install would be.
    Converged,
    /// What screens show is what runs, or it is marked.
    Truthful,
    /// What people made is still there.
    NothingLost,
    /// Every object ended in an outcome with its cause.
    NothingSilent,
}

impl Promise {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Pullable,
        Self::Pinned,
        Self::Converged,
        Self::Truthful,
        Self::NothingLost,
        Self::NothingSilent,
    ];
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What speaks for a promise being kept, or against it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Whether it is kept; none where nobody could tell.
    pub holds: Option<bool>,
    /// What was looked at, with numbers.
    pub text: String,
}

/// What a run was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunKind {
    /// To bring a release.
    Upgrade,
    /// To bring back the one before.
    Rollback,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// As it was to.
    Succeeded,
    /// Before anything was written.
    Refused {
        /// Why.
        why: String,
    },
    /// In the middle.
    Stopped {
        /// In which stage.
        stage: String,
        /// Why.
        why: String,
    },
}

/// The run that ended last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    /// What it was to do.
    pub kind: RunKind,
    /// The version that it was to bring.
    pub version: String,
    /// The version before it.
    pub from: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended, which is when it looked at the promises (RFC 3339); empty for one that found out nothing of them.
    pub ended: String,
    /// What it found of the promises.
    pub promises: BTreeMap<Promise, Evidence>,
}

/// What the bookkeeping of a cluster says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlatformFacts {
    /// The version that was last brought to its end.
    pub installed: Option<String>,
    /// A run that has begun and has not ended; its holder is empty when nobody holds the run lease.
    pub run: Option<PlatformRun>,
    /// Whether that run goes back to an earlier release.
    pub goes_back: bool,
    /// Who holds the run lease, ourselves included.
    pub holder: Option<String>,
    /// The run that ended last.
    pub last: Option<LastRun>,
    /// Why the run before it failed, if the one that ended last brought the release before back.
    pub rolled_back_because: Option<String>,
    /// The versions whose files are stored in the cluster.
    pub stored: BTreeSet<String>,
    /// The workloads of the release.
    pub components: Vec<PlatformComponent>,
    /// Why the bookkeeping cannot be used.
    pub problem: Option<String>,
}
