//! Equal rows as one line.

use std::collections::BTreeMap;

use scantling_finding::{Code, Severity};
use serde::Serialize;

use crate::row::{Row, Section, Verdict};

/// Rows that say the same of many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The id of the row, if there is one; else one of its own, as stable.
    pub id: String,
    /// Their rows, by number, in order.
    pub rows: Vec<usize>,
    /// How many things they are about.
    pub subjects: usize,
}

/// What equal rows have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'r> {
    section: Section,
    verdict: Verdict,
    code: Code,
    reference: Option<&'r str>,
    found: &'r [String],
    wanted: Option<&'r str>,
    /// Rows without an image are the same only if they say the same.
    why: Option<&'r str>,
}

/// Puts rows in order, worst for people first, and joins those that say the same.
pub(crate) fn group(rows: &mut Vec<Row>) -> Vec<Group> {
    rows.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| (a.section, &a.id).cmp(&(b.section, &b.id))));
    rows.dedup_by(|a, b| a.id == b.id);
    let mut by_key: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        let says = row.found.is_empty() && row.wanted.is_none() && row.section != Section::Unowned;
        let key = Key {
            section: row.section,
            verdict: row.verdict,
            code: row.code,
            reference: row.reference.as_deref(),
            found: &row.found,
            wanted: row.wanted.as_ref().map(|wanted| wanted.digest.as_str()),
            why: says.then_some(row.why.as_str()),
        };
        by_key.entry(key).or_default().push(number);
    }
    let mut groups: Vec<Group> = by_key
        .into_values()
        .filter_map(|numbers| {
            let first = rows.get(*numbers.first()?)?;
            let subjects =
                numbers.iter().filter_map(|number| rows.get(*number)).map(|row| row.subjects.len()).sum();
            let id = match numbers.as_slice() {
                [_] => first.id.clone(),
                _ => Row::id_of(
                    first.section,
                    &[
                        "group",
                        first.code.as_str(),
                        first.verdict.word(),
                        first.reference.as_deref().unwrap_or_default(),
                        &first.found.join(" "),
                        first.wanted.as_ref().map(|wanted| wanted.digest.as_str()).unwrap_or_default(),
                        if first.found.is_empty() { &first.why } else { "" },
                    ],
                ),
            };
            Some(Group { id, rows: numbers, subjects })
        })
        .collect();
    groups.sort_by(|a, b| {
        let of = |group: &Group| group.rows.first().and_then(|number| rows.get(*number));
        let rank_of = |group: &Group| of(group).map(rank);
        let section = |group: &Group| of(group).map(|row| row.section);
        (rank_of(a), std::cmp::Reverse(a.subjects), section(a), &a.id).cmp(&(
            rank_of(b),
            std::cmp::Reverse(b.subjects),
            section(b),
            &b.id,
        ))
    });
    groups
}

/// What is worst for people: what does not start, what runs wrongly now, what will, what shows it wrongly.
fn rank(row: &Row) -> (u8, u8) {
    let broken = match row.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Note => 2,
    };
    let kind = match (row.section, row.verdict) {
        (_, Verdict::CannotPull) => 0,
        (Section::Configuration, _) => 1,
        (Section::Running, _) => 2,
        (_, Verdict::Changes) => 3,
        (Section::NextStart, _) => 4,
        (Section::Replicas, _) => 5,
        (Section::Screen, _) => 6,
        (Section::Unowned, _) => 7,
    };
    (broken, kind)
}
