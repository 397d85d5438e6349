//! Splits a stream of JSON by objects, block by block: nothing but one block and the object that it ends in is held.

mod scan;

use std::sync::Arc;

use serde::Deserialize;

use crate::error::Why;
use crate::limits::LIST_DEPTH;
use crate::piece::{Form, Item, ItemKind, ListNumber, Piece};
use crate::sniff::{LOG_END, LOG_START};
use scan::{Scan, blank, string_end};

/// Longest key that is read as one: no field of the API is a tenth as long.
const MAX_KEY: usize = 4096;
/// So many lines between objects are stepped over before a stream counts as broken: warnings of kubectl that came into its output.
const MAX_LINES: u64 = 100;

/// What comes next in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A document, a line of something else, or the end.
    Document,
    /// The rest of a line that is no document.
    Line,
    /// Lines of a log, up to the mark at its end.
    Log,
    /// The first element of a list, or its end.
    FirstElement,
    /// An element of a list.
    Element,
    /// A comma, or the end of the list.
    AfterElement,
    /// The rest of an element that is no object.
    OddElement,
    /// The first key of an object, or its end.
    FirstKey,
    /// A key.
    Key,
    /// The colon, with what the key is.
    Colon { items: bool },
    /// A value.
    Value { items: bool },
    /// The rest of a value.
    RestOfValue,
    /// A comma, or the end of the object.
    AfterValue,
    /// Nothing: the text is broken.
    Nothing,
}

#[derive(Debug)]
enum Frame {
    /// A list of objects.
    List { number: ListNumber, kind: Option<Arc<ItemKind>> },
    /// An object; `offset` is where it begins in the file.
    Object { offset: u64, listed: Option<Listed>, too_large: bool },
}

/// An object that turned out to be a list.
#[derive(Debug)]
struct Listed {
    number: u32,
    /// Its text without its items.
    head: Vec<u8>,
}

/// The state of splitting one file.
#[derive(Debug)]
pub(crate) struct Splitter {
    block: Vec<u8>,
    /// Where the block begins in the file.
    base: u64,
    /// What is before it has been looked at.
    at: usize,
    /// Where the innermost object, or the rest of a list after its items, begins.
    anchor: usize,
    expect: Expect,
    scan: Scan,
    frames: Vec<Frame>,
    items: Vec<Item>,
    lists: u32,
    lines: u64,
    object_bytes: usize,
    pieces: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

impl Splitter {
    pub(crate) fn new(object_bytes: usize) -> Self {
        Self {
            block: Vec::new(),
            base: 0,
            at: 0,
            anchor: 0,
            expect: Expect::Document,
            scan: Scan::default(),
            frames: Vec::new(),
            items: Vec::new(),
            lists: 0,
            lines: 0,
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
        self.expect == Expect::Nothing
    }

    /// The pieces that are complete.
    pub(crate) fn pieces(&mut self) -> Vec<Piece> {
        while self.step() {}
        self.flush();
        std::mem::take(&mut self.pieces)
    }

    /// The pieces that are left when the file is at its end; `cut` is the reason if it was not read to its end.
    pub(crate) fn finish(mut self, cut: Option<Why>) -> Vec<Piece> {
        // A number or a line at the very end has no delimiter.
        self.block.push(b'\n');
        while self.step() {}
        self.flush();
        let is_open = !self.frames.is_empty() || self.expect == Expect::Log;
        if is_open && self.expect != Expect::Nothing {
            self.pieces.push(Piece::Bad { offset: self.base + self.at as u64, why: cut.unwrap_or(Why::Cut) });
        } else if let Some(why) = cut {
            self.pieces.push(Piece::Bad { offset: self.base + self.at as u64, why });
        }
        if self.lines > 0 && self.lines <= MAX_LINES {
            self.pieces.push(Piece::Bad { offset: 0, why: Why::Lines(self.lines) });
        }
        self.end_open_lists();
        self.pieces
    }

    fn end_open_lists(&mut self) {
        while let Some(frame) = self.frames.pop() {
            if let Frame::Object { listed: Some(listed), .. } = frame {
                self.pieces.push(Piece::ListEnd { list: listed.number, kind: item_kind(&listed.head, b"}") });
            }
        }
    }

    /// Hands over what is complete and keeps what is not.
    fn flush(&mut self) {
        let in_object = matches!(self.frames.last(), Some(Frame::Object { .. }));
        if in_object && self.at - self.anchor > self.object_bytes {
            if let Some(Frame::Object { too_large, .. }) = self.frames.last_mut() {
                *too_large = true;
            }
            self.anchor = self.at;
        }
        let keep = if in_object { self.anchor } else { self.at };
        if keep == 0 {
            return;
        }
        let rest = self.block.get(keep..).unwrap_or_default().to_vec();
        let text = std::mem::replace(&mut self.block, rest);
        self.base += keep as u64;
        self.at -= keep;
        self.anchor = self.anchor.saturating_sub(keep);
        if !self.items.is_empty() {
            let items = std::mem::take(&mut self.items);
            self.put(Piece::Items { form: Form::Json, text, items });
        }
    }

    /// Pieces that belong behind items which are not handed over yet wait for them.
    fn put(&mut self, piece: Piece) {
        self.pieces.push(piece);
    }

    fn bad(&mut self, at: usize, why: Why) {
        let offset = self.base + at as u64;
        self.put(Piece::Bad { offset, why });
    }

    fn broken(&mut self, why: &str) -> bool {
        self.bad(self.at, Why::Broken(why.to_owned()));
        self.end_open_lists();
        self.expect = Expect::Nothing;
        true
    }

    /// Goes on by one thing; false if more text is needed.
    fn step(&mut self) -> bool {
        match self.expect {
            Expect::Nothing => {
                self.at = self.block.len();
                false
            }
            Expect::RestOfValue | Expect::OddElement => self.rest(),
            Expect::Line | Expect::Log => self.line(),
            _ => {
                let Some(byte) = self.next_byte() else { return false };
                self.on(byte)
            }
        }
    }

    fn next_byte(&mut self) -> Option<u8> {
        let rest = self.block.get(self.at..)?;
        let found = rest.iter().position(|byte| !blank(*byte));
        self.at += found.unwrap_or(rest.len());
        self.block.get(self.at).copied()
    }

    fn on(&mut self, byte: u8) -> bool {
        match (self.expect, byte) {
            (Expect::Document | Expect::FirstElement | Expect::Element, b'{') => self.open_object(),
            (Expect::Document, b'[') => {
                self.at += 1;
                self.frames.push(Frame::List { number: None, kind: None });
                self.expect = Expect::FirstElement;
            }
            (Expect::Document, 0xef | 0xbb | 0xbf) if self.base + (self.at as u64) < 3 => self.at += 1,
            (Expect::Document, _) => self.expect = Expect::Line,
            (Expect::FirstElement | Expect::AfterElement, b']') => self.close_list(),
            (Expect::FirstElement | Expect::Element, b']' | b'}' | b',' | b':') => {
                return self.broken("an element of a list is missing");
            }
            (Expect::FirstElement | Expect::Element, _) => {
                self.bad(self.at, Why::NotAnObject("an item that is no mapping".to_owned()));
                self.expect = Expect::OddElement;
            }
            (Expect::AfterElement, b',') => {
                self.at += 1;
                self.expect = Expect::Element;
            }
            (Expect::FirstKey | Expect::AfterValue, b'}') => self.close_object(),
            (Expect::FirstKey | Expect::Key, b'"') => return self.key(),
            (Expect::Colon { items }, b':') => {
                self.at += 1;
                self.expect = Expect::Value { items };
            }
            (Expect::Value { items: true }, b'[') if self.opens_list() => self.open_list(),
            (Expect::Value { .. }, b']' | b'}' | b',' | b':') => return self.broken("a value is missing"),
            (Expect::Value { .. }, _) => self.expect = Expect::RestOfValue,
            (Expect::AfterValue, b',') => {
                self.at += 1;
                self.expect = Expect::Key;
            }
            (_, byte) => {
                let shown = char::from(byte);
                return self
                    .broken(&format!("`{}` stands where JSON does not allow it", shown.escape_debug()));
            }
        }
        true
    }

    fn open_object(&mut self) {
        let offset = self.base + self.at as u64;
        self.frames.push(Frame::Object { offset, listed: None, too_large: false });
        self.anchor = self.at;
        self.at += 1;
        self.expect = Expect::FirstKey;
    }

    fn key(&mut self) -> bool {
        let Some(rest) = self.block.get(self.at + 1..) else { return false };
        match string_end(rest) {
            Some(length) => {
                let items = rest.get(..length) == Some(b"items");
                self.at += length + 2;
                self.expect = Expect::Colon { items };
                true
            }
            None if rest.len() > MAX_KEY => self.broken("a key does not end"),
            None => false,
        }
    }

    /// Is the value that begins here a list of objects? Not if the object has said that it is something else.
    fn opens_list(&self) -> bool {
        let Some(Frame::Object { listed: None, too_large: false, .. }) = self.frames.last() else {
            return false;
        };
        let depth = self.frames.iter().filter(|frame| matches!(frame, Frame::List { .. })).count();
        let head = self.block.get(self.anchor..self.at).unwrap_or_default();
        let kind = head_of(head, b"null}").and_then(|head| head.kind);
        depth < LIST_DEPTH && kind.is_none_or(|kind| kind.ends_with("List"))
    }

    fn open_list(&mut self) {
        let number = self.lists;
        self.lists += 1;
        let mut head = self.block.get(self.anchor..self.at).unwrap_or_default().to_vec();
        head.extend_from_slice(b"null");
        let kind = item_kind(&head, b"}").map(Arc::new);
        if let Some(Frame::Object { listed, .. }) = self.frames.last_mut() {
            *listed = Some(Listed { number, head });
        }
        self.frames.push(Frame::List { number: Some(number), kind });
        self.at += 1;
        self.expect = Expect::FirstElement;
    }

    fn close_list(&mut self) {
        self.at += 1;
        self.frames.pop();
        self.anchor = self.at;
        self.expect = if self.frames.is_empty() { Expect::Document } else { Expect::AfterValue };
    }

    fn close_object(&mut self) {
        self.at += 1;
        let Some(Frame::Object { offset, listed, too_large }) = self.frames.pop() else { return };
        if let Some(listed) = listed {
            let mut head = listed.head;
            head.extend_from_slice(self.block.get(self.anchor..self.at).unwrap_or_default());
            // Its items go first.
            self.hand_over_items();
            self.put(Piece::ListEnd { list: listed.number, kind: item_kind(&head, b"") });
        } else if too_large || self.at - self.anchor > self.object_bytes {
            self.put(Piece::Bad { offset, why: Why::TooLarge(self.object_bytes) });
        } else {
            let (list, kind) = match self.frames.last() {
                Some(Frame::List { number, kind }) => (*number, kind.clone()),
                _ => (None, None),
            };
            self.items.push(Item { range: self.anchor..self.at, offset, list, kind });
        }
        self.expect = if self.frames.is_empty() { Expect::Document } else { Expect::AfterElement };
        self.anchor = self.at;
    }

    fn hand_over_items(&mut self) {
        if self.items.is_empty() {
            return;
        }
        let items = std::mem::take(&mut self.items);
        let end = items.last().map_or(0, |item| item.range.end);
        let text = self.block.get(..end).unwrap_or_default().to_vec();
        self.put(Piece::Items { form: Form::Json, text, items });
    }

    /// The rest of a value, up to its end.
    fn rest(&mut self) -> bool {
        let rest = self.block.get(self.at..).unwrap_or_default();
        let (seen, ended) = self.scan.run(rest);
        self.at += seen;
        if ended {
            self.scan = Scan::default();
            self.expect =
                if self.expect == Expect::OddElement { Expect::AfterElement } else { Expect::AfterValue };
        }
        ended
    }

    /// A line that is no document, or one of a log.
    fn line(&mut self) -> bool {
        let rest = self.block.get(self.at..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', rest) else {
            // Of a long line of a log only its beginning counts, and that has been seen.
            if self.expect == Expect::Log && rest.len() > MAX_KEY {
                self.at = self.block.len() - 1;
                if let Some(last) = self.block.last_mut() {
                    *last = b' ';
                }
            } else if rest.len() > self.object_bytes {
                return self.broken("a line does not end");
            }
            return false;
        };
        let line = rest.get(..end).unwrap_or_default();
        if self.expect == Expect::Log {
            if line.starts_with(LOG_END) {
                self.expect = Expect::Document;
            }
        } else if line.starts_with(LOG_START) {
            self.expect = Expect::Log;
        } else {
            self.expect = Expect::Document;
            // Where documents are kept apart as in YAML.
            self.lines += u64::from(!line.starts_with(b"---") && !line.starts_with(LOG_END));
            if self.lines > MAX_LINES {
                return self.broken("most lines are no JSON");
            }
        }
        self.at += end + 1;
        true
    }
}

/// What an object says of itself, from its beginning and what is needed to end it.
fn head_of(begin: &[u8], end: &[u8]) -> Option<Head> {
    serde_json::from_slice(&[begin, end].concat()).ok()
}

/// What a list says about its items.
fn item_kind(begin: &[u8], end: &[u8]) -> Option<ItemKind> {
    let head = head_of(begin, end)?;
    ItemKind::of_list(&head.api_version.unwrap_or_default(), &head.kind?)
}
