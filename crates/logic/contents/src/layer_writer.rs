//! Small layers, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::layer_stream::{LayerEntry, LayerEntryKind, LayerStream, WrittenLayer};

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

    /// The layer and its bytes; every owner is 0.
    pub(crate) fn write(&self) -> io::Result<(WrittenLayer, Vec<u8>)> {
        let mut entries: BTreeMap<&str, Option<&[u8]>> = BTreeMap::new();
        for (path, content) in &self.files {
            entries.insert(path, Some(content));
        }
        let folders: BTreeSet<&str> = self.files.keys().flat_map(|path| folders(path)).collect();
        for folder in folders {
            entries.entry(folder).or_insert(None);
        }
        let mut layer = LayerStream::new(Vec::new());
        for (path, content) in entries {
            let (mode, kind) = match content {
                Some(content) => (0o644, LayerEntryKind::File(content.len() as u64)),
                None => (0o755, LayerEntryKind::Folder),
            };
            layer.add(&LayerEntry { path, mode, user: 0, group: 0, kind }, content.unwrap_or_default())?;
        }
        layer.finish()
    }
}

/// The folders that a path goes through.
pub(crate) fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}
