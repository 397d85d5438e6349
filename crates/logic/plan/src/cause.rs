//! Why a step is as it is, in words for people.

use std::collections::BTreeSet;

use scantling_api::ObjectKey;

use crate::adopt::{Adoption, LAST_APPLIED};
use crate::immutable::runs_pods;
use crate::step::{FieldChange, ForeignField};

fn names(fields: &[ForeignField]) -> String {
    fields.iter().map(|f| f.field.as_str()).collect::<Vec<_>>().join(", ")
}

pub(crate) fn conflict_cause(conflicts: &[ForeignField], gone: bool) -> String {
    let owners: BTreeSet<&str> = conflicts.iter().flat_map(|c| c.owners.iter().map(String::as_str)).collect();
    if owners.is_empty() && !gone {
        format!("{} was changed, and nobody is named as its owner", names(conflicts))
    } else if owners.is_empty() {
        format!("{} has been removed since it was last applied", names(conflicts))
    } else {
        let owners: Vec<&str> = owners.into_iter().collect();
        format!("{} was changed by {}", names(conflicts), owners.join(", "))
    }
}

/// Why an object is deleted and created again, and what goes with it.
pub(crate) fn replaced_cause(key: &ObjectKey, immutable: &[String], kept: &[ForeignField]) -> String {
    let mut cause =
        format!("{} cannot be changed, so that it is deleted and created again", immutable.join(", "));
    if runs_pods(key) {
        cause.push_str("; its pods are deleted with it");
    }
    let lost: Vec<&str> = kept.iter().filter(|k| k.rule.is_none()).map(|k| k.field.as_str()).collect();
    if !lost.is_empty() {
        cause.push_str("; fields of others go with it: ");
        cause.push_str(&lost.join(", "));
    }
    cause
}

/// Why a field that cannot be changed stops the run, and what to do.
pub(crate) fn fixed_cause(key: &ObjectKey, immutable: &[String], created: bool) -> String {
    let fields = immutable.join(", ");
    if created && runs_pods(key) {
        return format!(
            "{fields} cannot be changed, and deleting the {} to create it again ends all its pods at once; leave the field as it is, give the release another name for it, or let the release say that it may be done: an ownership rule {{kind: {}, name: {}, field: {}, rule: take}}",
            key.kind,
            key.kind,
            key.name,
            immutable.first().map_or(".spec", String::as_str)
        );
    }
    if created {
        return format!(
            "{fields} cannot be changed, and deleting a {} to create it again would delete what it holds; give the release another name for it",
            key.kind
        );
    }
    format!(
        "{fields} cannot be changed, and Scantling did not create it; delete it when nobody needs it as it is, or give the release another name for it"
    )
}

pub(crate) fn changed_cause(changes: &[FieldChange]) -> String {
    // More than a handful of paths is read in the plan, not in a line.
    const SHOWN: usize = 3;
    // The note of client-side apply goes at every adoption; it says nothing about this object.
    let told: Vec<&str> =
        changes.iter().map(|c| c.field.as_str()).filter(|f| !f.contains(LAST_APPLIED)).collect();
    let mut text: Vec<&str> = told.iter().take(SHOWN).copied().collect();
    let more = told.len().saturating_sub(SHOWN);
    let rest = format!("{more} more");
    if more > 0 {
        text.push(&rest);
    }
    text.join(", ")
}

pub(crate) fn adopted_cause(changes: &[FieldChange], adoption: Option<&Adoption>) -> String {
    let mut cause = match adoption.map(|a| a.managers.join(", ")) {
        Some(managers) if !managers.is_empty() => format!("fields of {managers} become Scantling's"),
        _ => "it existed already".to_owned(),
    };
    let fields = changed_cause(changes);
    if !fields.is_empty() {
        cause.push_str("; ");
        cause.push_str(&fields);
    }
    cause
}
