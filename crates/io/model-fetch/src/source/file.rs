//! Models in a folder that is mounted.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::{Item, Opened};
use crate::error::{FetchError, at};
use crate::limits::{Limits, MAX_DEPTH};

/// Bytes read at once.
const BLOCK: usize = 1 << 20;

/// A file, or the files of a folder.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    fn shown(&self) -> String {
        format!("file://{}", self.path.display())
    }

    /// Its files. Links are followed while they stay in the folder.
    pub(crate) fn list(&self, limits: &Limits) -> Result<Vec<Item>, FetchError> {
        let missing = || FetchError::Missing { uri: self.shown() };
        let Ok(root) = self.path.canonicalize() else { return Err(missing()) };
        let mut found = Vec::new();
        if root.is_file() {
            let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or("model").to_owned();
            found.push(item(&root, name)?);
        } else {
            self.walk(&root, &root, "", 0, limits, &mut found)?;
        }
        if found.is_empty() { Err(missing()) } else { Ok(found) }
    }

    fn walk(
        &self,
        root: &Path,
        folder: &Path,
        prefix: &str,
        depth: usize,
        limits: &Limits,
        found: &mut Vec<Item>,
    ) -> Result<(), FetchError> {
        let too_much = |limit: String| FetchError::TooMuch { uri: self.shown(), limit };
        if depth > MAX_DEPTH {
            return Err(too_much(format!("{MAX_DEPTH} folders in each other")));
        }
        let mut names: Vec<_> = fs::read_dir(folder)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(at(folder))?
            .into_iter()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        for name in names {
            let path = folder.join(&name);
            // A link that leads nowhere or out of the folder is nobody's file.
            let Some(real) = path.canonicalize().ok().filter(|real| real.starts_with(root)) else { continue };
            let Some(name) = name.to_str() else {
                return Err(FetchError::Name {
                    name: name.to_string_lossy().into_owned(),
                    why: "it is not UTF-8",
                });
            };
            // File systems and mounted configuration keep things of their own here.
            if matches!(name, "lost+found") || name.starts_with("..") {
                continue;
            }
            let shown = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            if real.is_dir() {
                self.walk(root, &path, &shown, depth + 1, limits, found)?;
            } else if real.is_file() {
                if found.len() >= limits.files {
                    return Err(too_much(format!("{} files", limits.files)));
                }
                found.push(item(&real, shown)?);
            }
        }
        Ok(())
    }

    #[allow(clippy::unused_self)]
    pub(crate) fn open(&self, item: &Item, from: u64) -> Result<Opened, FetchError> {
        let path = PathBuf::from(&item.key);
        let mut file = File::open(&path).map_err(at(&path))?;
        file.seek(SeekFrom::Start(from)).map_err(at(&path))?;
        let chunks = futures::stream::unfold(Some(file), |file| async {
            let mut file = file?;
            let mut block = vec![0; BLOCK];
            match file.read(&mut block) {
                Ok(0) => None,
                Ok(read) => {
                    block.truncate(read);
                    Some((Ok(Bytes::from(block)), Some(file)))
                }
                Err(error) => Some((Err(error.to_string()), None)),
            }
        });
        Ok(Opened { chunks: Box::pin(chunks), from, size: item.size, etag: item.etag.clone() })
    }
}

fn item(path: &Path, shown: String) -> Result<Item, FetchError> {
    let about = path.metadata().map_err(at(path))?;
    let changed =
        about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(Item {
        path: shown,
        key: path.to_str().map(str::to_owned).ok_or_else(|| FetchError::Name {
            name: path.to_string_lossy().into_owned(),
            why: "it is not UTF-8",
        })?,
        size: Some(about.len()),
        etag: Some(format!("{}-{}", about.len(), changed.as_nanos())),
    })
}
