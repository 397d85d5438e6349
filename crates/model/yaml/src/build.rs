//! Events of the YAML parser to trees.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use crate::input::refused_character;
use crate::limits::{MAX_ALIAS_BYTES, MAX_ALIAS_NODES, MAX_DEPTH, MAX_NODES};
use crate::mapping::{Mapping, key};
use crate::path::{push_index, push_key};
use crate::resolve::{self, Scalar};
use crate::source_map::block_indent;
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
    // Kubernetes' reader takes what this parser does not: a tab between a colon and a value, and lines of a flow collection
    // that are not indented. A space in the place of the tab or the line break changes no offset. Each costs one more
    // reading, hence the bound.
    const PATCHES: usize = 64;
    let mut patched: Option<Vec<u8>> = None;
    for _ in 0..PATCHES {
        let current = match &patched {
            None => text,
            Some(bytes) => std::str::from_utf8(bytes).unwrap_or(text),
        };
        match parse_stream(current) {
            Err(error) => {
                let bytes = patched.get_or_insert_with(|| text.as_bytes().to_vec());
                if !patch(bytes, &error) {
                    return Err(error.located(text));
                }
            }
            Ok(parsed) => return Ok(parsed),
        }
    }
    Err(YamlError::at(
        Span::new(0, 0),
        "tabs stand between keys and values, or lines between brackets are not indented",
    )
    .with_hint("put spaces in the place of the tabs, and before the lines")
    .located(text))
}

/// Puts spaces in the place of what made the parser stop, if Kubernetes' reader would not have stopped there.
fn patch(bytes: &mut [u8], error: &YamlError) -> bool {
    let at = error.span.start;
    if error.message.starts_with("':' must be followed") {
        let tab = bytes.iter_mut().skip(at.saturating_sub(1)).take(2).find(|byte| **byte == b'\t');
        return tab.map(|tab| *tab = b' ').is_some();
    }
    if !matches!(error.message.as_str(), "invalid indentation" | "invalid indentation in flow construct") {
        return false;
    }
    // The parser says so only between the parts of a flow collection: before `at` stand a line break and blanks.
    let before = bytes.get(..at).unwrap_or_default();
    let end = without(before, b" \t").len();
    let line_end = without(before.get(..end).unwrap_or_default(), b"\r\n").len();
    let line = before.get(..line_end).unwrap_or_default().rsplit(|byte| matches!(byte, b'\r' | b'\n')).next();
    // A comment would swallow what follows.
    if line_end == end || line.is_some_and(|line| line.contains(&b'#')) {
        return false;
    }
    for byte in bytes.iter_mut().take(end).skip(line_end) {
        *byte = b' ';
    }
    true
}

/// The bytes without those of the given kinds at their end.
fn without<'b>(bytes: &'b [u8], kinds: &[u8]) -> &'b [u8] {
    let kept = bytes.iter().rposition(|byte| !kinds.contains(byte)).map_or(0, |last| last + 1);
    bytes.get(..kept).unwrap_or_default()
}

/// A directive that Kubernetes' reader does not know, in the one place where directives can stand: before a document.
fn unknown_directive(text: &str) -> Option<YamlError> {
    let mut before_document = true;
    let mut at = 0;
    for line in text.split_inclusive(['\n', '\r']) {
        let content = line.trim_start_matches('\u{feff}').trim_end();
        if before_document && let Some(directive) = content.strip_prefix('%') {
            let name = directive.split([' ', '\t']).next().unwrap_or_default();
            if !matches!(name, "YAML" | "TAG") {
                let start = at + line.find('%').unwrap_or_default();
                let shown: String = name.chars().take(80).collect();
                let message = format!("%{shown} is no directive of YAML");
                return Some(YamlError::at(Span::new(start, start + 1), message));
            }
        } else if content == "..." || content.starts_with("... ") {
            before_document = true;
        } else if !content.is_empty() && !content.trim_start().starts_with('#') {
            before_document = false;
        }
        at += line.len();
    }
    None
}

fn parse_stream(text: &str) -> Result<Parsed, YamlError> {
    if let Some(error) = refused_character(text).or_else(|| unknown_directive(text)) {
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
    /// Whether it is written with `[` or `{`.
    flow: bool,
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
            Event::DocumentStart(explicit) => {
                self.anchors.clear();
                if explicit {
                    self.last_end = self.last_end.max(span.end);
                }
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
                let node = self.scalar(value.into_owned(), style, span, anchor != 0, tag.as_deref())?;
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
        let start = if anchor != 0 || tag.is_some() { self.skip_properties(span.start) } else { span.start };
        self.refuse_tab(span.start)?;
        let tag = tag.map(tag_text);
        self.last_end = self.last_end.max(span.end);
        let flow = matches!(self.text.as_bytes().get(start), Some(b'[' | b'{'));
        self.stack.push(Frame { content, start, flow, anchor, tag, nodes: 1, bytes: 0, height: 1 });
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

    /// Whether the text ends inside a block scalar, without a line break.
    fn lacks_last_break(&self, span: Span, value: &str) -> bool {
        let Some((_, body)) = span.of(self.text).split_once(['\n', '\r']) else { return false };
        let last = body.rsplit(['\n', '\r']).next().unwrap_or_default();
        let reaches = last.bytes().any(|byte| byte != b' ') || last.len() >= block_indent(body, value).max(1);
        span.end == self.text.len() && !last.is_empty() && reaches && value.ends_with('\n')
    }

    /// Kubernetes' reader takes no tab before the first node of a line in a block collection, nor after a dash there.
    fn refuse_tab(&self, start: usize) -> Result<(), YamlError> {
        if self.stack.last().is_some_and(|frame| frame.flow) {
            return Ok(());
        }
        let between = self.text.get(self.last_end..start).unwrap_or_default();
        let line_start = between.rfind(['\n', '\r']).map(|at| at + 1);
        let line = between.get(line_start.unwrap_or(0)..).unwrap_or_default();
        if line_start.is_none() && self.last_end > 0 {
            return Ok(());
        }
        let Some(at) = line.find('\t') else { return Ok(()) };
        // Behind a colon or a tag a tab is blank like any other.
        if line.get(..at).unwrap_or_default().contains([':', '!', '&']) {
            return Ok(());
        }
        let at = start - line.len() + at;
        Err(YamlError::at(Span::new(at, at + 1), "a tab stands in the indentation")
            .with_hint("indent with spaces"))
    }

    fn scalar(
        &mut self,
        mut value: String,
        style: ScalarStyle,
        span: Span,
        anchored: bool,
        tag: Option<&Tag>,
    ) -> Result<Node, YamlError> {
        self.refuse_tab(span.start)?;
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
            _ if anchored || tag.is_some() => Span::new(self.skip_properties(span.start), span.end),
            _ => span,
        };
        if matches!(style, Style::Literal | Style::Folded) {
            // What was looked at above is the content; the header may stand behind a tab as well.
            self.refuse_tab(span.start)?;
        }
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
        if matches!(style, Style::Literal | Style::Folded) && self.lacks_last_break(span, &value) {
            // The parser adds the line break that the last line of the text does not have.
            value.pop();
        }
        let kind = match scalar {
            Scalar::Null => NodeKind::Null,
            Scalar::Bool(value) => NodeKind::Bool(value),
            Scalar::Number(number) => NodeKind::Number(number),
            Scalar::String => NodeKind::String(value),
            // As a key it is a string like any other.
            Scalar::NotJson if self.expects_key() => NodeKind::String(match value.as_bytes() {
                [b'-', ..] => "-.inf".to_owned(),
                [b'.', b'n' | b'N', ..] => ".nan".to_owned(),
                _ => ".inf".to_owned(),
            }),
            Scalar::NotJson => {
                return Err(YamlError::at(span, format!("{value} is a number that JSON cannot hold"))
                    .with_hint("quote it if it is meant as text"));
            }
        };
        Ok(Node { kind, span, style, tag, alias: None })
    }

    /// The first byte after the tag and the anchor that stand at `start`.
    fn skip_properties(&self, start: usize) -> usize {
        let mut at = start;
        while let Some(rest) = self.text.get(at..) {
            let content = rest.trim_start();
            let skipped = if content.starts_with("!<") {
                content.find('>').map(|end| end + 1)
            } else if content.starts_with(['!', '&']) {
                content.find(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}'))
            } else if at > start && content.starts_with('#') {
                content.find(['\n', '\r'])
            } else {
                return at + (rest.len() - content.len());
            };
            at += rest.len() - content.len() + skipped.unwrap_or(content.len());
        }
        at
    }

    /// The span of a block scalar from its header to the end of its last line. The parser's begins with the content.
    fn block_span(&self, content: Span) -> Span {
        let rest = self.text.get(self.last_end..content.end).unwrap_or_default();
        let start = header_offset(rest).map_or(content.start, |offset| self.last_end + offset);
        // The parser's end lies after the indentation of what follows.
        let body = self.text.get(start..content.end).unwrap_or_default();
        let end = match body.rfind(['\n', '\r']) {
            // Up to the end of the text everything belongs to it.
            Some(_) if content.end == self.text.len() => content.end,
            Some(at) if body.get(at + 1..).is_some_and(|rest| rest.bytes().all(|byte| byte == b' ')) => {
                start + at + 1
            }
            _ => start + body.len(),
        };
        Span::new(start, end)
    }

    /// The place right after the indicator (`:`, `-`, a tag, an anchor) of a value that is not written. The parser's is
    /// the tag or anchor, the colon, or some place after the dash.
    fn empty_span(&self, noticed: Span) -> Span {
        let between = self.text.get(self.last_end..noticed.start).unwrap_or_default();
        let after = self.text.get(noticed.start..).unwrap_or_default();
        let at = if after.starts_with(['!', '&']) {
            noticed.end
        } else if after.trim_start_matches([' ', '\t']).starts_with(':') {
            noticed.start + after.find(':').map_or(0, |at| at + 1)
        } else {
            self.last_end.min(noticed.start) + end_of_content(between)
        };
        Span::new(at, at)
    }

    fn syntax(&self, error: &ScanError) -> YamlError {
        let at = self.chars.byte(self.text, error.marker().index());
        let line_start =
            self.text.get(..at).and_then(|before| before.rfind(['\n', '\r'])).map_or(0, |at| at + 1);
        let line = self.text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or_default();
        let result = YamlError::at(Span::new(at, at), error.info().to_owned());
        if indent.contains('\t') {
            result.with_hint("the line is indented with a tab; YAML takes only spaces")
        } else if line.contains("{{") {
            result.with_hint("this looks like a template; render it first")
        } else if error.info().starts_with("mapping values are not allowed") {
            result.with_hint(
                "indent the line like those beside it; quote a text that has a colon and a blank in it",
            )
        } else {
            result
        }
    }
}

/// The end of the last thing between two nodes that is neither blank nor a comment.
fn end_of_content(between: &str) -> usize {
    let mut end = 0;
    let mut at = 0;
    for line in between.split_inclusive(['\n', '\r']) {
        let mut before = None;
        let comment = line.char_indices().find(|(_, c)| {
            let begins = *c == '#' && before.is_none_or(|before: char| before.is_whitespace());
            before = Some(*c);
            begins
        });
        let content = line.get(..comment.map_or(line.len(), |(start, _)| start)).unwrap_or_default();
        if !content.trim().is_empty() {
            end = at + content.trim_end().len();
        }
        at += line.len();
    }
    end
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
            b'#' => at += rest.find(['\n', '\r'])?,
            b'!' | b'&' => at += rest.find(char::is_whitespace)?,
            _ => at += rest.chars().next()?.len_utf8(),
        }
    }
    None
}
