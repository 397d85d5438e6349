//! The tree.

use serde_json::Value;

use crate::{SourceMap, Span};

/// One document of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its content.
    pub root: Node,
    /// The bytes from its first to its last character of content.
    pub span: Span,
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// The bytes that it is written with, quotes and a block scalar's header included, anchor and tag not. For a value
    /// that an alias stands for: the bytes of the definition.
    pub span: Span,
    /// How it is written.
    pub style: Style,
    /// The tag that is written before it, such as `tag:yaml.org,2002:str`.
    pub tag: Option<String>,
    /// If an alias (`*name`) stands here: the alias' own bytes.
    pub alias: Option<Span>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// A string.
    String(String),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping in the order in which it is written, merge keys expanded.
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key; numbers and booleans as Kubernetes turns them into strings.
    pub key: String,
    /// The bytes that the key is written with.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In `'`.
    SingleQuoted,
    /// In `"`.
    DoubleQuoted,
    /// After `|`.
    Literal,
    /// After `>`.
    Folded,
    /// A list or a mapping.
    Collection,
}

impl Node {
    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// An element, if this is a list that is long enough.
    pub fn index(&self, index: usize) -> Option<&Node> {
        self.items().get(index)
    }

    /// What a JSON pointer (RFC 6901) such as `/spec/containers/0/image` leads to.
    pub fn pointer(&self, pointer: &str) -> Option<&Node> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut node = self;
        for step in pointer.strip_prefix('/')?.split('/') {
            node = match &node.kind {
                NodeKind::Mapping(_) => node.get(&step.replace("~1", "/").replace("~0", "~"))?,
                NodeKind::Sequence(_) => node.index(step.parse().ok()?)?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(string) => Some(string),
            _ => None,
        }
    }

    /// The entries of a mapping; none if it is not one.
    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            NodeKind::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The elements of a list; none if it is not one.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            NodeKind::Sequence(items) => items,
            _ => &[],
        }
    }

    /// Whether it is a list or a mapping.
    pub fn is_collection(&self) -> bool {
        self.style == Style::Collection
    }

    /// The text of a scalar as it is written, quotes included: what is left of `14.10` when it has become a number.
    pub fn written<'text>(&self, text: &'text str) -> &'text str {
        self.span.of(text)
    }

    /// The value as JSON.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(number) => Value::Number(number.clone()),
            NodeKind::String(string) => Value::String(string.clone()),
            NodeKind::Sequence(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            NodeKind::Mapping(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
            ),
        }
    }

    /// Where the bytes of a string stand in `text`, the text that the tree was made from. Empty for what is no string.
    pub fn source_map(&self, text: &str) -> SourceMap {
        SourceMap::of(self, text)
    }

    /// Where in `text` the byte `decoded_offset` of the string stands. For more than one offset use [`Node::source_map`].
    pub fn source_offset(&self, text: &str, decoded_offset: usize) -> Option<usize> {
        let length = self.as_str()?.len();
        if decoded_offset > length { None } else { self.source_map(text).source(decoded_offset) }
    }
}
