//! What an audit says: rows with a verdict, evidence and remedies.

use scantling_finding::{Code, Severity};
use scantling_image::Digest;
use serde::Serialize;

/// Pieces of evidence that a row keeps: enough to follow it, and ten thousand rows still fit a screen's memory.
pub const MAX_EVIDENCE: usize = 8;

/// The question that a row answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// What would a node start under the names that workloads write?
    NextStart,
    /// Does each container run what it names?
    Running,
    /// Do the pods of one workload, and all who write one name, run one image?
    Replicas,
    /// Is what screens say so?
    Screen,
    /// Is the configuration what the release means?
    Configuration,
    /// Which images belong to no release?
    Unowned,
}

impl Section {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 6] =
        [Self::NextStart, Self::Running, Self::Replicas, Self::Screen, Self::Configuration, Self::Unowned];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::NextStart => "Next start",
            Self::Running => "Running",
            Self::Replicas => "Replicas",
            Self::Screen => "Screen",
            Self::Configuration => "Configuration",
            Self::Unowned => "Unowned",
        }
    }

    /// What the ids of its rows begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::NextStart => "next",
            Self::Running => "running",
            Self::Replicas => "replicas",
            Self::Screen => "screen",
            Self::Configuration => "config",
            Self::Unowned => "unowned",
        }
    }
}

/// The answer to a section's question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is the image, or the state, that is meant.
    Same,
    /// It surely is another.
    Different,
    /// The node would start what is meant.
    Fresh,
    /// The node would start something else than what is meant.
    Stale,
    /// The name now leads to another digest of its repository; whether the bytes differ is not known from here.
    Moved,
    /// A mere restart would change what runs.
    Changes,
    /// The node has nothing under that name and asks the registry.
    MustPull,
    /// The node cannot get it.
    CannotPull,
    /// What is known does not decide it; the row says what is missing.
    Unknown,
}

impl Verdict {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Moved => "moved",
            Self::Changes => "restart changes",
            Self::MustPull => "must pull",
            Self::CannotPull => "cannot pull",
            Self::Unknown => "unknown",
        }
    }

    /// Does it break a promise?
    pub fn is_broken(self) -> bool {
        matches!(self, Self::Different | Self::Stale | Self::Moved | Self::Changes | Self::CannotPull)
    }
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The object, as `StatefulSet ns/name`.
    pub object: String,
    /// Its namespace, to choose by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The pod, if the object is what made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The container or volume in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// What was read, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// When it was so (RFC 3339); none where the object does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The object, as `Pod ns/name`, or the file or lock.
    pub object: String,
    /// The field, as `.status.containerStatuses[app].imageID`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What stands there.
    pub value: String,
    /// The object's resource version when it was read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// What is meant, and who says so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// The digest.
    pub digest: Digest,
    /// Who says so, in words.
    pub basis: String,
}

/// What mends a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    /// What it does.
    pub what: String,
    /// The command; none where no command can do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// One thing that an audit says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Stable: the same fault on the same things has the same id in every audit.
    pub id: String,
    /// The question.
    pub section: Section,
    /// The answer.
    pub verdict: Verdict,
    /// The code of the fault.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about; the first is the one that its id is made of.
    pub subjects: Vec<Subject>,
    /// The image as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What is there: digests, or what a field holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    /// What is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Wanted>,
    /// What it is, in a sentence; for *unknown*, what is missing.
    pub why: String,
    /// What was read.
    pub evidence: Vec<Evidence>,
    /// What mends it.
    pub remedies: Vec<Remedy>,
}

impl Row {
    /// Is it a broken promise, so that the command ends with 1?
    pub fn is_broken(&self) -> bool {
        self.severity == Severity::Error
    }

    /// An id from what makes a row this row.
    pub(crate) fn id_of(section: Section, parts: &[&str]) -> String {
        let digest = Digest::of(parts.join("\u{0}").as_bytes());
        format!("{}-{}", section.prefix(), digest.hex().get(..8).unwrap_or_default())
    }
}
