//! Layers, written the same way every time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

/// Names the algorithm's effort. It is written down because the compressed bytes, and so every digest, depend on it.
const COMPRESSION: u32 = 6;

/// The files of one layer: path from the root without a leading slash → content. Folders follow from the paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayerFiles {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl LayerFiles {
    /// Hides a path of the lower layers.
    pub(crate) fn whiteout(&mut self, path: &str) {
        let name = match path.rsplit_once('/') {
            Some((folder, file)) => format!("{folder}/.wh.{file}"),
            None => format!(".wh.{path}"),
        };
        self.files.insert(name, Vec::new());
    }

    /// The archive: sorted, every time at 1970-01-01T00:00:00Z, every owner 0.
    pub(crate) fn tar(&self) -> io::Result<Vec<u8>> {
        let mut entries: BTreeMap<&str, Option<&[u8]>> = BTreeMap::new();
        for (path, content) in &self.files {
            entries.insert(path, Some(content));
        }
        let folders: BTreeSet<&str> = self.files.keys().flat_map(|path| folders(path)).collect();
        for folder in folders {
            entries.entry(folder).or_insert(None);
        }
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in entries {
            let mut header = Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            if let Some(content) = content {
                header.set_entry_type(EntryType::Regular);
                header.set_mode(0o644);
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, path, content)?;
            } else {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                header.set_size(0);
                builder.append_data(&mut header, format!("{path}/"), io::empty())?;
            }
        }
        builder.into_inner()
    }
}

/// The folders that a path goes through.
pub(crate) fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// Compresses an archive without a time or a name in the head.
pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(COMPRESSION));
    encoder.write_all(bytes)?;
    encoder.finish()
}
