//! From places in a decoded string back to places in the text.

use crate::json::unicode_escape;
use crate::{Node, Style};

/// Where the bytes of one string stand in the text. Made once per string, asked often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// (offset in the string, offset in the text), ascending: from each pair on, both run alike until the next.
    runs: Vec<(usize, usize)>,
}

impl SourceMap {
    /// Where the byte of the string stands in the text; for its end, the end in the text.
    pub fn source(&self, decoded: usize) -> Option<usize> {
        let at = self.runs.partition_point(|(start, _)| *start <= decoded).checked_sub(1)?;
        let (start, source) = self.runs.get(at)?;
        let offset = source + (decoded - start);
        // What an escape or a fold stands for is longer in the string than its first byte in the text.
        Some(self.runs.get(at + 1).map_or(offset, |(_, next)| offset.min(*next)))
    }

    pub(crate) fn of(node: &Node, text: &str) -> Self {
        let (Some(decoded), written) = (node.as_str(), node.span.of(text)) else { return Self::default() };
        let mut runs = Runs { runs: Vec::new(), start: node.span.start };
        match node.style {
            Style::Literal => runs.block(written, decoded, false),
            Style::Folded => runs.block(written, decoded, true),
            Style::Plain => runs.flow(written, 0, None),
            Style::SingleQuoted => runs.flow(written, 1, Some('\'')),
            Style::DoubleQuoted => runs.flow(written, 1, Some('"')),
            Style::Collection => {}
        }
        Self { runs: runs.runs }
    }
}

struct Runs {
    runs: Vec<(usize, usize)>,
    start: usize,
}

impl Runs {
    /// Notes that from here on string and text run alike. `source` counts from the start of the scalar.
    fn run(&mut self, decoded: usize, source: usize) {
        let source = self.start + source;
        if let Some((last_decoded, last_source)) = self.runs.last().copied() {
            if last_decoded == decoded {
                self.runs.pop();
            } else if source >= last_source && decoded - last_decoded == source - last_source {
                return;
            }
        }
        self.runs.push((decoded, source));
    }

    /// Plain and quoted scalars: lines are folded; what quotes escape is shorter or longer in the string.
    fn flow(&mut self, written: &str, mut at: usize, quote: Option<char>) {
        let mut decoded = 0;
        self.run(decoded, at);
        while let Some(rest) = written.get(at..) {
            let Some(character) = rest.chars().next() else { break };
            match character {
                '\'' if quote == Some('\'') => {
                    if !rest.starts_with("''") {
                        break;
                    }
                    decoded += 1;
                    at += 2;
                    self.run(decoded, at);
                }
                '"' if quote == Some('"') => break,
                '\\' if quote == Some('"') => {
                    let (characters, length) = double_escape(rest);
                    decoded += characters;
                    at += length;
                    self.run(decoded, at);
                }
                ' ' | '\t' | '\n' | '\r' => {
                    let after = rest.trim_start_matches([' ', '\t', '\n', '\r']);
                    let blank = rest.get(..rest.len() - after.len()).unwrap_or_default();
                    let breaks = count_breaks(blank);
                    if breaks == 0 {
                        decoded += blank.len();
                        at += blank.len();
                    } else {
                        // One break is a space, more are one break less.
                        let first = blank.find(['\n', '\r']).unwrap_or_default();
                        self.run(decoded, at + first);
                        decoded += if breaks == 1 { 1 } else { breaks - 1 };
                        at += blank.len();
                        self.run(decoded, at);
                    }
                }
                other => {
                    decoded += other.len_utf8();
                    at += other.len_utf8();
                }
            }
        }
        self.run(decoded, at);
    }

    /// Block scalars: the lines of the text without their indentation, in order, are the content of the string.
    fn block(&mut self, written: &str, decoded: &str, folded: bool) {
        let Some((_, mut at)) = lines(written).next().filter(|(header, length)| header.len() < *length)
        else {
            return;
        };
        let body = written.get(at..).unwrap_or_default();
        let indent = block_indent(body, decoded);
        let mut position = 0;
        self.run(position, at);
        for (content, length) in lines(body) {
            let blank = content.len() - content.trim_start_matches(' ').len();
            let skipped = blank.min(indent);
            let content = content.get(skipped..).unwrap_or_default();
            if folded {
                if !content.is_empty() {
                    // Between two lines stands a space or line breaks, whatever the folding made of them.
                    while let Some(rest) = decoded.get(position..) {
                        if rest.starts_with(content) || !rest.starts_with([' ', '\n']) {
                            break;
                        }
                        position += 1;
                    }
                    self.run(position, at + skipped);
                    position += content.len();
                    self.run(position, at + skipped + content.len());
                }
            } else {
                if position > decoded.len() {
                    break;
                }
                self.run(position, at + skipped);
                position += content.len();
                self.run(position, at + skipped + content.len());
                position += 1;
            }
            at += length;
        }
        if position < decoded.len() {
            self.run(decoded.len(), written.len());
        }
    }
}

/// The indentation of a block scalar's content, taken from the first line that has content in the text and in the string:
/// what the header says counts from the parent's indentation, which is not known here.
pub(crate) fn block_indent(body: &str, decoded: &str) -> usize {
    let has_content = |line: &&str| !line.trim_matches(' ').is_empty();
    let leading = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let wanted = decoded.split('\n').find(has_content).map_or(0, leading);
    let written = lines(body).map(|(line, _)| line).find(has_content).map_or(0, leading);
    written.saturating_sub(wanted)
}

/// The lines of a text without their breaks, each with its length in the text. A break is a line feed, a carriage return, or
/// both in this order.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let broken = ["\r\n", "\n", "\r"].into_iter().find_map(|ending| after.strip_prefix(ending));
        let length = rest.len() - broken.unwrap_or_default().len();
        rest = broken.unwrap_or_default();
        Some((line, length))
    })
}

fn count_breaks(blank: &str) -> usize {
    let newlines = blank.bytes().filter(|byte| *byte == b'\n').count();
    let lone_returns = blank
        .as_bytes()
        .windows(2)
        .filter(|pair| pair.first() == Some(&b'\r') && pair.last() != Some(&b'\n'));
    newlines + lone_returns.count() + usize::from(blank.ends_with('\r'))
}

/// An escape in double quotes: the bytes it makes in the string and the bytes it is written with.
fn double_escape(rest: &str) -> (usize, usize) {
    let digits = |count: usize| {
        let number = rest.get(2..2 + count).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        (number.and_then(char::from_u32).map_or(1, char::len_utf8), 2 + count)
    };
    match rest.chars().nth(1) {
        Some('x') => digits(2),
        Some('u') => {
            unicode_escape(rest).map_or((1, 2), |(character, length)| (character.len_utf8(), length))
        }
        Some('U') => digits(8),
        Some('N' | '_') => (2, 2),
        Some('L' | 'P') => (3, 2),
        Some('\n' | '\r') => {
            // An escaped line break and the indentation after it make nothing; empty lines make breaks.
            let after = rest.get(1..).unwrap_or_default();
            let next = after.trim_start_matches([' ', '\t', '\n', '\r']);
            let blank = after.get(..after.len() - next.len()).unwrap_or_default();
            (count_breaks(blank).saturating_sub(1), 1 + blank.len())
        }
        Some(other) => (1, 1 + other.len_utf8()),
        None => (0, 1),
    }
}
