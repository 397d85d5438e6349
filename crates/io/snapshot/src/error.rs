//! What could not be read.

use std::fmt;

use scantling_files::FilesError;

/// Why there is no snapshot at all.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A path that was named is not there, or the system refuses.
    #[error(transparent)]
    Path(#[from] FilesError),
    /// No path was named.
    #[error("no file or folder is named; name a dump of a cluster")]
    NoPath,
}

/// Something that was not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// The file, as it was named or below the folder that was named.
    pub path: String,
    /// The byte of the (unpacked) file where it begins, if it is a part of the file.
    pub offset: Option<u64>,
    /// Why.
    pub why: Why,
}

impl Skipped {
    /// Where it stands.
    pub fn place(&self) -> String {
        match self.offset {
            Some(offset) => format!("{} at byte {offset}", self.path),
            None => self.path.clone(),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.why)
    }
}

/// Why something was not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Why {
    /// The file or folder could not be looked at, or a read failed in the middle.
    Unreachable(String),
    /// Neither JSON nor YAML of objects.
    NotObjects,
    /// An archive that has to be unpacked first.
    Archive,
    /// The text ends in the middle. What came before was read.
    Cut,
    /// The text breaks off being what it was. What came before was read, the rest of the file was not.
    Broken(String),
    /// One object does not parse.
    Malformed(String),
    /// It is no object of the API.
    NotAnObject(String),
    /// Its kind is not written, and its list does not say it.
    NoKind,
    /// It has a name that no object can have.
    BadName,
    /// Larger than one object is read.
    TooLarge(usize),
    /// Lists in lists in lists.
    TooDeep,
    /// The file goes on beyond what is read of one file.
    FileTooLarge(u64),
    /// There are more objects than are kept; nothing after this place was read.
    TooMany(usize),
    /// Lines between objects that are none.
    Lines(u64),
    /// A snapshot of ours whose taking was ended before it was complete.
    Unfinished,
    /// The index of a snapshot of a form that this program does not know.
    Index(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => f.write_str(why),
            Self::NotObjects => f.write_str("neither JSON nor YAML of Kubernetes objects"),
            Self::Archive => f.write_str("a tar archive; unpack it and name the folder"),
            Self::Cut => f.write_str("the file ends in the middle; what comes before was read"),
            Self::Broken(why) => write!(f, "{why}; the rest of the file was not read"),
            Self::Malformed(why) => write!(f, "does not parse: {why}"),
            Self::NotAnObject(why) => write!(f, "no Kubernetes object: {why}"),
            Self::NoKind => f.write_str("its kind is not written, nor does its list say it"),
            Self::BadName => f.write_str("its name is none that an object can have"),
            Self::TooLarge(limit) => write!(f, "larger than {limit} bytes, which no object is"),
            Self::TooDeep => f.write_str("lists nested deeper than any tool writes them"),
            Self::FileTooLarge(limit) => write!(f, "the file goes on after {limit} bytes, which is not read"),
            Self::TooMany(limit) => write!(f, "more than {limit} objects; what comes after was not read"),
            Self::Lines(count) => write!(f, "{count} lines between objects that are none"),
            Self::Unfinished => f.write_str(
                "the snapshot is not complete; `scantling snapshot` with the same folder continues it",
            ),
            Self::Index(why) => write!(f, "the index of a snapshot that cannot be read: {why}"),
        }
    }
}
