//! Why a text cannot be read.

use std::fmt;

use crate::{LineIndex, Span};

/// Why a text cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The bytes that are meant.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What would help.
    pub hint: Option<String>,
    /// For a key that is given twice: where it was given first.
    pub first: Option<Span>,
    /// The path of the key or value, as `.spec.containers[0].env`, where the fault has one.
    pub path: Option<String>,
}

impl std::error::Error for YamlError {}

impl fmt::Display for YamlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.line, self.column, self.message)?;
        if let Some(hint) = &self.hint {
            write!(formatter, " ({hint})")?;
        }
        Ok(())
    }
}

impl YamlError {
    /// An error whose line and column are still to be found.
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Self {
        Self { line: 0, column: 0, span, message: message.into(), hint: None, first: None, path: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn located(mut self, text: &str) -> Self {
        self.locate(&LineIndex::new(text));
        self
    }

    pub(crate) fn locate(&mut self, lines: &LineIndex<'_>) {
        (self.line, self.column) = lines.position(self.span.start);
        if let Some(first) = self.first {
            let (line, column) = lines.position(first.start);
            self.hint = Some(format!("first given at {line}:{column}"));
        }
    }

    /// Chooses the more telling of two errors of a text that begins like JSON: that of the reader that came further.
    pub(crate) fn or_json(self, json: Self) -> Self {
        if json.span.start > self.span.start { json } else { self }
    }
}
