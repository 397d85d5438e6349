//! The six promises, and what a checker says of each.

use serde::{Deserialize, Serialize};

/// A promise that a rehearsal checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Every reference that the release can reach can be pulled.
    Pullable,
    /// No workload is left to a mutable tag.
    Pinned,
    /// Upgraded is what a fresh install is.
    Converged,
    /// Version claims are what the images hold.
    Truthful,
    /// What is the users' survives.
    NothingLost,
    /// Every object ends in an outcome with its cause.
    NothingSilent,
    /// Everybody got what they asked for: not one of the six, but what they are for.
    People,
}

impl Promise {
    /// The six, in their order.
    pub const SIX: [Self; 6] = [
        Self::Pullable,
        Self::Pinned,
        Self::Converged,
        Self::Truthful,
        Self::NothingLost,
        Self::NothingSilent,
    ];

    /// Its name in a report.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pullable => "Pullable",
            Self::Pinned => "Pinned",
            Self::Converged => "Converged",
            Self::Truthful => "Truthful",
            Self::NothingLost => "Nothing lost",
            Self::NothingSilent => "Nothing silent",
            Self::People => "People served",
        }
    }

    /// What it says.
    pub fn text(self) -> &'static str {
        match self {
            Self::Pullable => "every image that the release can ask for can be pulled",
            Self::Pinned => "no workload is left to a tag that can move",
            Self::Converged => "the upgraded cluster is what a fresh install is",
            Self::Truthful => "versions on the screen are the versions in the pod",
            Self::NothingLost => "user data, edits, secrets and running notebooks survive",
            Self::NothingSilent => "every object ends in an outcome that is told",
            Self::People => "everybody got what they asked for",
        }
    }
}

/// Whether a promise was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was.
    Held,
    /// It was, here; on a cluster with another history it would not have been.
    AtRisk,
    /// It was not.
    Broken,
    /// There was nothing to hold it against.
    Unchecked,
}

/// A promise, whether it was kept, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// Which.
    pub promise: Promise,
    /// Whether it was kept.
    pub verdict: Verdict,
    /// What was counted, in a phrase.
    pub summary: String,
    /// What speaks against it, or for attention, a line each.
    pub evidence: Vec<String>,
}

impl Checked {
    /// A promise that nothing here speaks for or against.
    pub fn unchecked(promise: Promise, summary: String) -> Self {
        Self { promise, verdict: Verdict::Unchecked, summary, evidence: Vec::new() }
    }

    /// A verdict from what speaks against the promise.
    pub fn new(promise: Promise, summary: String, broken: Vec<String>, at_risk: Vec<String>) -> Self {
        let verdict = if !broken.is_empty() {
            Verdict::Broken
        } else if at_risk.is_empty() {
            Verdict::Held
        } else {
            Verdict::AtRisk
        };
        let evidence = broken.into_iter().chain(at_risk).collect();
        Self { promise, verdict, summary, evidence }
    }
}
