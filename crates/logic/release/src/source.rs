//! One file of a release, read: its text, its documents, and places in it.

use scantling_finding::{FilePlace, Finding, Place, Severity, codes};
use scantling_yaml::{Document, LineIndex, Node, Span, YamlError};

/// A text file.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    /// The path as it is shown: with the root that the user named.
    pub(crate) path: String,
    pub(crate) text: &'t str,
    lines: LineIndex<'t>,
}

impl<'t> Source<'t> {
    /// Takes a file's bytes as text.
    pub(crate) fn new(path: String, bytes: &'t [u8]) -> Result<Self, Box<Finding>> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let cause = format!("the byte at offset {} belongs to no character", error.valid_up_to());
            let finding =
                Finding::new(codes::input::NOT_TEXT, "not UTF-8 text", Place::file(path.clone(), 1, 1));
            Box::new(finding.with_severity(Severity::Error).with_cause(cause))
        })?;
        Ok(Self { path, text, lines: LineIndex::new(text) })
    }

    /// Reads the file as YAML or JSON.
    pub(crate) fn documents(&self) -> Result<Vec<Document>, Box<Finding>> {
        scantling_yaml::parse(self.text.as_bytes()).map_err(|error| Box::new(self.unreadable(&error)))
    }

    /// Reads what can be read; the search for references reports the rest.
    pub(crate) fn documents_if_readable(&self) -> Vec<Document> {
        scantling_yaml::parse_tolerant(self.text.as_bytes())
            .map(|(documents, _)| documents)
            .unwrap_or_default()
    }

    fn unreadable(&self, error: &YamlError) -> Finding {
        let code =
            if error.first.is_some() { codes::input::DUPLICATE_KEY } else { codes::input::UNREADABLE_YAML };
        let mut finding = Finding::new(code, error.message.clone(), self.place(error.span));
        if let Some(first) = error.first {
            finding = finding.with_related(self.place(first), "first given here");
        } else if let Some(hint) = &error.hint {
            finding = finding.with_remedy(hint.clone());
        }
        finding
    }

    /// The place of a span.
    pub(crate) fn place(&self, span: Span) -> Place {
        let (line, column) = self.lines.position(span.start);
        let file = FilePlace { path: self.path.clone(), line, column, span: Some((span.start, span.end)) };
        Place { file: Some(file), ..Place::default() }
    }

    /// The place of a piece of a string: `range` counts bytes of the string's value.
    pub(crate) fn inner_place(&self, node: &Node, range: Span) -> Place {
        let map = node.source_map(self.text);
        match (map.source(range.start), map.source(range.end)) {
            (Some(start), Some(end)) => self.place(Span::new(start, end.max(start))),
            _ => self.place(node.span),
        }
    }

    /// The place of a value; inside quotes where it is quoted.
    pub(crate) fn value_place(&self, node: &Node) -> Place {
        match node.as_str() {
            Some(text) if !text.is_empty() && !text.contains('\n') => {
                self.inner_place(node, Span::new(0, text.len()))
            }
            _ => self.place(node.alias.unwrap_or(node.span)),
        }
    }

    /// The place of the whole file.
    pub(crate) fn start(&self) -> Place {
        Place::file(self.path.clone(), 1, 1)
    }
}
