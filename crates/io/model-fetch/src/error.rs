//! What can go wrong.

use std::path::PathBuf;

/// Why a model was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The URI is none, or of a kind that is not supported.
    #[error("{uri} cannot be fetched: {why}")]
    Uri {
        /// The URI, without what may be secret.
        uri: String,
        /// What is wrong and what to write.
        why: String,
    },
    /// There is nothing.
    #[error("there is nothing at {uri}: correct the path, or put the model there")]
    Missing {
        /// Where.
        uri: String,
    },
    /// The server does not let us.
    #[error(
        "{uri} is not for us ({status}): give the data connection the right key, or the key the right to read this bucket"
    )]
    Denied {
        /// Where.
        uri: String,
        /// What the server said.
        status: String,
    },
    /// The server could not be reached, or ended the connection, again and again.
    #[error("{uri} could not be fetched after {attempts} attempts: {why}")]
    Unreachable {
        /// Where.
        uri: String,
        /// How often it was tried without anything arriving.
        attempts: u32,
        /// What happened last.
        why: String,
    },
    /// The server answered something that cannot be.
    #[error("{uri}: {why}")]
    Answer {
        /// Where.
        uri: String,
        /// What.
        why: String,
    },
    /// A file was changed or cut while it was fetched.
    #[error(
        "{path} has {got} bytes instead of {expected}: the file is only half there, or was replaced; put it there anew"
    )]
    Length {
        /// The file.
        path: String,
        /// Bytes that arrived.
        got: u64,
        /// Bytes that were announced.
        expected: u64,
    },
    /// Its content is not what was asked for.
    #[error("{path} has the SHA-256 {got} instead of {expected}: it is another file than was meant")]
    Checksum {
        /// The file.
        path: String,
        /// What it has.
        got: String,
        /// What was asked for.
        expected: String,
    },
    /// A checksum was given for several files.
    #[error("{uri} has {files} files, and a checksum is for one: name the file, or leave the checksum out")]
    ChecksumOfMany {
        /// Where.
        uri: String,
        /// How many.
        files: usize,
    },
    /// A name that would leave the folder, or that no file can have.
    #[error("{name:?} cannot be the path of a file: {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// More than the limits allow.
    #[error("{uri} has more than {limit}: is the path right? the limits can be raised")]
    TooMuch {
        /// Where.
        uri: String,
        /// Which limit, with its unit.
        limit: String,
    },
    /// An archive cannot be unpacked.
    #[error("the archive {path} cannot be unpacked: {why}")]
    Archive {
        /// The archive.
        path: String,
        /// Why not.
        why: String,
    },
    /// Something of the file system.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What.
        source: std::io::Error,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl FetchError {
    /// A sentence on what to do, where the error itself does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => {
                Some("check the address, the network policy of the namespace and the proxy")
            }
            Self::Tls(_) => Some("AWS_CA_BUNDLE or SSL_CERT_FILE must name a file with certificates in PEM"),
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                Some("the node's disk or the volume is full: give it more room")
            }
            _ => None,
        }
    }
}

/// Adds a path to an error of the file system.
pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> FetchError {
    let path = path.to_path_buf();
    move |source| FetchError::File { path, source }
}
