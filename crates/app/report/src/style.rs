//! How text looks in a terminal: width, colours, and words that do not break.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

/// Narrowest width that is laid out for; a narrower terminal breaks lines itself.
const NARROWEST: usize = 40;

/// What every renderer needs to know about where its text goes.
///
/// Renderers always write colours; whoever prints takes them out again where they are not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
}

impl Default for Screen {
    fn default() -> Self {
        Self { width: 100 }
    }
}

impl Screen {
    /// A screen of a width, at least 40 columns.
    pub fn new(width: usize) -> Self {
        Self { width: width.max(NARROWEST) }
    }
}

/// Faults, and promises that are broken.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Risks.
pub const RISKY: Style = AnsiColor::Yellow.on_default().bold();
/// What is as it should be.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What is worth knowing.
pub const NOTED: Style = AnsiColor::Cyan.on_default().bold();
/// Headings and what a line is about.
pub const STRONG: Style = Style::new().bold();
/// What can be skipped.
pub const FAINT: Style = Style::new().dimmed();

/// A text in a style.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Breaks a text into lines of at most `width` columns, between words. A word that is longer stays whole: it is
/// a reference or a path that someone wants to copy. Colours take no room.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && shown_width(&line) + 1 + shown_width(word) > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// A last line, which sums up: broken like any other text, and further lines are indented.
pub fn last_line(text: &str, screen: Screen) -> String {
    wrap(text, screen.width.saturating_sub(2)).join("\n  ") + "\n"
}

/// Columns that a text takes, without the colours in it.
fn shown_width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, UnicodeWidthStr::width);
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, after)| after.width())).sum::<usize>()
}

/// A text made safe to print: control characters from files must not steer the terminal.
pub fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// `1 file`, `2 files`.
pub fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        n if one.ends_with('y') => format!("{n} {}ies", one.trim_end_matches('y')),
        n => format!("{n} {one}s"),
    }
}

/// A number of bytes as people say it: `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if number < 1024 {
        return count(usize::try_from(number).unwrap_or(usize::MAX), "byte");
    }
    // In tenths of the unit, rounded down: no float is needed for one digit.
    let mut tenths = number.saturating_mul(10) / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS.get(unit).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_never_inside() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("a registry.example/with/a/long/name b", 10),
            ["a", "registry.example/with/a/long/name", "b"]
        );
        assert_eq!(wrap("first\nsecond line", 6), ["first", "second", "line"]);
        assert_eq!(wrap("", 6), [""]);
    }

    #[test]
    fn colours_take_no_room() {
        let text = format!("{} {}", paint(BAD, "one"), paint(GOOD, "two three"));
        assert_eq!(wrap(&text, 13), [text.as_str()]);
        assert_eq!(wrap(&text, 12).len(), 2);
        assert_eq!(last_line("one two three", Screen { width: 10 }), "one two\n  three\n");
    }

    #[test]
    fn control_characters_do_not_pass() {
        assert_eq!(safe("a\u{1b}[31mb\u{7}\n"), "a\u{fffd}[31mb\u{fffd}\n");
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            (5_368_709_120, "5.0 GiB"),
        ];
        for (number, text) in sizes {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn numbers_and_words_agree() {
        let counts = [count(0, "image"), count(1, "image"), count(2, "registry")];
        assert_eq!(counts, ["0 images", "1 image", "2 registries"]);
    }
}
