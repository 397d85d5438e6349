//! Byte spans and line numbers.

use serde::Serialize;

/// A range of bytes of the text, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to and without `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The piece of `text` that the span covers; empty if the span is not a range of this text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether it covers nothing.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// Finds the line and column of a byte.
#[derive(Debug, Clone)]
pub struct LineIndex<'text> {
    text: &'text str,
    starts: Vec<usize>,
}

impl<'text> LineIndex<'text> {
    /// Looks through the text once.
    pub fn new(text: &'text str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Line and column of a byte, both from 1, the column in characters. A byte order mark does not count as a column.
    /// Beyond the end, the end's own.
    pub fn position(&self, byte: usize) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let mut end = byte.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = self.text.get(start..end).unwrap_or_default();
        let columns = before.trim_start_matches('\u{feff}').chars().count();
        (saturate(line + 1), saturate(columns + 1))
    }

    /// The text of a line (from 1), without its line break.
    pub fn line(&self, line: u32) -> Option<&'text str> {
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        let start = *self.starts.get(at)?;
        let end = self.starts.get(at + 1).copied().unwrap_or(self.text.len());
        Some(self.text.get(start..end)?.trim_end_matches(['\n', '\r']))
    }
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Finds the byte at which a character stands.
#[derive(Debug)]
pub(crate) struct CharIndex {
    /// The byte offset of every 64th character; empty if characters are bytes.
    checkpoints: Vec<usize>,
    length: usize,
}

const STEP: usize = 64;

impl CharIndex {
    pub(crate) fn new(text: &str) -> Self {
        let checkpoints = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().step_by(STEP).map(|(byte, _)| byte).collect()
        };
        Self { checkpoints, length: text.len() }
    }

    /// The byte offset of the character with this number, counted from 0; beyond the end, the end.
    pub(crate) fn byte(&self, text: &str, character: usize) -> usize {
        if self.checkpoints.is_empty() {
            return character.min(self.length);
        }
        let Some(&start) = self.checkpoints.get(character / STEP) else { return self.length };
        let rest = text.get(start..).unwrap_or_default();
        rest.char_indices().nth(character % STEP).map_or(self.length, |(byte, _)| start + byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "\u{feff}a: é\r\nb: ü x\n";
        let index = LineIndex::new(text);
        for (needle, wanted) in [("a", (1, 1)), ("é", (1, 4)), ("b", (2, 1)), ("x", (2, 6))] {
            assert_eq!(index.position(text.find(needle).unwrap_or_default()), wanted, "{needle}");
        }
        assert_eq!(index.position(text.len()), (3, 1));
        assert_eq!(index.position(usize::MAX), (3, 1));
        assert_eq!(index.line(2), Some("b: ü x"));
        assert_eq!(index.line(9), None);
    }

    #[test]
    fn characters_are_found_in_long_mixed_text() {
        let text: String = (0..1000).map(|number| if number % 7 == 0 { '→' } else { 'x' }).collect();
        let index = CharIndex::new(&text);
        for (number, (byte, _)) in text.char_indices().enumerate() {
            assert_eq!(index.byte(&text, number), byte);
        }
        assert_eq!(index.byte(&text, 1000), text.len());
        assert_eq!(index.byte(&text, 5000), text.len());
    }
}
