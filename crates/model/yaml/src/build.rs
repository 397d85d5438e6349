//! Events of the YAML parser to trees.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use crate::input::refused_character;
use crate::limits::{MAX_ALIAS_BYTES, MAX_ALIAS_NODES, MAX_DEPTH, MAX_NODES};
use crate::path::{push_index, push_key};
use crate::resolve::{self, Scalar};
use crate::span::CharIndex;
use crate::{Document, Entry, Node, NodeKind, Span, Style, YamlError};

/// What a text holds.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) documents: Vec<Document>,
    /// Keys that are given twice; their lines are still to be found.
    pub(crate) duplicates: Vec<YamlError>,
}

/// The tag prefix of YAML's own types.
const YAML: &str = "tag:yaml.org,2002:";

/// Reads a YAML stream.
pub(crate) fn parse(text: &str) -> Result<Parsed, YamlError> {
    parse_stream(text).map_err(|error| error.located(text))
}

fn parse_stream(text: &str) -> Result<Parsed, YamlError> {
    if let Some(error) = refused_character(text) {
        return Err(error);
    }
    let mut builder = Builder {
        text,
        chars: CharIndex::new(text),
        stack: Vec::new(),
        anchors: BTreeMap::new(),
        last_end: 0,
        nodes: 0,
        alias_nodes: 0,
        alias_bytes: 0,
        root: None,
        parsed: Parsed::default(),
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| builder.syntax(&error))?;
        let span = Span::new(
            builder.chars.byte(text, span.start.index()),
            builder.chars.byte(text, span.end.index()),
        );
        builder.event(event, span)?;
    }
    Ok(builder.parsed)
}

/// A node and what it costs to copy it.
#[derive(Debug)]
struct Sized {
    node: Node,
    nodes: usize,
    bytes: usize,
    height: usize,
}

impl Sized {
    fn scalar(node: Node) -> Self {
        let bytes = node.as_str().map_or(0, str::len);
        Self { node, nodes: 1, bytes, height: 0 }
    }
}

/// A collection that is being read.
struct Frame {
    content: Content,
    start: usize,
    anchor: usize,
    tag: Option<String>,
    nodes: usize,
    bytes: usize,
    height: usize,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping(Mapping),
}

#[derive(Default)]
struct Mapping {
    entries: Vec<Entry>,
    /// For every entry: whether a merge key brought it.
    merged: Vec<bool>,
    /// Where a key stands among the entries, once there are many.
    index: HashMap<String, usize>,
    key: Option<Key>,
}

struct Key {
    text: String,
    span: Span,
    merge: bool,
}

/// From how many entries on a mapping is indexed.
const INDEXED: usize = 24;

impl Mapping {
    fn find(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            self.entries.iter().position(|entry| entry.key == key)
        } else {
            self.index.get(key).copied()
        }
    }

    fn push(&mut self, entry: Entry, merged: bool) {
        if !self.index.is_empty() {
            self.index.insert(entry.key.clone(), self.entries.len());
        } else if self.entries.len() >= INDEXED {
            self.index = self.entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
            self.index.insert(entry.key.clone(), self.entries.len());
        }
        self.entries.push(entry);
        self.merged.push(merged);
    }

    /// Adds what a merge key brings. As go-yaml v2 has it, the later of a key and a merge wins.
    fn merge(&mut self, entries: &[Entry]) {
        for entry in entries {
            match self.find(&entry.key) {
                Some(at) => {
                    if let (Some(old), Some(merged)) = (self.entries.get_mut(at), self.merged.get_mut(at)) {
                        *old = entry.clone();
                        *merged = true;
                    }
                }
                None => self.push(entry.clone(), true),
            }
        }
    }
}

struct Builder<'text> {
    text: &'text str,
    chars: CharIndex,
    stack: Vec<Frame>,
    anchors: BTreeMap<usize, Option<Sized>>,
    /// The byte after the last scalar, alias or flow indicator.
    last_end: usize,
    nodes: usize,
    alias_nodes: usize,
    alias_bytes: usize,
    root: Option<Node>,
    parsed: Parsed,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
            Event::DocumentStart(_) => {
                self.anchors.clear();
                self.last_end = self.last_end.max(span.end);
            }
            Event::DocumentEnd => {
                if let Some(root) = self.root.take() {
                    let empty = root.kind == NodeKind::Null && root.span.is_empty() && root.tag.is_none();
                    if !empty {
                        let span = root.span;
                        self.parsed.documents.push(Document { root, span });
                    }
                }
                self.last_end = self.last_end.max(span.end);
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(Content::Sequence(Vec::new()), span, anchor, tag.as_deref())?;
            }
            Event::MappingStart(anchor, tag) => {
                self.open(Content::Mapping(Mapping::default()), span, anchor, tag.as_deref())?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
            Event::Scalar(value, style, anchor, tag) => {
                let node = self.scalar(value.into_owned(), style, span, tag.as_deref())?;
                if anchor != 0 {
                    self.anchors.insert(anchor, Some(Sized::scalar(node.clone())));
                }
                self.add(Sized::scalar(node))?;
            }
            Event::Alias(anchor) => {
                self.last_end = span.end;
                let copy = self.copy(anchor, span)?;
                self.add(copy)?;
            }
        }
        Ok(())
    }

    /// Begins a collection.
    fn open(
        &mut self,
        content: Content,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), YamlError> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(YamlError::at(span, format!("collections are nested more than {MAX_DEPTH} deep")));
        }
        if self.expects_key() {
            return Err(YamlError::at(span, "a list or a mapping stands where a key is expected")
                .with_hint("quote the key, or a template expression such as {{ … }}, to make it a string"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        let tag = tag.map(tag_text);
        self.last_end = self.last_end.max(span.end);
        self.stack.push(Frame { content, start: span.start, anchor, tag, nodes: 1, bytes: 0, height: 1 });
        Ok(())
    }

    /// Ends the innermost collection.
    fn close(&mut self, span: Span) -> Result<(), YamlError> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        // A block collection ends where the parser noticed it: after blank lines and comments that follow it.
        let end = if span.is_empty() { self.last_end.max(frame.start) } else { span.end };
        self.last_end = self.last_end.max(end);
        let kind = match frame.content {
            Content::Sequence(items) => NodeKind::Sequence(items),
            Content::Mapping(mapping) => NodeKind::Mapping(mapping.entries),
        };
        let node = Node {
            kind,
            span: Span::new(frame.start, end),
            style: Style::Collection,
            tag: frame.tag,
            alias: None,
        };
        if frame.anchor != 0 {
            let copy =
                Sized { node: node.clone(), nodes: frame.nodes, bytes: frame.bytes, height: frame.height };
            self.anchors.insert(frame.anchor, Some(copy));
        }
        self.add(Sized { node, nodes: frame.nodes, bytes: frame.bytes, height: frame.height })
    }

    /// A copy of what an anchor names.
    fn copy(&mut self, anchor: usize, span: Span) -> Result<Sized, YamlError> {
        let Some(Some(source)) = self.anchors.get(&anchor) else {
            return Err(YamlError::at(
                span,
                format!("{} stands inside the value that it names", span.of(self.text)),
            ));
        };
        self.alias_nodes += source.nodes;
        self.alias_bytes += source.bytes;
        self.nodes += source.nodes;
        if self.alias_nodes > MAX_ALIAS_NODES || self.alias_bytes > MAX_ALIAS_BYTES {
            let message =
                format!("aliases expand to more than {MAX_ALIAS_NODES} values or {MAX_ALIAS_BYTES} bytes");
            return Err(YamlError::at(span, message));
        }
        if self.stack.len() + source.height > MAX_DEPTH {
            return Err(YamlError::at(span, format!("collections are nested more than {MAX_DEPTH} deep")));
        }
        let node = Node { alias: Some(span), ..source.node.clone() };
        Ok(Sized { node, nodes: source.nodes, bytes: source.bytes, height: source.height })
    }

    fn expects_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { content: Content::Mapping(mapping), .. }) if mapping.key.is_none())
    }

    /// Gives a finished node to the collection around it.
    fn add(&mut self, sized: Sized) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(YamlError::at(
                sized.node.span,
                format!("the text holds more than {MAX_NODES} values"),
            ));
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(sized.node);
            return Ok(());
        };
        frame.nodes += sized.nodes;
        frame.bytes += sized.bytes;
        frame.height = frame.height.max(sized.height + 1);
        match &mut frame.content {
            Content::Sequence(items) => items.push(sized.node),
            Content::Mapping(mapping) => match mapping.key.take() {
                None => mapping.key = Some(key(self.text, sized.node)?),
                Some(key) if key.merge => {
                    let node = sized.node;
                    match &node.kind {
                        NodeKind::Mapping(entries) => mapping.merge(entries),
                        NodeKind::Sequence(items)
                            if items.iter().all(|item| matches!(item.kind, NodeKind::Mapping(_))) =>
                        {
                            // The earlier one wins, hence it is merged later.
                            for item in items.iter().rev() {
                                mapping.merge(item.entries());
                            }
                        }
                        _ => {
                            let message = "a merge key (<<) needs a mapping or a list of mappings";
                            return Err(YamlError::at(node.span, message));
                        }
                    }
                }
                Some(key) => {
                    let entry = Entry { key: key.text, key_span: key.span, value: sized.node };
                    match mapping.find(&entry.key) {
                        None => mapping.push(entry, false),
                        Some(at) if mapping.merged.get(at) == Some(&true) => {
                            if let (Some(old), Some(merged)) =
                                (mapping.entries.get_mut(at), mapping.merged.get_mut(at))
                            {
                                *old = entry;
                                *merged = false;
                            }
                        }
                        Some(at) => {
                            let first = mapping.entries.get(at).map(|entry| entry.key_span);
                            let message = format!("the key {:?} is given twice in one mapping", entry.key);
                            let mut path = self.path();
                            push_key(&mut path, &entry.key);
                            let error = YamlError::at(entry.key_span, message);
                            self.parsed.duplicates.push(YamlError { first, path: Some(path), ..error });
                        }
                    }
                }
            },
        }
        Ok(())
    }

    /// The path of the innermost open collection.
    fn path(&self) -> String {
        let mut path = String::new();
        let (Some(_), outer) = (self.stack.last(), self.stack.len().saturating_sub(1)) else { return path };
        for frame in self.stack.iter().take(outer) {
            match &frame.content {
                Content::Sequence(items) => push_index(&mut path, items.len()),
                Content::Mapping(mapping) => {
                    if let Some(key) = &mapping.key {
                        push_key(&mut path, &key.text);
                    }
                }
            }
        }
        path
    }

    fn scalar(
        &mut self,
        value: String,
        style: ScalarStyle,
        span: Span,
        tag: Option<&Tag>,
    ) -> Result<Node, YamlError> {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::SingleQuoted,
            ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
            ScalarStyle::Literal => Style::Literal,
            ScalarStyle::Folded => Style::Folded,
        };
        let span = match style {
            Style::Literal | Style::Folded => self.block_span(span),
            Style::Plain if value.is_empty() => self.empty_span(span),
            _ => span,
        };
        self.last_end = self.last_end.max(span.end);
        let tag = tag.map(tag_text);
        let scalar = match &tag {
            None if style == Style::Plain => resolve::plain(&value),
            None => Scalar::String,
            Some(tag) => match tag.strip_prefix(YAML) {
                Some("binary") => {
                    return Err(YamlError::at(span, "the tag !!binary is not supported")
                        .with_hint("use the object's binaryData, or data with base64, as the kind demands"));
                }
                Some(kind) => resolve::tagged(kind, &value)
                    .map_err(|wanted| YamlError::at(span, format!("the tag !!{kind} demands {wanted}")))?,
                None => Scalar::String,
            },
        };
        let kind = match scalar {
            Scalar::Null => NodeKind::Null,
            Scalar::Bool(value) => NodeKind::Bool(value),
            Scalar::Number(number) => NodeKind::Number(number),
            Scalar::String => NodeKind::String(value),
            Scalar::NotJson => {
                return Err(YamlError::at(span, format!("{value} is a number that JSON cannot hold"))
                    .with_hint("quote it if it is meant as text"));
            }
        };
        Ok(Node { kind, span, style, tag, alias: None })
    }

    /// The span of a block scalar from its header to the end of its last line. The parser's begins with the content.
    fn block_span(&self, content: Span) -> Span {
        let between = self.text.get(self.last_end..content.start).unwrap_or_default();
        let start = header_offset(between).map_or(content.start, |offset| self.last_end + offset);
        // The parser's end lies after the indentation of what follows.
        let body = self.text.get(start..content.end).unwrap_or_default();
        let end = match body.rfind('\n') {
            Some(at) if body.get(at + 1..).is_some_and(|rest| rest.bytes().all(|byte| byte == b' ')) => {
                start + at + 1
            }
            _ => start + body.len(),
        };
        Span::new(start, end)
    }

    /// The place right after the indicator (`:`, `-`, a tag, an anchor) of a value that is not written.
    fn empty_span(&self, noticed: Span) -> Span {
        let between = self.text.get(self.last_end..noticed.start).unwrap_or_default();
        let comment = between.match_indices('#').map(|(at, _)| at).find(|at| {
            let before = between.get(..*at).unwrap_or_default();
            before.is_empty() || before.ends_with([' ', '\t', '\n'])
        });
        let indicators = between.get(..comment.unwrap_or(between.len())).unwrap_or_default();
        let at = self.last_end + indicators.trim_end().len();
        Span::new(at, at)
    }

    fn syntax(&self, error: &ScanError) -> YamlError {
        let at = self.chars.byte(self.text, error.marker().index());
        let line_start = self.text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let line = self.text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or_default();
        let result = YamlError::at(Span::new(at, at), error.info().to_owned());
        if indent.contains('\t') {
            result.with_hint("the line is indented with a tab; YAML takes only spaces")
        } else if line.contains("{{") {
            result.with_hint("this looks like a template; render it first")
        } else {
            result
        }
    }
}

fn tag_text(tag: &Tag) -> String {
    format!("{}{}", tag.handle, tag.suffix)
}

/// Where in the text between the end of the last node and a block scalar's content its header (`|` or `>`) stands.
fn header_offset(between: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(rest) = between.get(at..) {
        let rest = rest.trim_start();
        at = between.len() - rest.len();
        match rest.as_bytes().first()? {
            b'|' | b'>' => return Some(at),
            b'#' => at += rest.find('\n')?,
            b'!' | b'&' => at += rest.find(char::is_whitespace)?,
            _ => at += rest.chars().next()?.len_utf8(),
        }
    }
    None
}

/// Turns a node into a key, numbers and booleans as `sigs.k8s.io/yaml` does.
fn key(text: &str, node: Node) -> Result<Key, YamlError> {
    let span = node.alias.unwrap_or(node.span);
    let plain = node.style == Style::Plain && node.tag.is_none();
    let key = match node.kind {
        NodeKind::String(string) => string,
        NodeKind::Bool(value) => value.to_string(),
        NodeKind::Number(number) => number_key(node.span.of(text), &number).ok_or_else(|| {
            YamlError::at(span, "the number is too large for a key").with_hint("quote the key")
        })?,
        NodeKind::Null => {
            return Err(YamlError::at(span, "the key is null, and Kubernetes takes only strings for keys")
                .with_hint("quote the key"));
        }
        NodeKind::Sequence(_) | NodeKind::Mapping(_) => {
            return Err(YamlError::at(span, "a list or a mapping stands where a key is expected"));
        }
    };
    Ok(Key { merge: plain && key == "<<", text: key, span })
}

/// A number as a key: integers in decimal, others as Go's `strconv.FormatFloat(value, 'g', -1, 32)`.
fn number_key(written: &str, number: &serde_json::Number) -> Option<String> {
    let integral = !written.contains('.') && number.as_i64().is_some();
    if integral && (!written.contains(['e', 'E']) || written.contains(['x', 'X'])) {
        return number.as_i64().map(|value| value.to_string());
    }
    if number.as_f64()?.fract() == 0.0 && number.as_f64()?.abs() < 1e6 {
        return number.as_f64().map(|value| value.to_string());
    }
    let fraction = number.as_f64()?;
    (fraction.fract() != 0.0 && (1e-4..1e6).contains(&fraction.abs())).then(|| {
        // The shortest text that a 32-bit number needs.
        #[allow(clippy::cast_possible_truncation)]
        let short = fraction as f32;
        short.to_string()
    })
}
