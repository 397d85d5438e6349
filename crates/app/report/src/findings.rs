//! Findings, as they are read in a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Message, Origin, Renderer, Snippet};
use scantling_finding::{Code, FilePlace, Finding, Place, Severity};
use scantling_release::{Checked, Release};
use unicode_width::UnicodeWidthStr as _;

use crate::style::{BAD, GOOD, NOTED, RISKY, STRONG, Screen, count, last_line, paint, safe, wrap};

/// The texts that findings point into, by the path that places name them with.
pub type Texts<'t> = BTreeMap<String, &'t str>;

/// Columns that a message loses to the label before it: `   = fix: `.
const LABEL: usize = 12;
/// The renderer cuts all lines of a snippet at the same columns; here every line is cut by itself before.
const UNCUT: usize = 10_000;

/// Writes findings one below the other, each with the lines of the files that it is about. What a code means in
/// general is said once.
pub fn findings(findings: &[Finding], texts: &Texts<'_>, screen: Screen) -> String {
    let mut out = String::new();
    let mut said = BTreeSet::new();
    for finding in findings {
        out.push_str(&one(finding, texts, screen, &mut said));
        out.push_str("\n\n");
    }
    out
}

/// Writes findings in one line each.
pub fn lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let style = match finding.severity {
            Severity::Error => BAD,
            Severity::Warning => RISKY,
            Severity::Note => NOTED,
        };
        let head = paint(style, &format!("{}[{}]", finding.severity, finding.code));
        let place =
            finding.place.file.as_ref().map_or_else(|| finding.place.to_string(), ToString::to_string);
        format!("{head}: {}: {}\n", safe(&place), safe(&finding.message))
    };
    findings.iter().map(line).collect()
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

/// The report of a check: findings, then what was looked at and how many there are.
///
/// `path` stands for the name of a release that has none.
pub fn check(release: &Release, path: &str, checked: &Checked, texts: &Texts<'_>, screen: Screen) -> String {
    let title = release.version.as_ref().map_or_else(|| path.to_owned(), |_| release.title());
    let last = format!(
        "{}: {} ({}, {})",
        paint(STRONG, &safe(&title)),
        summary(&checked.findings),
        count(release.objects.len(), "object"),
        count(release.distinct_references().len(), "image"),
    );
    findings(&checked.findings, texts, screen) + &last_line(&last, screen)
}

/// The report of a check that ended before it began.
pub fn unreadable(faults: &[Finding], path: &str, texts: &Texts<'_>, screen: Screen) -> String {
    format!(
        "{}{}: not readable as a release: {}\n",
        findings(faults, texts, screen),
        paint(STRONG, &safe(path)),
        summary(faults)
    )
}

fn one<'f>(
    finding: &'f Finding,
    texts: &Texts<'_>,
    screen: Screen,
    said: &mut BTreeSet<(Code, &'f str)>,
) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = title(finding, screen);
    let mut group = Group::with_title(level.primary_title(title).id(finding.code.as_str()));
    let mut origins: Vec<&FilePlace> = Vec::new();
    for (path, marks) in marks(finding) {
        match texts.get(path) {
            // What stands around the place in a Secret is nobody's to see.
            Some(text) if marks.iter().any(|mark| in_secret(text, mark.place)) => {
                group = group.elements(marks.iter().map(|mark| origin(mark.place)));
            }
            Some(text) => {
                group = group.element(snippet(text, &marks, screen.width).path(stand_in(origins.len())));
                origins.extend(marks.first().map(|mark| mark.place));
            }
            None => group = group.elements(marks.iter().map(|mark| origin(mark.place))),
        }
    }
    let inside = Place { file: None, ..finding.place.clone() };
    if inside != Place::default() {
        group = group.element(message("in", &inside.to_string(), screen));
    }
    for (place, what) in finding.related.iter().filter(|(place, _)| place.file.is_none()) {
        group = group.element(message("also", &format!("{place}: {what}"), screen));
    }
    for (label, text) in [("why", finding.cause.as_str()), ("fix", finding.remedy.as_str())] {
        if !text.is_empty() && said.insert((finding.code, text)) {
            group = group.element(message(label, text, screen));
        }
    }
    let rendered = Renderer::styled().decor_style(DecorStyle::Ascii).term_width(UNCUT).render(&[group]);
    origins
        .iter()
        .enumerate()
        .fold(rendered, |rendered, (number, place)| with_origin(&rendered, number, place))
}

fn origin(place: &FilePlace) -> Origin<'static> {
    Origin::path(safe(&place.path)).line(place.line as usize).char_column(place.column as usize)
}

/// The path that a snippet is rendered with. The renderer adds the line and column as it sees them, and it sees lines
/// that have been cut; so the whole is put in afterwards.
fn stand_in(number: usize) -> String {
    format!("<origin {number}>")
}

fn with_origin(rendered: &str, number: usize, place: &FilePlace) -> String {
    let stand_in = stand_in(number);
    let Some((before, after)) = rendered.split_once(&stand_in) else { return rendered.to_owned() };
    let after = after.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
    format!("{before}{}:{}:{}{after}", safe(&place.path), place.line, place.column)
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

/// Whether a place is in a document that says that it is a Secret, even one that can't be parsed.
fn in_secret(text: &str, place: &FilePlace) -> bool {
    let at = span(text, place).start;
    let start = text.get(..at).and_then(|before| before.rfind("\n---")).unwrap_or(0);
    let end = text.get(at..).and_then(|after| after.find("\n---")).map_or(text.len(), |end| at + end);
    let quotes = ['"', '\''];
    let document = text.get(start..end).unwrap_or(text);
    // A release file names Secrets that are generated, and holds none.
    if document.lines().any(|line| line.trim_end() == "kind: Release") {
        return false;
    }
    document.split("kind").skip(1).any(|after| {
        let value = after.trim_start_matches(quotes).trim_start().strip_prefix(':');
        let value = value.map(|value| value.trim_start().trim_start_matches(quotes));
        value
            .and_then(|value| value.strip_prefix("Secret"))
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

/// The lines that are marked, and what stands between them. Only they are given to the renderer: files may be large.
fn snippet<'a>(text: &str, marks: &[Mark<'a>], width: usize) -> Snippet<'a, Annotation<'a>> {
    let spans: Vec<Range<usize>> = marks.iter().map(|mark| span(text, mark.place)).collect();
    let first = spans.iter().map(|span| span.start).min().unwrap_or(0);
    let last = spans.iter().map(|span| span.end).max().unwrap_or(0);
    let start = line_start(text, first);
    let end = line_end(text, last);
    let number = text.get(..start).map_or(0, |before| before.matches('\n').count()) + 1;
    let room = width.saturating_sub(
        (number + text.get(start..end).unwrap_or_default().lines().count()).to_string().len() + 3,
    );
    let mut source = String::new();
    let mut annotations = Vec::new();
    let mut at = start;
    for line in text.get(start..end).unwrap_or_default().split_inclusive('\n') {
        let inside = |span: &Range<usize>| {
            (at..at + line.len()).contains(&span.start)
                || span.start == at + line.len() && at + line.len() == end
        };
        let here: Vec<(&Mark<'a>, Range<usize>)> = marks
            .iter()
            .zip(&spans)
            .filter(|(_, span)| inside(span))
            .map(|(mark, span)| (mark, span.start - at..span.end - at))
            .collect();
        let cut = Cut::around(line.trim_end_matches(['\n', '\r']), &here, room);
        for (mark, span) in &here {
            let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            let span = source.len() + cut.moved(span.start)..source.len() + cut.moved(span.end);
            annotations.push(kind.span(span).label(mark.label.map(safe)));
        }
        source.push_str(&cut.text);
        source.push('\n');
        at += line.len();
    }
    Snippet::source(source).line_start(number).fold(true).annotations(annotations)
}

/// A line, shortened so that what is marked in it and the label after that fit into the screen.
struct Cut {
    text: String,
    /// Bytes that are gone from the beginning.
    gone: usize,
    /// Bytes that stand there instead.
    instead: usize,
}

impl Cut {
    fn around(line: &str, marks: &[(&Mark<'_>, Range<usize>)], room: usize) -> Self {
        const GAP: &str = "…";
        /// Fewer bytes are not worth cutting: a closing quote and a comma.
        const LEAST_CUT: usize = 3;
        /// What is kept before a mark, so that one sees where it stands.
        const CONTEXT: usize = 16;
        let width = |range: Range<usize>| line.get(range).unwrap_or_default().width();
        let start = marks.iter().map(|(_, span)| span.start).min().unwrap_or(0);
        let needed = |(mark, span): &(&Mark<'_>, Range<usize>)| {
            width(0..span.end) + mark.label.map_or(0, |label| label.width() + 1)
        };
        let overhang = marks.iter().map(needed).max().unwrap_or(0).saturating_sub(room);
        let mut gone = 0;
        if overhang > 0 {
            let latest = width(0..start).saturating_sub(CONTEXT);
            let wanted = (overhang + GAP.width()).min(latest);
            gone = line.char_indices().map(|(at, _)| at).find(|at| width(0..*at) >= wanted).unwrap_or(0);
        }
        let head = if gone > 0 { GAP } else { "" };
        let rest = line.get(gone..).unwrap_or_default();
        let mut text = head.to_owned();
        if text.width() + rest.width() <= room {
            text.push_str(rest);
        } else {
            let last = marks.iter().map(|(_, span)| span.end).max().unwrap_or(0);
            for (at, c) in rest.char_indices() {
                let more = rest.len() - at > LEAST_CUT;
                if gone + at >= last && more && text.width() + 2 > room {
                    text.push_str(GAP);
                    break;
                }
                text.push(c);
            }
        }
        Self { text, gone, instead: head.len() }
    }

    /// Where a byte of the line stands now; the end for what was cut off there, such as a carriage return.
    fn moved(&self, at: usize) -> usize {
        let moved = if self.gone == 0 { at } else { (at + self.instead).saturating_sub(self.gone) };
        floor(&self.text, moved)
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|after| after.find('\n')).map_or(text.len(), |after| at + after)
}

/// The bytes of a place, on its first line only, and never outside the text: it may have changed since.
fn span(text: &str, place: &FilePlace) -> Range<usize> {
    let (start, end) = place.span.unwrap_or_else(|| {
        let start = offset(text, place.line, place.column);
        (start, start)
    });
    let start = floor(text, start);
    start..floor(text, end.min(line_end(text, start))).max(start)
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
