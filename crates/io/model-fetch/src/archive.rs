//! Unpacking an archive that is all there is, as KServe's initializer does.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::{FetchError, at};
use crate::hash::Hasher;
use crate::limits::Limits;
use crate::manifest::FileRecord;
use crate::place;

/// Bytes copied at once.
const BLOCK: usize = 1 << 18;

/// A kind of archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tar,
    TarGz,
    Zip,
}

impl Kind {
    /// By the end of a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let ends = |end: &str| name.ends_with(end);
        if ends(".tar.gz") || ends(".tgz") {
            Some(Self::TarGz)
        } else if ends(".tar") {
            Some(Self::Tar)
        } else if ends(".zip") {
            Some(Self::Zip)
        } else {
            None
        }
    }
}

/// Unpacks into a folder that is made; gives what is in it.
pub(crate) fn unpack(
    name: &str,
    kind: Kind,
    archive: &Path,
    into: &Path,
    limits: &Limits,
) -> Result<BTreeMap<String, FileRecord>, FetchError> {
    fs::create_dir_all(into).map_err(at(into))?;
    let file = File::open(archive).map_err(at(archive))?;
    let mut unpacking = Unpacking { name, into, limits, bytes: 0, entries: 0, files: BTreeMap::new() };
    match kind {
        Kind::Tar => unpacking.tar(file)?,
        Kind::TarGz => unpacking.tar(MultiGzDecoder::new(file))?,
        Kind::Zip => unpacking.zip(file)?,
    }
    if unpacking.files.is_empty() {
        return Err(unpacking.refuse("there is no file in it"));
    }
    Ok(unpacking.files)
}

struct Unpacking<'a> {
    name: &'a str,
    into: &'a Path,
    limits: &'a Limits,
    bytes: u64,
    entries: usize,
    files: BTreeMap<String, FileRecord>,
}

impl Unpacking<'_> {
    fn refuse(&self, why: impl Into<String>) -> FetchError {
        FetchError::Archive { path: self.name.to_owned(), why: why.into() }
    }

    fn counted(&mut self) -> Result<(), FetchError> {
        self.entries += 1;
        if self.entries > self.limits.files {
            return Err(self.refuse(format!("it has more than {} entries", self.limits.files)));
        }
        Ok(())
    }

    fn tar(&mut self, reader: impl Read) -> Result<(), FetchError> {
        let mut archive = tar::Archive::new(reader);
        let entries = archive.entries().map_err(|error| self.refuse(error.to_string()))?;
        for entry in entries {
            let mut entry = entry.map_err(|error| self.refuse(format!("it is damaged: {error}")))?;
            self.counted()?;
            let kind = entry.header().entry_type();
            let path = String::from_utf8(entry.path_bytes().into_owned())
                .map_err(|_| self.refuse("a name in it is not UTF-8"))?;
            if kind.is_dir() || kind.is_pax_global_extensions() {
                continue;
            }
            if !kind.is_file() {
                return Err(self.refuse(format!(
                    "{path:?} in it is a link or a device: pack plain files only (tar -h)"
                )));
            }
            self.file(&path, &mut entry)?;
        }
        Ok(())
    }

    fn zip(&mut self, file: File) -> Result<(), FetchError> {
        let mut archive = zip::ZipArchive::new(file).map_err(|error| self.refuse(error.to_string()))?;
        for index in 0..archive.len() {
            self.counted()?;
            let mut entry = archive.by_index(index).map_err(|error| self.refuse(error.to_string()))?;
            let path = entry.name().map_err(|error| self.refuse(error.to_string()))?.into_owned();
            if entry.is_dir() {
                continue;
            }
            if !entry.is_file() {
                return Err(self.refuse(format!("{path:?} in it is a link: pack plain files only")));
            }
            self.file(&path, &mut entry)?;
        }
        Ok(())
    }

    fn file(&mut self, name: &str, content: &mut dyn Read) -> Result<(), FetchError> {
        let name = name.trim_start_matches("./");
        let path = self.into.join(place::inside(name)?);
        if self.files.contains_key(name) {
            return Err(self.refuse(format!("{name:?} is in it twice")));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        let mut file = File::create(&path).map_err(at(&path))?;
        let mut hasher = Hasher::default();
        let mut block = vec![0; BLOCK];
        let mut size = 0u64;
        loop {
            let read =
                content.read(&mut block).map_err(|error| self.refuse(format!("it is damaged: {error}")))?;
            if read == 0 {
                break;
            }
            // Counted as it comes: what an archive says of itself can be wrong on purpose.
            self.bytes = self.bytes.saturating_add(read as u64);
            if self.bytes > self.limits.bytes {
                return Err(self.refuse(format!("it unpacks to more than {} bytes", self.limits.bytes)));
            }
            let bytes = block.get(..read).unwrap_or_default();
            hasher.update(bytes);
            file.write_all(bytes).map_err(at(&path))?;
            size += read as u64;
        }
        file.sync_all().map_err(at(&path))?;
        self.files.insert(name.to_owned(), FileRecord { size, sha256: hasher.finish(), etag: None });
        Ok(())
    }
}
