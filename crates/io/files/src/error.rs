//! Why a path could not be read.

use std::io;

use camino::Utf8PathBuf;
use thiserror::Error;

/// Why reading or writing failed. The message says what and where; [`FilesError::hint`] says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FilesError {
    /// Nothing is there.
    #[error("{path}: no such file or folder")]
    NotFound {
        /// The path as given.
        path: Utf8PathBuf,
        /// An entry of the same folder whose name is nearly the same.
        similar: Option<String>,
    },
    /// The system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The path concerned.
        path: Utf8PathBuf,
        /// What was tried: "read", "list the folder", "write".
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A folder was given where one file is read.
    #[error("{path}: is a folder, not a file")]
    IsFolder {
        /// The path as given.
        path: Utf8PathBuf,
    },
    /// A device, a socket or a pipe.
    #[error("{path}: is neither a file nor a folder")]
    NotRegular {
        /// The path as given.
        path: Utf8PathBuf,
    },
    /// A file that was named by the user holds no text.
    #[error("{path}: {reason}")]
    NotText {
        /// The path as given.
        path: Utf8PathBuf,
        /// What it looks like instead.
        reason: crate::SkipReason,
    },
    /// A symbolic link that points out of the tree.
    #[error("{path}: symbolic link leaves the folder {root} (it points to {target})")]
    LinkOutside {
        /// The link.
        path: Utf8PathBuf,
        /// The folder that is read.
        root: Utf8PathBuf,
        /// Where it points.
        target: String,
    },
    /// A symbolic link to nothing.
    #[error("{path}: symbolic link points to nothing ({target})")]
    LinkBroken {
        /// The link.
        path: Utf8PathBuf,
        /// Where it points.
        target: String,
    },
    /// A symbolic link to a folder that holds the link.
    #[error("{path}: symbolic link leads back to a folder that contains it")]
    LinkLoop {
        /// The link.
        path: Utf8PathBuf,
    },
    /// One file is too large.
    #[error("{path}: larger than {limit} bytes")]
    FileTooLarge {
        /// The file.
        path: Utf8PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// All files together are too large.
    #[error("{root}: files together are larger than {limit} bytes (reached at {path})")]
    TreeTooLarge {
        /// The folder that is read.
        root: Utf8PathBuf,
        /// The file that passed the limit.
        path: Utf8PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// Too many files and folders.
    #[error("{root}: more than {limit} files and folders")]
    TooManyEntries {
        /// The folder that is read.
        root: Utf8PathBuf,
        /// The limit.
        limit: usize,
    },
    /// Folders too deep inside each other.
    #[error("{path}: more than {limit} folders deep")]
    TooDeep {
        /// The folder that passed the limit.
        path: Utf8PathBuf,
        /// The limit.
        limit: usize,
    },
}

impl FilesError {
    /// What to do about it, as a sentence fragment.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotFound { similar: Some(name), .. } => format!("did you mean `{name}`?"),
            Self::NotFound { similar: None, .. } => {
                "check the path; it is taken from the folder you are in".into()
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "ask for the right to do so, or use a copy that you may use".into()
            }
            Self::Io { .. } => return None,
            Self::IsFolder { .. } => "name a file inside it".into(),
            Self::NotRegular { .. } => "save its content to a file and name that".into(),
            Self::NotText { reason, .. } => reason.remedy().into(),
            Self::LinkOutside { .. } => {
                "replace the link by a copy of the file, so that the folder is complete".into()
            }
            Self::LinkBroken { .. } => "remove the link, or restore what it points to".into(),
            Self::LinkLoop { .. } => "remove the link".into(),
            Self::FileTooLarge { .. } | Self::TreeTooLarge { .. } | Self::TooManyEntries { .. } => {
                "name the folder that holds the manifests, not one above it".into()
            }
            Self::TooDeep { .. } => "name a folder further down".into(),
        })
    }

    /// Whether the user named something wrong, as opposed to a fault of the system.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}
