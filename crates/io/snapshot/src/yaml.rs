//! Splits a stream of YAML by documents, and the lists in them by items, by looking at how lines begin.
//!
//! That is sound for block style: what belongs to a document or an item is indented more than it, strings included. Lists in flow style
//! stay one item. An alias that leads out of its item makes that item malformed.

use std::sync::Arc;

use serde_json::Value;

use crate::error::Why;
use crate::piece::{Form, Item, ItemKind, Piece};
use crate::sniff::{LOG_END, LOG_START};

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a document, outside of its items.
    Document,
    /// After `items:`.
    BeforeItems,
    /// In items that begin after so many blanks.
    Items(usize),
    /// In the log of a container.
    Log,
    /// The text is broken.
    Over,
}

/// The list that a document turned out to be.
#[derive(Debug)]
struct Listed {
    number: u32,
    /// The document without its items.
    head: Vec<u8>,
    kind: Option<Arc<ItemKind>>,
}

/// The state of splitting one file.
#[derive(Debug)]
pub(crate) struct Splitter {
    block: Vec<u8>,
    /// Where the block begins in the file.
    base: u64,
    /// What is before it has been looked at.
    at: usize,
    /// Where the document or the item begins.
    anchor: usize,
    state: State,
    listed: Option<Listed>,
    too_large: bool,
    items: Vec<Item>,
    lists: u32,
    object_bytes: usize,
    pieces: Vec<Piece>,
}

impl Splitter {
    pub(crate) fn new(object_bytes: usize) -> Self {
        Self {
            block: Vec::new(),
            base: 0,
            at: 0,
            anchor: 0,
            state: State::Document,
            listed: None,
            too_large: false,
            items: Vec::new(),
            lists: 0,
            object_bytes,
            pieces: Vec::new(),
        }
    }

    /// Where text that was read is to be put.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        &mut self.block
    }

    /// Is the text broken, so that nothing more will come of it?
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The pieces that are complete.
    pub(crate) fn pieces(&mut self) -> Vec<Piece> {
        self.lines();
        self.flush();
        std::mem::take(&mut self.pieces)
    }

    /// The pieces that are left when the file is at its end; `cut` is the reason if it was not read to its end.
    pub(crate) fn finish(mut self, cut: Option<Why>) -> Vec<Piece> {
        let ends_in_line = self.block.last().is_some_and(|byte| *byte != b'\n');
        self.block.push(b'\n');
        self.lines();
        // Tools write the kind of a list behind its items. An item that ends the file without that may lack half of itself.
        let lacks_kind = self
            .listed
            .as_ref()
            .is_some_and(|listed| listed.kind.is_none() && head(&listed.head).1.is_empty());
        let in_items = matches!(self.state, State::Items(_) | State::BeforeItems);
        if self.state != State::Over
            && (cut.is_some() || (in_items && (lacks_kind || ends_in_line)) || self.state == State::Log)
        {
            let at = self.base + self.anchor as u64;
            self.pieces.push(Piece::Bad { offset: at, why: cut.unwrap_or(Why::Cut) });
            self.anchor = self.block.len();
            self.state = State::Document;
        }
        self.end_document(self.block.len());
        self.at = self.block.len();
        self.anchor = self.at;
        self.flush();
        self.pieces
    }

    fn lines(&mut self) {
        while self.state != State::Over {
            let rest = self.block.get(self.at..).unwrap_or_default();
            let Some(length) = memchr::memchr(b'\n', rest) else {
                if rest.len() > self.object_bytes {
                    self.bad(self.at, Why::Broken("a line does not end".to_owned()));
                    self.state = State::Over;
                }
                break;
            };
            let next = self.at + length + 1;
            self.line(self.at, next);
            self.at = next;
        }
        if self.state == State::Over {
            self.at = self.block.len();
            self.anchor = self.at;
        }
    }

    /// One line, `from..to` with its end.
    fn line(&mut self, from: usize, to: usize) {
        let line = self.block.get(from..to).unwrap_or_default();
        if self.state == State::Log {
            if line.starts_with(LOG_END) {
                self.state = State::Document;
            }
            self.anchor = to;
            return;
        }
        let first = line.first().copied().unwrap_or(b'\n');
        if first == b'-' || first == b'.' || first == b'=' {
            let marks = |mark: &[u8]| {
                line.strip_prefix(mark).is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
            };
            if marks(b"---") || marks(b"...") {
                // What follows the mark on its line belongs to the document.
                let inline = line.get(3..).unwrap_or_default().trim_ascii();
                let is_empty = inline.is_empty() || inline.starts_with(b"#") || marks(b"...");
                self.end_document(from);
                self.anchor = if is_empty { to } else { from };
                return;
            }
            if line.starts_with(LOG_START) {
                self.end_document(from);
                self.state = State::Log;
                self.anchor = to;
                return;
            }
        }
        match self.state {
            State::Document => self.in_document(from, to),
            State::BeforeItems => self.before_items(from, to),
            State::Items(indent) => self.in_items(indent, from, to),
            State::Log | State::Over => {}
        }
    }

    fn in_document(&mut self, from: usize, to: usize) {
        let line = self.block.get(from..to).unwrap_or_default();
        if let Some(listed) = &mut self.listed {
            if listed.head.len() + line.len() > self.object_bytes {
                self.bad(from, Why::Broken("what a list says of itself does not end".to_owned()));
                self.state = State::Over;
                return;
            }
            listed.head.extend_from_slice(line);
            self.anchor = to;
            return;
        }
        let rest = line.strip_prefix(b"items:").or_else(|| line.strip_prefix(b"\"items\":"));
        let begins = rest.is_some_and(|rest| {
            let rest = rest.trim_ascii();
            rest.is_empty() || rest.starts_with(b"#")
        });
        if !begins || self.too_large {
            return;
        }
        let before = self.block.get(self.anchor..from).unwrap_or_default();
        let (api_version, kind) = head(before);
        if !kind.is_empty() && !kind.ends_with("List") {
            return;
        }
        let number = self.lists;
        self.lists += 1;
        let kind = ItemKind::of_list(&api_version, &kind).map(Arc::new);
        self.listed = Some(Listed { number, head: before.to_vec(), kind });
        self.state = State::BeforeItems;
        self.anchor = to;
    }

    fn before_items(&mut self, from: usize, to: usize) {
        let line = self.block.get(from..to).unwrap_or_default();
        match beginning(line) {
            None => self.anchor = to,
            Some((indent, true)) => {
                self.state = State::Items(indent);
                self.anchor = from;
            }
            Some((_, false)) => {
                self.state = State::Document;
                self.in_document(from, to);
            }
        }
    }

    fn in_items(&mut self, own: usize, from: usize, to: usize) {
        let line = self.block.get(from..to).unwrap_or_default();
        match beginning(line) {
            Some((indent, true)) if indent == own => {
                self.end_item(from);
                self.anchor = from;
            }
            Some((indent, _)) if indent <= own => {
                self.end_item(from);
                self.state = State::Document;
                self.anchor = from;
                self.in_document(from, to);
            }
            _ => {}
        }
    }

    fn end_item(&mut self, end: usize) {
        let (list, kind) = match &self.listed {
            Some(listed) => (Some(listed.number), listed.kind.clone()),
            None => (None, None),
        };
        if self.too_large || end - self.anchor > self.object_bytes {
            self.bad(self.anchor, Why::TooLarge(self.object_bytes));
            self.too_large = false;
        } else {
            let offset = self.base + self.anchor as u64;
            self.items.push(Item { range: self.anchor..end, offset, list, kind });
        }
    }

    fn end_document(&mut self, end: usize) {
        match self.state {
            State::Items(_) => self.end_item(end),
            State::Document if self.listed.is_none() => {
                let text = self.block.get(self.anchor..end).unwrap_or_default();
                let says_something = text.split(|byte| *byte == b'\n').any(|line| beginning(line).is_some());
                if says_something || self.too_large {
                    self.end_item(end);
                }
            }
            _ => {}
        }
        if let Some(listed) = self.listed.take() {
            self.hand_over_items();
            let (api_version, kind) = head(&listed.head);
            self.pieces
                .push(Piece::ListEnd { list: listed.number, kind: ItemKind::of_list(&api_version, &kind) });
        }
        if self.state != State::Over {
            self.state = State::Document;
        }
        self.anchor = end;
    }

    fn hand_over_items(&mut self) {
        if self.items.is_empty() {
            return;
        }
        let items = std::mem::take(&mut self.items);
        let end = items.last().map_or(0, |item| item.range.end);
        let text = self.block.get(..end).unwrap_or_default().to_vec();
        self.pieces.push(Piece::Items { form: Form::Yaml, text, items });
    }

    /// Hands over what is complete and keeps what is not.
    fn flush(&mut self) {
        if self.at.saturating_sub(self.anchor) > self.object_bytes {
            self.too_large = true;
            self.anchor = self.at;
        }
        let keep = self.anchor;
        if keep == 0 {
            return;
        }
        let rest = self.block.get(keep..).unwrap_or_default().to_vec();
        let text = std::mem::replace(&mut self.block, rest);
        self.base += keep as u64;
        self.at -= keep;
        self.anchor = 0;
        if !self.items.is_empty() {
            let items = std::mem::take(&mut self.items);
            self.pieces.push(Piece::Items { form: Form::Yaml, text, items });
        }
    }

    fn bad(&mut self, at: usize, why: Why) {
        self.pieces.push(Piece::Bad { offset: self.base + at as u64, why });
    }
}

/// How many blanks a line begins with and whether a list's item begins it; none for empty lines and comments.
fn beginning(line: &[u8]) -> Option<(usize, bool)> {
    let indent = line.iter().take_while(|byte| **byte == b' ').count();
    let rest = line.get(indent..)?.trim_ascii_end();
    match rest.first()? {
        b'#' => None,
        b'-' => Some((indent, rest.get(1).is_none_or(|byte| *byte == b' '))),
        _ => Some((indent, false)),
    }
}

/// `apiVersion` and `kind` of the part of a document that is not its items; empty where they are not said.
fn head(text: &[u8]) -> (String, String) {
    let document = scantling_yaml::parse(text).ok().and_then(|documents| documents.into_iter().next());
    let root = document.map(|document| document.root.to_json()).unwrap_or_default();
    let text = |name: &str| root.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}
