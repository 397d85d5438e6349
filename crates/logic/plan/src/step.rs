//! What a plan says about one object.

use std::collections::BTreeSet;
use std::fmt;

use scantling_api::ObjectKey;
use scantling_image::Digest;
use scantling_release::{Rule, Wave};
use serde::Serialize;
use serde_json::Value;

use crate::object::blank;
use crate::pin::Adjusted;
use crate::trace::Traces;

/// How an object ends; every object of a run ends in exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It did not exist.
    Created,
    /// Fields were written.
    Updated,
    /// Nothing had to be written.
    Unchanged,
    /// It existed without us; its fields are ours from now on.
    Adopted,
    /// It stays as it is, because a rule or its origin says so.
    KeptByUser,
    /// It was deleted and created again, because a field that cannot be changed has another value in the release.
    Replaced,
    /// It stays as it is, for the reason that the cause tells.
    Kept,
    /// Somebody else changed a field and no rule says who wins; nothing was written.
    Conflict,
    /// It belonged to the previous release only, and was deleted.
    Pruned,
    /// It could not be written.
    Failed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Adopted => "adopted",
            Self::KeptByUser => "kept by user",
            Self::Replaced => "replaced",
            Self::Kept => "kept",
            Self::Conflict => "conflict",
            Self::Pruned => "pruned",
            Self::Failed => "failed",
        })
    }
}

/// What happens to one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is not there yet.
    Add,
    /// It gets another value.
    Set,
    /// It goes away.
    Remove,
}

/// A field that is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The field's path, `.data.key`.
    pub field: String,
    /// What happens to it.
    pub change: Change,
}

/// A field that somebody else has a say in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignField {
    /// The field's path.
    pub field: String,
    /// The field managers that own it; empty if nobody does.
    pub owners: Vec<String>,
    /// The rule that decided, if the release has one for the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
}

/// The step for one object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The object.
    pub key: ObjectKey,
    /// When it is written.
    pub wave: Wave,
    /// How it is expected to end.
    pub outcome: Outcome,
    /// Why, in words for people.
    pub cause: String,
    /// The fields that are written, in order of their paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// Where the object that is written differs from what the release declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adjusted: Vec<Adjusted>,
    /// Fields of others that stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<ForeignField>,
    /// Fields of others that the release takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<ForeignField>,
    /// Fields that stop the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ForeignField>,
    /// Fields that have another value in the release and cannot be changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub immutable: Vec<String>,
    /// Field managers whose fields become ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_over: Vec<String>,
    /// Digest of everything that was read of the object to come to this step.
    pub precondition: Digest,
    /// What is applied. Not part of the plan's text: it holds the values of Secrets.
    #[serde(skip)]
    pub body: Value,
    /// The `managedFields` to put in place before applying, so that fields that the release no longer has vanish.
    #[serde(skip)]
    pub managed_fields: Option<Value>,
    /// Whether we have applied every field before that the step would write. The server then keeps them in a form of its
    /// own, and writing them again would change nothing: only the server can tell, by a dry run.
    #[serde(skip)]
    pub repeats: bool,
    /// What the step makes of fields that were there before it. Without values of Secrets.
    #[serde(skip)]
    pub traces: Traces,
}

impl Step {
    /// A step about an object that no release wants: it is deleted, or stays for a reason. `live` is what was read.
    pub fn removal(
        key: &ObjectKey,
        wave: Wave,
        outcome: Outcome,
        cause: String,
        live: Value,
        precondition: Digest,
    ) -> Self {
        Self { outcome, cause, body: live, ..blank(key, wave, precondition) }
    }

    /// The step when the server has said that it would change nothing.
    #[must_use]
    pub fn settled(self) -> Self {
        Self {
            outcome: Outcome::Unchanged,
            cause: String::new(),
            changes: Vec::new(),
            taken: Vec::new(),
            repeats: false,
            ..self
        }
    }

    /// Whether the step writes anything.
    pub fn writes(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Created | Outcome::Updated | Outcome::Adopted | Outcome::Replaced | Outcome::Pruned
        )
    }

    /// The fields that this step, decided anew on what is there now, would write over although the plan did not say so.
    /// What is added where nothing was is left out: nobody loses by it.
    pub fn beyond(&self, planned: &Self) -> Vec<String> {
        if self.precondition == planned.precondition {
            return Vec::new();
        }
        let said: BTreeSet<&str> = planned.changes.iter().map(|c| c.field.as_str()).collect();
        let taken: BTreeSet<&str> = planned.taken.iter().map(|t| t.field.as_str()).collect();
        let written = self.changes.iter().filter(|c| c.change != Change::Add).map(|c| &c.field);
        let written = written.filter(|field| !said.contains(field.as_str()));
        let took = self.taken.iter().map(|t| &t.field).filter(|field| !taken.contains(field.as_str()));
        written.chain(took).cloned().collect::<BTreeSet<String>>().into_iter().collect()
    }
}
