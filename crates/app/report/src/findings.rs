//! Findings, as they are read in a terminal.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Message, Origin, Renderer, Snippet};
use scantling_finding::{FilePlace, Finding, Place, Severity};
use scantling_release::{Checked, Release};

use crate::style::{BAD, GOOD, NOTED, RISKY, STRONG, Screen, count, paint, safe, wrap};

/// The texts that findings point into, by the path that places name them with.
pub type Texts<'t> = BTreeMap<String, &'t str>;

/// Columns that a message loses to the label before it: `   = fix: `.
const LABEL: usize = 12;

/// Writes findings one below the other, each with the lines of the files that it is about.
pub fn findings(findings: &[Finding], texts: &Texts<'_>, screen: Screen) -> String {
    let mut out = String::new();
    for finding in findings {
        out.push_str(&one(finding, texts, screen));
        out.push_str("\n\n");
    }
    out
}

/// The last line: how many there are of each severity.
pub fn summary(findings: &[Finding]) -> String {
    let number = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let parts: Vec<String> = [
        (Severity::Error, BAD, "error"),
        (Severity::Warning, RISKY, "warning"),
        (Severity::Note, NOTED, "note"),
    ]
    .into_iter()
    .filter(|(severity, _, _)| number(*severity) > 0)
    .map(|(severity, style, word)| paint(style, &count(number(severity), word)))
    .collect();
    if parts.is_empty() { paint(GOOD, "nothing found") } else { parts.join(", ") }
}

/// The last line of a check: what was looked at, and what was found.
pub fn check_summary(release: &Release, checked: &Checked) -> String {
    let references = release.distinct_references().len();
    format!(
        "{}: {} ({}, {})",
        paint(STRONG, &safe(&release.title())),
        summary(&checked.findings),
        count(release.objects.len(), "object"),
        count(references, "image"),
    )
}

fn one(finding: &Finding, texts: &Texts<'_>, screen: Screen) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = title(finding, screen);
    let mut group = Group::with_title(level.primary_title(title).id(finding.code.as_str()));
    for (path, marks) in marks(finding) {
        match texts.get(path) {
            Some(text) => group = group.element(snippet(path, text, &marks)),
            None => {
                for mark in marks {
                    let origin = Origin::path(safe(path)).line(mark.place.line as usize);
                    group = group.element(origin.char_column(mark.place.column as usize));
                }
            }
        }
    }
    let inside = Place { file: None, ..finding.place.clone() };
    if inside != Place::default() {
        group = group.element(message("in", &inside.to_string(), screen));
    }
    for (place, what) in finding.related.iter().filter(|(place, _)| place.file.is_none()) {
        group = group.element(message("also", &format!("{place}: {what}"), screen));
    }
    for (label, text) in [("why", &finding.cause), ("fix", &finding.remedy)] {
        if !text.is_empty() {
            group = group.element(message(label, text, screen));
        }
    }
    Renderer::styled().decor_style(DecorStyle::Ascii).term_width(screen.width).render(&[group])
}

/// The message, broken so that it fits beside `error[SCN0101]: `.
fn title(finding: &Finding, screen: Screen) -> String {
    let before = finding.severity.to_string().len() + finding.code.as_str().len() + "[]: ".len();
    wrap(&safe(&finding.message), screen.width.saturating_sub(before)).join("\n")
}

fn message<'a>(label: &'a str, text: &str, screen: Screen) -> Message<'a> {
    let lines = wrap(&safe(text), screen.width.saturating_sub(LABEL));
    Level::NOTE.with_name(label).message(lines.join("\n"))
}

/// A place in a file and what is to be said there.
struct Mark<'f> {
    place: &'f FilePlace,
    label: Option<&'f str>,
    primary: bool,
}

/// The places of a finding, file by file; the file of the finding itself comes first.
fn marks(finding: &Finding) -> Vec<(&str, Vec<Mark<'_>>)> {
    let own = finding.place.file.as_ref().map(|place| Mark { place, label: None, primary: true });
    let related = finding.related.iter().filter_map(|(place, what)| {
        Some(Mark { place: place.file.as_ref()?, label: Some(what.as_str()), primary: false })
    });
    let mut files: Vec<(&str, Vec<Mark<'_>>)> = Vec::new();
    for mark in own.into_iter().chain(related) {
        match files.iter_mut().find(|(path, _)| *path == mark.place.path) {
            Some((_, marks)) => marks.push(mark),
            None => files.push((&mark.place.path, vec![mark])),
        }
    }
    files
}

/// The lines that are marked. Only they are given to the renderer: files may be large.
fn snippet<'a>(path: &'a str, text: &'a str, marks: &[Mark<'a>]) -> Snippet<'a, Annotation<'a>> {
    let spans: Vec<Range<usize>> = marks.iter().map(|mark| span(text, mark.place)).collect();
    let first = spans.iter().map(|span| span.start).min().unwrap_or(0);
    let last = spans.iter().map(|span| span.end).max().unwrap_or(0);
    let start = text.get(..first).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let end = text.get(last..).and_then(|after| after.find('\n')).map_or(text.len(), |at| last + at);
    let line = text.get(..start).map_or(0, |before| before.matches('\n').count()) + 1;
    let annotations = marks.iter().zip(spans).map(|(mark, span)| {
        let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        kind.span(span.start - start..span.end - start).label(mark.label.map(safe))
    });
    Snippet::source(text.get(start..end).unwrap_or_default())
        .line_start(line)
        .path(path)
        .fold(true)
        .annotations(annotations)
}

/// The bytes of a place, on its first line only, and never outside the text: it may have changed since.
fn span(text: &str, place: &FilePlace) -> Range<usize> {
    let (start, end) = place.span.unwrap_or_else(|| {
        let start = offset(text, place.line, place.column);
        (start, start)
    });
    let start = floor(text, start);
    let line_end = text.get(start..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| start + at);
    start..floor(text, end.min(line_end)).max(start)
}

/// The byte of a line and column.
fn offset(text: &str, line: u32, column: u32) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match text.get(start..).and_then(|rest| rest.find('\n')) {
            Some(at) => start += at + 1,
            None => return text.len(),
        }
    }
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let column = (column as usize).saturating_sub(1);
    start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
