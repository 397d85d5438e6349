//! A rehearsal as data: how it is played, and what came out of it.

use scantling_finding::Finding;
use scantling_release::Change;
use scantling_run::RunReport;
use serde::Serialize;

use crate::bridge::Kill;
use crate::compare::{Comparison, Objects};
use crate::people::{ModelSeen, NotebookSeen};
use crate::promises::{Checked, Promise, Verdict};
use crate::record::{Line, clock};
use crate::scenario::ScenarioError;

/// Who upgrades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Scantling.
    Scantling,
    /// The vendor's script.
    AsShipped,
}

/// How a story is played.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who upgrades.
    pub way: Way,
    /// Whether the cluster has no history: the new release is installed on an empty one.
    pub fresh: bool,
    /// A way round the incident, by its name in the scenario.
    pub variant: Option<String>,
    /// What all chance comes from.
    pub seed: u64,
    /// When Scantling's process is killed, to be started again.
    pub kill: Option<Kill>,
}

/// Why a rehearsal could not be played.
#[derive(Debug, thiserror::Error)]
pub enum RehearseError {
    /// The example can't be read.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// The example is impossible.
    #[error("{0}")]
    Example(String),
    /// Somebody in the story can't do what the story says.
    #[error("at {}, {actor}: {error}", clock(*at))]
    Story {
        /// Milliseconds of virtual time.
        at: u64,
        /// Who.
        actor: String,
        /// Why.
        error: String,
    },
    /// The example has no such variant.
    #[error("the example has no variant {wanted:?}; it has {}", known.join(", "))]
    NoSuchVariant {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The example tells nothing of a vendor's way.
    #[error("the example has no vendor's way (`shipped.upgrade`): leave --as-shipped out")]
    NothingShipped,
    /// A variant is a way round the vendor's upgrade.
    #[error("a variant works round the vendor's upgrade: give --as-shipped with it")]
    VariantNeedsShipped,
    /// The runtime could not be started.
    #[error("the runtime could not be started: {0}")]
    Runtime(#[from] std::io::Error),
}

/// One try of an upgrade.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Which release, by its name in the scenario.
    pub name: String,
    /// Its title.
    pub release: String,
    /// How many writes reached the API server.
    pub writes: u64,
    /// Why it did not come to its end.
    pub failure: Option<String>,
    /// Whether it was refused before anything was written.
    pub refused: bool,
    /// How often the process was killed and started again.
    pub restarts: u32,
    /// What Scantling says of it; a script says nothing.
    pub report: Option<RunReport>,
}

/// What is known of a release before anything happens.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseSeen {
    /// Its title.
    pub title: String,
    /// Its folder in the example.
    pub folder: String,
    /// The release before it.
    pub from: Option<String>,
    /// Objects that it applies.
    pub objects: usize,
    /// References in it, each once.
    pub references: usize,
    /// What is built on the cluster.
    pub builds: usize,
    /// What changes from the release before.
    pub changes: Vec<Change>,
    /// What a check says.
    pub findings: Vec<Finding>,
}

/// The outcome of a rehearsal.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rehearsal {
    /// The form of this document.
    pub version: u32,
    /// What the incident is called.
    pub title: String,
    /// What happened.
    pub about: String,
    /// Who upgraded.
    pub way: Way,
    /// Whether the cluster had no history.
    pub fresh: bool,
    /// The way round that was taken.
    pub variant: Option<VariantSeen>,
    /// What all chance came from.
    pub seed: u64,
    /// The release that was to be installed.
    pub release: ReleaseSeen,
    /// The tries to install it.
    pub attempts: Vec<Attempt>,
    /// What happened, in order.
    pub story: Vec<Line>,
    /// What people have open.
    pub notebooks: Vec<NotebookSeen>,
    /// What people deployed.
    pub models: Vec<ModelSeen>,
    /// The six promises, and the people.
    pub promises: Vec<Checked>,
    /// The upgraded cluster held against a fresh one.
    pub comparison: Option<Comparison>,
    /// What decides whether it ended well.
    pub must_hold: Vec<Promise>,
    /// Virtual time that passed, in milliseconds.
    pub duration_ms: u64,
    /// Events in the sandbox' trace.
    pub events: usize,
    /// The trace, a line an event; left out of the document, since it is long.
    #[serde(skip)]
    pub trace: Vec<String>,
    /// Objects of the cluster at the end.
    #[serde(skip)]
    pub objects: Objects,
}

/// A way round that was taken.
#[derive(Debug, Serialize)]
pub struct VariantSeen {
    /// Its name.
    pub name: String,
    /// What is done.
    pub about: String,
}

impl Rehearsal {
    /// Whether everything held that has to.
    pub fn ended_well(&self) -> bool {
        self.promises
            .iter()
            .filter(|checked| self.must_hold.contains(&checked.promise))
            .all(|checked| checked.verdict != Verdict::Broken)
    }
}
