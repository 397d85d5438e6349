//! JSON to trees: the part of the API's input that is not YAML. Spans, limits and duplicate keys as in YAML.

use serde_json::Number;

use crate::build::Parsed;
use crate::limits::{MAX_DEPTH, MAX_NODES};
use crate::path::{push_index, push_key};
use crate::resolve::from_float;
use crate::{Document, Entry, Node, NodeKind, Span, Style, YamlError};

/// Reads a stream of JSON values.
pub(crate) fn parse(text: &str) -> Result<Parsed, YamlError> {
    let mut reader =
        Reader { text, bytes: text.as_bytes(), at: 0, nodes: 0, path: Vec::new(), parsed: Parsed::default() };
    reader.stream().map_err(|error| error.located(text))?;
    Ok(reader.parsed)
}

enum Step {
    Key(String),
    Index(usize),
}

struct Reader<'text> {
    text: &'text str,
    bytes: &'text [u8],
    at: usize,
    nodes: usize,
    path: Vec<Step>,
    parsed: Parsed,
}

impl Reader<'_> {
    fn stream(&mut self) -> Result<(), YamlError> {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        self.blank();
        while self.at < self.bytes.len() {
            let root = self.value()?;
            let span = root.span;
            self.parsed.documents.push(Document { root, span });
            self.blank();
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error(&self, message: &str) -> YamlError {
        YamlError::at(Span::new(self.at, self.at), message)
    }

    fn node(&mut self, kind: NodeKind, start: usize, style: Style) -> Result<Node, YamlError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.error("the text holds too many values"));
        }
        Ok(Node { kind, span: Span::new(start, self.at), style, tag: None, alias: None })
    }

    fn value(&mut self) -> Result<Node, YamlError> {
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.mapping(),
            Some(b'[') => self.sequence(),
            Some(b'"') => {
                let string = self.string()?;
                self.node(NodeKind::String(string), start, Style::DoubleQuoted)
            }
            Some(b't') => self.word("true", NodeKind::Bool(true)),
            Some(b'f') => self.word("false", NodeKind::Bool(false)),
            Some(b'n') => self.word("null", NodeKind::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error("a JSON value is expected here")),
        }
    }

    fn word(&mut self, word: &str, kind: NodeKind) -> Result<Node, YamlError> {
        let start = self.at;
        if !self.text.get(start..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error("a JSON value is expected here"));
        }
        self.at += word.len();
        self.node(kind, start, Style::Plain)
    }

    fn number(&mut self) -> Result<Node, YamlError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let written = self.text.get(start..self.at).unwrap_or_default();
        let number: Option<Number> = serde_json::from_str(written).ok();
        let number = match number {
            // Whole numbers are integers whether they came from YAML or JSON. `serde_json` reads the last digit of others
            // carelessly.
            Some(number) if number.is_f64() => written.parse().ok().and_then(from_float),
            other => other,
        };
        let Some(number) = number else {
            self.at = start;
            return Err(self.error("this is not a JSON number"));
        };
        self.node(NodeKind::Number(number), start, Style::Plain)
    }

    /// A string; the reader stands at its opening quote.
    fn string(&mut self) -> Result<String, YamlError> {
        let start = self.at;
        self.at += 1;
        let mut decoded = String::new();
        let mut copied = self.at;
        loop {
            match self.peek() {
                None => {
                    self.at = start;
                    return Err(self.error("the string has no closing quote"));
                }
                Some(b'"') => {
                    decoded.push_str(self.text.get(copied..self.at).unwrap_or_default());
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => {
                    decoded.push_str(self.text.get(copied..self.at).unwrap_or_default());
                    decoded.push(self.escape()?);
                    copied = self.at;
                }
                Some(0..=0x1f) => {
                    return Err(self.error("a line break or control character stands in a JSON string"));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// An escape; the reader stands at the backslash.
    fn escape(&mut self) -> Result<char, YamlError> {
        let character = match self.bytes.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let (character, length) = unicode_escape(self.text.get(self.at..).unwrap_or_default())
                    .ok_or_else(|| self.error("this is not a JSON escape"))?;
                self.at += length;
                return Ok(character);
            }
            _ => return Err(self.error("this is not a JSON escape")),
        };
        self.at += 2;
        Ok(character)
    }

    fn deeper(&self) -> Result<(), YamlError> {
        if self.path.len() >= MAX_DEPTH {
            return Err(self.error(&format!("collections are nested more than {MAX_DEPTH} deep")));
        }
        Ok(())
    }

    fn sequence(&mut self) -> Result<Node, YamlError> {
        self.deeper()?;
        let start = self.at;
        self.at += 1;
        let mut items = Vec::new();
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return self.node(NodeKind::Sequence(items), start, Style::Collection);
        }
        loop {
            self.path.push(Step::Index(items.len()));
            items.push(self.value()?);
            self.path.pop();
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return self.node(NodeKind::Sequence(items), start, Style::Collection);
                }
                _ => return Err(self.error("a comma or ] is expected here")),
            }
            self.blank();
        }
    }

    fn mapping(&mut self) -> Result<Node, YamlError> {
        self.deeper()?;
        let start = self.at;
        self.at += 1;
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = std::collections::HashMap::new();
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return self.node(NodeKind::Mapping(entries), start, Style::Collection);
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("a key in double quotes is expected here"));
            }
            let key_start = self.at;
            let key = self.string()?;
            let key_span = Span::new(key_start, self.at);
            self.blank();
            if self.peek() != Some(b':') {
                return Err(self.error("a colon is expected here"));
            }
            self.at += 1;
            self.blank();
            self.path.push(Step::Key(key.clone()));
            let value = self.value()?;
            if let Some(&first) = seen.get(&key) {
                let message = format!("the key {key:?} is given twice in one mapping");
                let error = YamlError {
                    first: Some(first),
                    path: Some(self.path()),
                    ..YamlError::at(key_span, message)
                };
                self.parsed.duplicates.push(error);
            } else {
                seen.insert(key.clone(), key_span);
                entries.push(Entry { key, key_span, value });
            }
            self.path.pop();
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return self.node(NodeKind::Mapping(entries), start, Style::Collection);
                }
                _ => return Err(self.error("a comma or } is expected here")),
            }
            self.blank();
        }
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) => push_key(&mut path, key),
                Step::Index(index) => push_index(&mut path, *index),
            }
        }
        path
    }
}

/// The character of `\uXXXX`, or of two of them that make a surrogate pair, and the bytes it is written with. A lone
/// surrogate is U+FFFD, as in Go.
pub(crate) fn unicode_escape(text: &str) -> Option<(char, usize)> {
    let first = hex(text.strip_prefix("\\u")?)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = text.get(6..).and_then(|rest| rest.strip_prefix("\\u")).and_then(hex);
    match (first, second) {
        (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
            let character = char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00))?;
            Some((character, 12))
        }
        _ => Some(('\u{fffd}', 6)),
    }
}

fn hex(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}
