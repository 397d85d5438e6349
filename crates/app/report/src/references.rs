//! References, as they are read in a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anstyle::Style;
use scantling_manifest::{Candidate, What};

use crate::style::{BAD, FAINT, GOOD, NOTED, RISKY, STRONG, Screen, count, paint, safe, wrap};

/// Columns before the text of a reference: `  1234:567  `.
const MARGIN: usize = 12;

/// Which candidates are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What is pulled, or may be once something is filled in or corrected.
    Relevant,
    /// Notes, statuses and texts that only look like references as well.
    All,
}

impl Which {
    fn shows(self, candidate: &Candidate) -> bool {
        match candidate.what {
            _ if self == Self::All => true,
            What::Decoy { .. } => false,
            _ => candidate.route.is_pulled(),
        }
    }
}

/// Writes candidates file by file, each with its place, its route and when it is live.
pub fn references(candidates: &[Candidate], which: Which, screen: Screen) -> String {
    let mut out = String::new();
    let mut file = None;
    for candidate in candidates.iter().filter(|candidate| which.shows(candidate)) {
        let place = candidate.place.file.as_ref();
        let path = place.map(|place| place.path.as_str());
        if path != file {
            if file.is_some() {
                out.push('\n');
            }
            out.push_str(&paint(STRONG, &safe(path.unwrap_or("?"))));
            out.push('\n');
            file = path;
        }
        let position = place.map(|place| format!("{}:{}", place.line, place.column)).unwrap_or_default();
        let (style, text) = headline(candidate);
        let position = paint(FAINT, &format!("{position:>width$}", width = MARGIN - 2));
        let _ = writeln!(out, "{position}  {}", paint(style, &safe(&text)));
        for line in wrap(&safe(&details(candidate)), screen.width.saturating_sub(MARGIN)) {
            let _ = writeln!(out, "{:MARGIN$}{}", "", paint(FAINT, &line));
        }
    }
    out
}

/// What a candidate is, in one line.
fn headline(candidate: &Candidate) -> (Style, String) {
    match &candidate.what {
        What::Reference { reference } | What::Joined { reference, .. } => {
            let style = if reference.is_pinned() { GOOD } else { RISKY };
            (style, reference.written().to_owned())
        }
        What::Placeholder { .. } | What::Malformed { .. } => (BAD, candidate.written.clone()),
        What::ImageStreamTag { namespace, stream, tag } => {
            let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            (NOTED, format!("{namespace}{stream}:{tag}"))
        }
        What::Decoy { .. } => (FAINT, candidate.written.clone()),
        What::Unclassified { .. } => (RISKY, candidate.written.clone()),
    }
}

/// Everything else that is known about it.
fn details(candidate: &Candidate) -> String {
    let mut parts = vec![candidate.route.to_string()];
    match &candidate.what {
        What::Reference { reference } if !reference.is_pinned() => parts.push("by tag".to_owned()),
        What::Reference { .. } => {}
        What::Joined { parts: fields, .. } => {
            parts.push(format!("joined from {}", count(fields.len(), "field")));
        }
        What::Placeholder { names, filled_by } => {
            parts.push(format!("placeholder for {}", names.join(", ")));
            match filled_by.as_slice() {
                [] => parts.push("filled by nothing".to_owned()),
                some => parts.extend(some.iter().map(|filling| {
                    let place =
                        filling.place.file.as_ref().map(|file| format!(" ({file})")).unwrap_or_default();
                    format!("filled with {} by {}{place}", filling.value, filling.by)
                })),
            }
        }
        What::ImageStreamTag { .. } => parts.push("image stream's tag".to_owned()),
        What::Malformed { reason, suggestion } => {
            parts.push(format!("malformed: {reason}"));
            parts.extend(suggestion.as_ref().map(|suggestion| format!("did you mean {suggestion}?")));
        }
        What::Decoy { reason } => parts.push(format!("no reference: {reason}")),
        What::Unclassified { reason } => parts.push(format!("in doubt: {reason}")),
    }
    if let Some(condition) = &candidate.condition {
        parts.push(format!("live when {condition}"));
    }
    if let Some(policy) = &candidate.pull_policy {
        parts.push(format!("pull policy {policy}"));
    }
    let object = [candidate.place.object.as_deref(), candidate.place.field.as_deref()];
    let object: Vec<&str> = object.into_iter().flatten().collect();
    if !object.is_empty() {
        parts.push(object.join(" "));
    }
    parts.join(" · ")
}

/// How many of what there are, in one line.
pub fn summary(candidates: &[Candidate], files: usize, skipped: usize) -> String {
    let pulled: Vec<&Candidate> = candidates.iter().filter(|candidate| candidate.is_pulled()).collect();
    let distinct: BTreeSet<_> = pulled.iter().filter_map(|candidate| candidate.reference()).collect();
    let pinned = distinct.iter().filter(|reference| reference.is_pinned()).count();
    let mut parts = vec![format!(
        "{} to {} ({pinned} by digest, {} by tag)",
        count(pulled.len(), "reference"),
        count(distinct.len(), "image"),
        distinct.len() - pinned
    )];
    let number =
        |wanted: fn(&What) -> bool| candidates.iter().filter(|candidate| wanted(&candidate.what)).count();
    let others = [
        (number(|what| matches!(what, What::Placeholder { .. })), "placeholder"),
        (number(|what| matches!(what, What::Malformed { .. })), "malformed text"),
        (number(|what| matches!(what, What::Unclassified { .. })), "text in doubt"),
        (number(|what| matches!(what, What::ImageStreamTag { .. })), "image stream tag"),
    ];
    for (number, word) in others.into_iter().filter(|(number, _)| *number > 0) {
        parts.push(match (number, word) {
            (1, word) => format!("1 {word}"),
            (n, "text in doubt") => format!("{n} texts in doubt"),
            (n, word) => format!("{n} {word}s"),
        });
    }
    let mut line = format!("{}: {}", paint(STRONG, &count(files, "file")), parts.join(", "));
    if skipped > 0 {
        line.push_str(&paint(FAINT, &format!("; {skipped} left out")));
    }
    line
}
