//! What an audit says, as it is read in a terminal.

use scantling_audit::{Audit, Group, Row, Section, Subject, Verdict};
use scantling_finding::Severity;

use crate::page::{Page, pair, shortened};
use crate::style::{BAD, FAINT, GOOD, NOTED, RISKY, STRONG, Screen, count, paint};

/// Things that a line names; `--wide` names all.
const NAMED: usize = 3;
/// Remedies that a line shows; there is one for each workload.
const SHOWN_REMEDIES: usize = 2;
/// Lines of a section that only say what is not decided or not owned.
const SHOWN_NOTES: usize = 5;

/// The report of `scantling audit`. `wide`: everything is named.
pub fn audit(audit: &Audit, place: &str, wide: bool, screen: Screen) -> String {
    let mut out = Page::new(screen);
    for section in Section::ALL {
        let groups: Vec<&Group> = audit.groups.iter().filter(|group| of(audit, group, section)).collect();
        if groups.is_empty() {
            continue;
        }
        out.section(section.title());
        let mut notes = 0;
        for group in groups {
            let Some(first) = first(audit, group) else { continue };
            if first.severity == Severity::Note && !wide {
                notes += 1;
                if notes > SHOWN_NOTES {
                    continue;
                }
            }
            one(&mut out, audit, group, first, wide);
        }
        if notes > SHOWN_NOTES {
            out.put(2, 2, &format!("and {} more that are not decided (--wide)", notes - SHOWN_NOTES));
        }
    }
    if !audit.unseen.is_empty() {
        out.section("Not seen");
        for line in &audit.unseen {
            out.marked(2, &format!("{} ", paint(FAINT, "·")), 2, line);
        }
    }
    out.raw(0, "");
    end(&mut out, audit, place);
    out.text
}

/// The story of some rows: what was written, what was seen, in the order of time, and what mends it.
pub fn story(rows: &[&Row], screen: Screen) -> String {
    let mut out = Page::new(screen);
    for row in rows {
        out.section(&row.id);
        head(&mut out, row, &about(&row.subjects, row.reference.as_deref(), true));
        out.put(2, 0, &format!("{}: {}", row.code, row.code.info().title));
        out.put(2, 0, row.code.info().explanation);
        facts(&mut out, row);
        out.raw(0, "");
        for evidence in &row.evidence {
            let time = evidence.time.as_deref().unwrap_or("(no time)");
            let version = match evidence.resource_version.as_str() {
                "" => String::new(),
                version => format!(" (resourceVersion {version})"),
            };
            let place = format!("{}{}{version}", evidence.object, field(&evidence.field));
            out.marked(2, &paint(FAINT, &format!("{time:<22}")), 22, &place);
            out.put(24, 0, &evidence.value);
        }
        out.raw(0, "");
        remedies(&mut out, row, usize::MAX, &mut String::new());
    }
    out.text
}

fn field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(" {field}") }
}

fn first<'a>(audit: &'a Audit, group: &Group) -> Option<&'a Row> {
    audit.rows.get(*group.rows.first()?)
}

fn of(audit: &Audit, group: &Group, section: Section) -> bool {
    first(audit, group).is_some_and(|row| row.section == section)
}

fn one(out: &mut Page, audit: &Audit, group: &Group, first: &Row, wide: bool) {
    let rows: Vec<&Row> = group.rows.iter().filter_map(|number| audit.rows.get(*number)).collect();
    let subjects: Vec<Subject> = rows.iter().flat_map(|row| row.subjects.iter().cloned()).collect();
    match first.reference.as_deref() {
        Some(reference) => {
            head(out, first, &shortened(reference));
            pair(out, "in", &about(&subjects, None, wide));
        }
        None => head(out, first, &about(&subjects, None, wide)),
    }
    facts(out, first);
    let limit = if wide { usize::MAX } else { SHOWN_REMEDIES };
    let mut left = limit;
    let mut more = 0;
    let mut said = String::new();
    for row in &rows {
        more += row.remedies.len().saturating_sub(left);
        left -= remedies(out, row, left, &mut said);
    }
    if more > 0 {
        pair(out, "", &format!("and {more} more like this (--wide)"));
    }
    pair(out, "row", &group.id);
}

fn head(out: &mut Page, row: &Row, text: &str) {
    let (style, mark) = match row.severity {
        Severity::Error => (BAD, "✗"),
        Severity::Warning => (RISKY, "!"),
        Severity::Note => (NOTED, "?"),
    };
    let word = row.verdict.word();
    out.marked(2, &format!("{} {}  ", paint(style, mark), paint(STRONG, word)), 4, text);
}

/// What was found, what is meant, and why.
fn facts(out: &mut Page, row: &Row) {
    if !row.found.is_empty() {
        let word = match (row.section, row.verdict) {
            (Section::NextStart, Verdict::Changes) | (Section::Running, _) => "runs",
            (Section::NextStart, _) => "would start",
            _ => "has",
        };
        pair(out, word, &shortened(&row.found.join(", ")));
    }
    if let Some(wanted) = &row.wanted {
        pair(out, "means", &format!("{}, {}", wanted.digest.short(), wanted.basis));
    }
    if !row.why.is_empty() {
        pair(out, if row.verdict == Verdict::Unknown { "missing" } else { "why" }, &shortened(&row.why));
    }
}

/// Writes remedies and says how many.
fn remedies(out: &mut Page, row: &Row, most: usize, said: &mut String) -> usize {
    for remedy in row.remedies.iter().take(most) {
        // What several commands do is said once.
        if *said != remedy.what {
            pair(out, "mend", &remedy.what);
            said.clone_from(&remedy.what);
        }
        if let Some(command) = &remedy.command {
            // A command is copied: it is never broken.
            out.raw(18, &crate::style::safe(command).replace('\n', " "));
        }
    }
    row.remedies.len().min(most)
}

/// Who it is about, in a line.
fn about(subjects: &[Subject], reference: Option<&str>, wide: bool) -> String {
    let one = |subject: &Subject| {
        let pod = subject.pod.as_ref().map(|pod| format!(", pod {pod}"));
        let container = subject.container.as_ref().map(|container| format!(" ({container})"));
        let node = subject.node.as_ref().filter(|_| !subject.object.starts_with("Node "));
        let node = node.map(|node| format!(" on {node}"));
        let parts = [pod, container, node].into_iter().flatten();
        parts.fold(subject.object.clone(), |text, part| text + &part)
    };
    let most = if wide { usize::MAX } else { NAMED };
    let mut parts: Vec<String> = subjects.iter().take(most).map(one).collect();
    if subjects.len() > most {
        parts.push(format!("and {} more", subjects.len() - most));
    }
    let joined = parts.join("; ");
    match reference {
        Some(reference) => format!("{}: {joined}", shortened(reference)),
        None => joined,
    }
}

/// The last line: how it is, and what to do next.
fn end(out: &mut Page, audit: &Audit, place: &str) {
    let looked = &audit.looked;
    let what = format!(
        "{} in {} on {}",
        count(looked.containers, "container"),
        count(looked.pods, "pod"),
        count(looked.nodes, "node")
    );
    let broken = audit.broken();
    if broken == 0 {
        if looked.pods == 0 {
            out.marked(
                0,
                &format!("{} ", paint(RISKY, "unknown:")),
                9,
                &format!("{place}: there are no pods to judge"),
            );
            return;
        }
        let open = audit.rows.iter().filter(|row| row.verdict == Verdict::Unknown).count();
        let rest = if open == 0 { String::new() } else { format!("; {open} not decided") };
        out.marked(
            0,
            &format!("{} ", paint(GOOD, "sound:")),
            7,
            &format!("{place}: nothing is wrong with {what}{rest}"),
        );
        return;
    }
    let lines = audit.groups.iter().filter(|group| first(audit, group).is_some_and(Row::is_broken)).count();
    out.marked(
        0,
        &format!("{} ", paint(BAD, "broken:")),
        8,
        &format!(
            "{place}: {} in {} ({what}); `scantling audit … --explain ROW` tells the story of one",
            count(broken, "row"),
            count(lines, "line"),
        ),
    );
}
