//! What people got: read from pods, nodes and the bytes of images, never from the scenario.

use scantling_contents::{Claim, ClaimVerdict, Contents, check_claim, shown_version};
use scantling_image::Digest;
use serde::Serialize;

/// Which spawner a notebook came from, and so which screen its person looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spawner {
    /// The vendor's: its screen reads the annotations of image streams.
    Vendor,
    /// Scantling's: its screen reads the catalogue.
    Scantling,
}

/// A notebook that somebody has open at the end.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotebookSeen {
    /// Whose.
    pub person: String,
    /// What they chose.
    pub selection: String,
    /// Which screen they chose it on.
    pub spawner: Spawner,
    /// Whether it was open already when the upgrade began.
    pub since_before_upgrade: bool,
    /// The pod.
    pub pod: String,
    /// Where it runs.
    pub node: Option<String>,
    /// The image as the pod's spec has it.
    pub written: String,
    /// The digest that the selection stands for now.
    pub wanted: Option<Digest>,
    /// The digest in the pod's `imageID`.
    pub running: Option<Digest>,
    /// Whether `running` is the image that `wanted` is, also by another digest of it.
    pub as_wanted: Option<bool>,
    /// What the screen says, and what the running image holds.
    pub claims: Vec<ClaimSeen>,
    /// Running versions that an advisory names.
    pub advisories: Vec<AdvisorySeen>,
    /// The mark on the pod that says that a newer image waits for it.
    pub update_pending: Option<String>,
    /// Why there is nothing to see in it yet.
    pub trouble: Option<String>,
    /// How it ended.
    pub outcome: NotebookOutcome,
}

/// How opening a notebook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotebookOutcome {
    /// It runs what the screen says.
    AsPromised,
    /// It was open through the upgrade, untouched, and is marked.
    KeptAndMarked,
    /// It was open through the upgrade, untouched; nothing tells its person.
    KeptUnmarked,
    /// It runs another image than the one that was chosen.
    Stale,
    /// It runs the image that was chosen, and that holds something else than the screen says.
    ClaimFalse,
    /// It does not run.
    NotRunning,
}

/// A version on the screen, and the one in the image that runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSeen {
    /// What the screen calls it.
    pub name: String,
    /// What the screen says.
    pub screen: String,
    /// What the image's layers hold; absent if it is not in them.
    pub runs: Option<String>,
    /// Whether the one is the other.
    pub holds: bool,
}

impl ClaimSeen {
    /// Holds a claim against what an image contains.
    pub fn new(claim: &Claim, contents: &Contents) -> Self {
        Self {
            name: claim.name.clone(),
            screen: claim.version.clone(),
            runs: shown_version(contents, &claim.name),
            holds: check_claim(contents, claim) == ClaimVerdict::Holds,
        }
    }
}

/// A running version that an advisory names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdvisorySeen {
    /// The package.
    pub package: String,
    /// Its running version.
    pub version: String,
    /// What the advisory says.
    pub note: String,
}

/// A model that somebody deployed.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSeen {
    /// Who.
    pub person: String,
    /// Where.
    pub project: String,
    /// Its name.
    pub model: String,
    /// The pod that is to serve it.
    pub pod: Option<String>,
    /// Where it runs.
    pub node: Option<String>,
    /// The image as the pod's spec has it.
    pub written: Option<String>,
    /// The digest in the pod's `imageID`.
    pub running: Option<Digest>,
    /// What the running image holds.
    pub packages: Vec<String>,
    /// Whether it can answer.
    pub serves: bool,
    /// Why it can't.
    pub trouble: Option<String>,
}
