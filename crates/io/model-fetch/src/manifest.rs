//! What was fetched, written beside it: whoever comes again need not fetch it again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{FetchError, at};
use crate::limits::MAX_MANIFEST;

/// The beginning of names of our own files in the folder.
pub(crate) const OWN: &str = ".scantling-fetch";
/// The manifest's name in the folder.
pub const MANIFEST: &str = ".scantling-fetch.json";
/// Where parts are while they are fetched.
pub(crate) const PARTS: &str = ".scantling-fetch";

/// What was fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// From where, without what may be secret.
    pub uri: String,
    /// The files as they were fetched, by path.
    pub files: BTreeMap<String, FileRecord>,
    /// The archive that they were unpacked from, if that was all there was; its record is that of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveRecord>,
}

/// An archive that was unpacked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveRecord {
    /// Its name.
    pub name: String,
    /// What is known of it.
    #[serde(flatten)]
    pub file: FileRecord,
}

/// What is known of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its bytes.
    pub size: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// What the server called this version of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl Manifest {
    /// The manifest in a folder. One that cannot be read counts as none: then everything is fetched again.
    pub(crate) fn read(folder: &Path) -> Self {
        let read = || -> Option<Self> {
            let mut text = String::new();
            File::open(folder.join(MANIFEST)).ok()?.take(MAX_MANIFEST).read_to_string(&mut text).ok()?;
            serde_json::from_str(&text).ok()
        };
        read().unwrap_or_default()
    }

    /// Writes it, so that a reader sees the old or the new one, whole.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), FetchError> {
        let parts = folder.join(PARTS);
        std::fs::create_dir_all(&parts).map_err(at(&parts))?;
        let (fresh, place) = (parts.join("manifest"), folder.join(MANIFEST));
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        let mut file = File::create(&fresh).map_err(at(&fresh))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(at(&fresh))?;
        std::fs::rename(&fresh, &place).map_err(at(&place))
    }
}
