//! Where something is.

use std::fmt;

use serde::Serialize;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FilePlace {
    /// The file's path as the user gave it, with `/`.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The bytes of the file that are meant, end exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<(usize, usize)>,
}

/// A place in a file, in an object, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The file and the position in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FilePlace>,
    /// The object, as `ConfigMap ns/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The path of the field, as `.spec.containers[0].image`; nested documents are joined by ` › `.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Place {
    /// A line and a column (both from 1) of a file.
    pub fn file(path: impl Into<String>, line: u32, column: u32) -> Self {
        Self { file: Some(FilePlace { path: path.into(), line, column, span: None }), ..Self::default() }
    }

    /// An object, as `ConfigMap ns/name`.
    pub fn object(object: impl Into<String>) -> Self {
        Self { object: Some(object.into()), ..Self::default() }
    }

    /// The same place with the path of a field.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// The same place with an object.
    #[must_use]
    pub fn with_object(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.path, self.line, self.column)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().map(ToString::to_string);
        let parts = [file.as_deref(), self.object.as_deref(), self.field.as_deref()];
        let mut separator = "";
        for part in parts.into_iter().flatten() {
            write!(formatter, "{separator}{part}")?;
            separator = " ";
        }
        Ok(())
    }
}
