//! Texts and where they stand: a file, or a string inside a document inside a file.

use std::cell::OnceCell;

use scantling_finding::{FilePlace, Place};
use scantling_yaml::{LineIndex, Node, SourceMap};

/// A file's text.
pub(crate) struct File<'text> {
    path: &'text str,
    text: &'text str,
    lines: LineIndex<'text>,
}

impl<'text> File<'text> {
    pub(crate) fn new(path: &'text str, text: &'text str) -> Self {
        Self { path, text, lines: LineIndex::new(text) }
    }

    /// The place of a range of bytes.
    pub(crate) fn place(&self, start: usize, end: usize) -> Place {
        let (line, column) = self.lines.position(start);
        let file =
            FilePlace { path: self.path.to_owned(), line, column, span: Some((start, end.max(start))) };
        Place { file: Some(file), object: None, field: None }
    }
}

/// A text to look through: a whole file, or a decoded string of the text around it.
pub(crate) enum Source<'around> {
    /// A whole file.
    File(&'around File<'around>),
    /// A string of a document.
    Inner {
        /// The decoded string.
        text: &'around str,
        /// The node that holds it.
        node: &'around Node,
        /// The text that the node stands in.
        outer: &'around Source<'around>,
        /// Made when first asked for.
        map: OnceCell<SourceMap>,
    },
}

impl<'around> Source<'around> {
    /// The string of a node that stands in `outer`.
    pub(crate) fn inner(text: &'around str, node: &'around Node, outer: &'around Source<'around>) -> Self {
        Self::Inner { text, node, outer, map: OnceCell::new() }
    }

    pub(crate) fn text(&self) -> &'around str {
        match self {
            Self::File(file) => file.text,
            Self::Inner { text, .. } => text,
        }
    }

    pub(crate) fn file(&self) -> &'around File<'around> {
        match self {
            Self::File(file) => file,
            Self::Inner { outer, .. } => outer.file(),
        }
    }

    /// Where in the file the byte of this text stands.
    fn offset(&self, byte: usize) -> usize {
        match self {
            Self::File(_) => byte,
            Self::Inner { node, outer, map, .. } => {
                let map = map.get_or_init(|| node.source_map(outer.text()));
                outer.offset(map.source(byte).unwrap_or(node.span.start))
            }
        }
    }

    /// The place of a range of this text's bytes in the file.
    pub(crate) fn place(&self, start: usize, end: usize) -> Place {
        // The end is found from the last byte, since after it an escape or an indentation may follow.
        let last = if end > start { self.offset(end - 1) + 1 } else { self.offset(start) };
        self.file().place(self.offset(start), last)
    }
}
