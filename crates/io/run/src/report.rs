//! What a run has done, and why it stopped if it did.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_cluster::ClusterError;
use scantling_finding::Finding;
use scantling_image::Digest;
use scantling_plan::{Adjusted, FieldChange, ForeignField, Outcome, Plan, PlanError};
use serde::Serialize;

use crate::event::{RunEvent, Stage};
use crate::meanwhile::Meanwhile;

/// How one object ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectOutcome {
    /// The object.
    pub key: ObjectKey,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, in words.
    pub cause: String,
    /// The fields that were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// Where the object differs from what the release declares, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adjusted: Vec<Adjusted>,
    /// Fields of others that stayed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<ForeignField>,
    /// Fields of others that were taken, because a rule says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<ForeignField>,
}

/// One reference that the gate asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateVerdict {
    /// The reference as the release writes it.
    pub reference: String,
    /// Whether it can be pulled: a verdict in words, with the place it was asked from.
    pub verdict: String,
    /// Whether the verdict lets the release pass.
    pub passes: bool,
    /// The digest that it means.
    pub digest: Option<Digest>,
    /// Each endpoint that was asked, with its answer.
    pub attempts: Vec<String>,
}

/// An image in the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueEntry {
    /// Its name in the catalogue.
    pub name: String,
    /// The image stream tag that it stands for.
    pub tag: String,
    /// The reference that new notebooks get, by digest.
    pub image: String,
    /// What is claimed of it, with what its layers hold.
    pub claims: Vec<CheckedClaim>,
}

/// One claim, held against the contents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedClaim {
    /// The software.
    pub name: String,
    /// The version that is claimed.
    pub claimed: String,
    /// The version in the layers; none if it is not there.
    pub found: Option<String>,
    /// Whether the claim holds.
    pub holds: bool,
}

/// A container that was held against the lock.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The pod, `ns/name`.
    pub pod: String,
    /// The container.
    pub container: String,
    /// The reference that the release wants.
    pub wanted: String,
    /// The `imageID` that the node reports.
    pub running: String,
    /// `same`, `different`, `unknown`, `update pending` for a model's pod that is to be replaced, or `not started` as long as the node has not said what it runs.
    pub answer: String,
}

/// Why a run could ask nothing more of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutOff {
    /// No answer came any more.
    Unreachable,
    /// The credentials were not accepted any more.
    Unauthenticated,
    /// A right was missing.
    Forbidden,
}

impl CutOff {
    /// What an error says of it; none if the server answered whoever asked.
    pub(crate) fn of(error: &ClusterError) -> Option<Self> {
        match error {
            ClusterError::Unreachable { .. } => Some(Self::Unreachable),
            ClusterError::Unauthenticated { .. } => Some(Self::Unauthenticated),
            ClusterError::Forbidden { .. } => Some(Self::Forbidden),
            _ => None,
        }
    }
}

/// The report of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// Name of the release.
    pub release: String,
    /// Its version.
    pub version: String,
    /// The version that the cluster had before.
    pub from: Option<String>,
    /// Whether an earlier run was continued.
    pub continued: bool,
    /// What the gate found.
    pub gate: Vec<GateVerdict>,
    /// The plan, if one could be made.
    pub plan: Option<Plan>,
    /// How each object ended.
    pub outcomes: Vec<ObjectOutcome>,
    /// What each reference and each image stream tag of the release means: as written, by digest.
    pub images: BTreeMap<String, String>,
    /// What each node was given.
    pub prepulled: BTreeMap<String, Vec<String>>,
    /// The catalogue.
    pub catalogue: Vec<CatalogueEntry>,
    /// What runs, held against the lock.
    pub verified: Vec<Verified>,
    /// What others did while the run was under way, and what it did about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Meanwhile>,
    /// Rights that the run would need and does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_rights: Vec<MissingRight>,
    /// Why the run ended, if that was because it could ask nothing more of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// What is wrong or risky.
    pub findings: Vec<Finding>,
    /// Requests that changed the cluster.
    pub writes: usize,
    /// Everything that happened, in order.
    pub events: Vec<RunEvent>,
}

/// What the run found missing among its own rights.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingRight {
    /// What must be allowed, in words: `patch deployments.apps in namespace scantling`.
    pub what: String,
    /// The command with which an administrator grants it.
    pub grant: String,
}

/// Why a run ended early. Whatever was done until then is in the report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run refused to begin: nothing has been written.
    #[error("refused before anything was written: {why}")]
    Refused {
        /// Why.
        why: String,
        /// What was found out.
        report: Box<RunReport>,
    },
    /// The run stopped in the middle. Running again continues.
    #[error("stopped in stage {stage}: {why}; what is done is done, run again to continue")]
    Stopped {
        /// The stage.
        stage: Stage,
        /// Why.
        why: String,
        /// What was done.
        report: Box<RunReport>,
    },
}

impl RunError {
    /// A cluster that could not even be read.
    pub(crate) fn unread(error: impl std::fmt::Display) -> Self {
        Self::Refused { why: error.to_string(), report: Box::default() }
    }

    /// What is known of the run.
    pub fn report(&self) -> &RunReport {
        match self {
            Self::Refused { report, .. } | Self::Stopped { report, .. } => report,
        }
    }
}

/// Why a stage ends the run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// Nothing may be written.
    #[error("{0}")]
    Refuse(String),
    /// Something did not go as planned.
    #[error("{0}")]
    Halt(String),
    /// Another run is under way.
    #[error(
        "another run is under way, by {holder}; wait until it ends (`scantling status` shows it), or end it: 15 seconds later this one may begin and continue it"
    )]
    Held { holder: String },
    /// Another run has ended since this one read the cluster.
    #[error("another run has changed the cluster since this one read it; run again to see the new plan")]
    Stale,
    /// Somebody wants the run to stop.
    #[error("it was asked to")]
    Asked,
    /// The lease was lost in the middle.
    #[error("the run's lease was lost: {0}; nothing more was written, for somebody else may write by now")]
    Lost(String),
    /// The cluster did not do what was asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// An object cannot be decided.
    #[error(transparent)]
    Plan(#[from] PlanError),
}
