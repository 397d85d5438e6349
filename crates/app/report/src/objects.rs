//! Objects with what happens to them, or happened: of a plan and of a run alike.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_plan::{Change, FieldChange, ForeignField, Outcome, Step};
use scantling_run::ObjectOutcome;

use crate::page::{Page, shortened};
use crate::style::{BAD, FAINT, GOOD, NOTED, RISKY, count, paint};

/// Objects of one outcome that are named when not all are asked for; more are counted by kind.
const NAMED: usize = 12;
/// Fields of one object that are named when not all are asked for.
const FIELDS: usize = 3;
/// Columns of the mark and the word of an outcome.
const LABEL: usize = 15;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What a person has to know.
    Summary,
    /// Every object with its fields.
    All,
}

/// One object.
pub(crate) struct Shown<'a> {
    key: &'a ObjectKey,
    outcome: Outcome,
    cause: &'a str,
    changes: &'a [FieldChange],
    kept: &'a [ForeignField],
    taken: &'a [ForeignField],
    conflicts: &'a [ForeignField],
}

impl<'a> From<&'a Step> for Shown<'a> {
    fn from(step: &'a Step) -> Self {
        Self {
            key: &step.key,
            outcome: step.outcome,
            cause: &step.cause,
            changes: &step.changes,
            kept: &step.kept,
            taken: &step.taken,
            conflicts: &step.conflicts,
        }
    }
}

impl<'a> From<&'a ObjectOutcome> for Shown<'a> {
    fn from(ended: &'a ObjectOutcome) -> Self {
        Self {
            key: &ended.key,
            outcome: ended.outcome,
            cause: &ended.cause,
            changes: &ended.changes,
            kept: &ended.kept,
            taken: &ended.taken,
            conflicts: &[],
        }
    }
}

/// Whether it is told of what happened, or of what would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    /// It has happened.
    Past,
    /// It would happen.
    Future,
}

/// The word for an outcome.
fn word(outcome: Outcome, tense: Tense) -> String {
    let word = match (tense, outcome) {
        (Tense::Future, Outcome::Created) => "create",
        (Tense::Future, Outcome::Updated) => "update",
        (Tense::Future, Outcome::Replaced) => "replace",
        (Tense::Future, Outcome::Adopted) => "adopt",
        (Tense::Future, Outcome::Pruned) => "remove",
        (Tense::Past, Outcome::Pruned) => "removed",
        (_, outcome) => return outcome.to_string(),
    };
    word.to_owned()
}

/// The word for an outcome of something that was done.
pub(crate) fn past(outcome: Outcome) -> String {
    word(outcome, Tense::Past)
}

/// The mark and the word of an outcome.
fn label(outcome: Outcome, tense: Tense) -> String {
    let (style, mark) = match outcome {
        Outcome::Created => (GOOD, "+"),
        Outcome::Updated => (NOTED, "~"),
        Outcome::Adopted => (NOTED, "≈"),
        Outcome::Unchanged => (FAINT, "="),
        Outcome::Replaced => (RISKY, "±"),
        Outcome::KeptByUser | Outcome::Kept => (RISKY, "·"),
        Outcome::Pruned => (RISKY, "-"),
        Outcome::Conflict | Outcome::Failed => (BAD, "✗"),
    };
    paint(style, &format!("{mark} {:<13}", word(outcome, tense)))
}

/// The objects: counts, then each that changes, then what becomes of people's fields. Everything if all are asked for.
pub(crate) fn objects<'a>(
    out: &mut Page,
    all: impl Iterator<Item = Shown<'a>>,
    tense: Tense,
    detail: Detail,
) {
    out.section("Objects");
    let mut by_outcome: BTreeMap<Outcome, Vec<Shown<'a>>> = BTreeMap::new();
    for shown in all {
        by_outcome.entry(shown.outcome).or_default().push(shown);
    }
    let number = by_outcome.values().map(Vec::len).sum();
    let counts: Vec<String> = by_outcome
        .iter()
        .map(|(outcome, shown)| {
            let to = match outcome {
                Outcome::Unchanged | Outcome::KeptByUser | Outcome::Kept | Outcome::Conflict => "",
                _ if tense == Tense::Past => "",
                _ => "to ",
            };
            format!("{} {to}{}", shown.len(), word(*outcome, tense))
        })
        .collect();
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    out.put(2, 2, &format!("{}{counts}", count(number, "object")));
    for (outcome, group) in &by_outcome {
        let label = label(*outcome, tense);
        match (detail, outcome) {
            (Detail::All, _) => group.iter().for_each(|shown| whole(out, &label, shown)),
            (Detail::Summary, Outcome::Unchanged) => {}
            (
                Detail::Summary,
                Outcome::Created | Outcome::Updated | Outcome::Adopted | Outcome::Replaced | Outcome::Pruned,
            ) if group.len() > NAMED => {
                out.marked(2, &label, LABEL, &by_kind(group));
            }
            (Detail::Summary, _) => group.iter().for_each(|shown| named(out, &label, shown)),
        }
    }
    if detail == Detail::Summary {
        by_outcome.values().flatten().for_each(|shown| choices(out, shown));
    }
}

/// `12 ConfigMap, 1 Namespace`.
fn by_kind(group: &[Shown<'_>]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for shown in group {
        *kinds.entry(&shown.key.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.into_iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    kinds.join(", ")
}

/// One object with what a person has to know of it.
fn named(out: &mut Page, label: &str, shown: &Shown<'_>) {
    let more = match shown.outcome {
        Outcome::Created => String::new(),
        Outcome::Updated | Outcome::Adopted if !shown.changes.is_empty() => fields(shown.changes),
        _ => shown.cause.to_owned(),
    };
    out.marked(2, label, LABEL, &shortened(&about(shown.key, &more)));
    // The cause names the only one.
    if shown.conflicts.len() > 1 {
        shown.conflicts.iter().for_each(|field| out.put(2 + LABEL, 2, &foreign("stops at", field)));
    }
}

/// The fields that are written, as many as can be taken in.
fn fields(changes: &[FieldChange]) -> String {
    let names: Vec<&str> = changes.iter().take(FIELDS).map(|change| change.field.as_str()).collect();
    match changes.len().saturating_sub(FIELDS) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// One object with all that is known of it.
fn whole(out: &mut Page, label: &str, shown: &Shown<'_>) {
    // The cause of an update is its fields, which follow.
    let cause = if shown.changes.is_empty() || shown.outcome != Outcome::Updated { shown.cause } else { "" };
    out.marked(2, label, LABEL, &shortened(&about(shown.key, cause)));
    for change in shown.changes {
        let what = match change.change {
            Change::Add => "adds",
            Change::Set => "sets",
            Change::Remove => "removes",
        };
        out.put(2 + LABEL, 2, &format!("{what} {}", change.field));
    }
    for (what, fields) in [("keeps", shown.kept), ("takes", shown.taken), ("stops at", shown.conflicts)] {
        for field in fields {
            out.put(2 + LABEL, 2, &foreign(what, field));
        }
    }
}

fn about(key: &ObjectKey, more: &str) -> String {
    if more.is_empty() { key.to_string() } else { format!("{key}: {more}") }
}

/// What happens to a field that somebody else has a say in.
pub(crate) fn foreign(what: &str, field: &ForeignField) -> String {
    let owners = if field.owners.is_empty() { "nobody".to_owned() } else { field.owners.join(", ") };
    format!("{what} {} of {owners}", field.field)
}

/// Whether a field that stays is something that somebody wrote, rather than a default of the API server.
pub(crate) fn is_a_choice(field: &str) -> bool {
    let texts = [".data", ".stringData", ".binaryData", ".metadata.labels", ".metadata.annotations"];
    texts.iter().any(|text| field.starts_with(text)) && !field.contains("kubernetes.io/")
}

/// Fields of people that stay or are taken.
fn choices(out: &mut Page, shown: &Shown<'_>) {
    for (what, fields) in [("keeps", shown.kept), ("takes", shown.taken)] {
        for field in fields.iter().filter(|field| what != "keeps" || is_a_choice(&field.field)) {
            out.put(4, 2, &format!("{}: {}", shown.key, foreign(what, field)));
        }
    }
}
