//! Why a write is refused.

use std::fmt;

use crate::path::Path;
use crate::validate::Misfit;

/// A field that someone else owns with another value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The owner.
    pub manager: String,
    /// The field.
    pub field: Path,
    /// API version the owner used, if it owns the field through an update.
    pub using: Option<String>,
    /// Subresource through which the owner wrote, if any.
    pub subresource: Option<String>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is owned by {:?}", self.field, self.manager)?;
        if let Some(subresource) = &self.subresource {
            write!(f, " through {subresource}")?;
        }
        if let Some(version) = &self.using {
            write!(f, " using {version}")?;
        }
        Ok(())
    }
}

/// Why a write is refused. The live object stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Others own fields that the write would change; forcing the apply takes them over.
    #[error("{}", conflict_text(.0))]
    Conflicts(Vec<Conflict>),
    /// The request itself is wrong: another kind or version, or ownership in an applied object.
    #[error("{0}")]
    Refused(String),
    /// An object does not fit its type.
    #[error("{what} does not fit its type: {misfit}")]
    Invalid {
        /// Which object.
        what: &'static str,
        /// The first field that does not fit.
        misfit: Misfit,
    },
    /// The ownership recorded in the live object cannot be read.
    #[error("the live object's {0}")]
    Ownership(String),
    /// A patch cannot be read or does not fit the object.
    #[error("patch: {0}")]
    Patch(String),
}

impl MergeError {
    /// The HTTP status an API server answers with.
    pub fn code(&self) -> u16 {
        match self {
            Self::Conflicts(_) => 409,
            Self::Refused(_) => 400,
            Self::Invalid { .. } | Self::Ownership(_) => 500,
            Self::Patch(_) => 422,
        }
    }
}

fn conflict_text(conflicts: &[Conflict]) -> String {
    let list: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    let s = if list.len() == 1 { "" } else { "s" };
    format!("apply failed with {} conflict{s}: {}", list.len(), list.join("; "))
}
