//! Packages that were fetched, kept by their digest.

use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use scantling_image::Digest;

use crate::error::ImagesError;
use crate::name::ImageName;

/// Bytes that are hashed at a time.
const BLOCK: usize = 1 << 16;

/// A folder of fetched packages.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: Utf8PathBuf,
}

/// A package that is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Name and version, for people.
    pub(crate) package: &'a str,
    /// What the lock pins.
    pub(crate) digest: &'a Digest,
}

impl Cache {
    pub(crate) fn new(folder: &Utf8Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Where a file with this digest is, or will be.
    pub(crate) fn path(&self, digest: &Digest) -> Utf8PathBuf {
        self.folder.join("packages").join(digest.hex())
    }

    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.path(digest).is_file()
    }

    /// A folder for the files of one fetch, which is empty and removed after it.
    pub(crate) fn incoming(&self) -> Result<Incoming, ImagesError> {
        // By process and number: several builds may fetch at once.
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = self.folder.join(format!("incoming-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(ImagesError::file(&folder))?;
        Ok(Incoming { folder })
    }

    /// Takes a file that was fetched, if it is what was wanted.
    pub(crate) fn take(
        &self,
        image: &ImageName,
        wanted: Wanted<'_>,
        file: &Utf8Path,
    ) -> Result<(), ImagesError> {
        let found = digest_of(file)?;
        if found != *wanted.digest {
            return Err(ImagesError::Mismatch {
                package: format!("{image}: {}", wanted.package),
                wanted: wanted.digest.clone(),
                found,
            });
        }
        let path = self.path(wanted.digest);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(ImagesError::file(folder))?;
        }
        std::fs::rename(file, &path).map_err(ImagesError::file(&path))
    }
}

/// A folder that is removed when it is no longer used.
pub(crate) struct Incoming {
    folder: Utf8PathBuf,
}

impl Incoming {
    pub(crate) fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// The files in it.
    pub(crate) fn files(&self) -> Result<Vec<Utf8PathBuf>, ImagesError> {
        let read = || -> io::Result<Vec<Utf8PathBuf>> {
            let mut files: Vec<Utf8PathBuf> = self
                .folder
                .read_dir_utf8()?
                .map(|entry| Ok(entry?.into_path()))
                .collect::<io::Result<_>>()?;
            files.sort();
            Ok(files)
        };
        read().map_err(ImagesError::file(&self.folder))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The digest of a file, which is not read as a whole.
pub(crate) fn digest_of(path: &Utf8Path) -> Result<Digest, ImagesError> {
    let read = || -> io::Result<Digest> {
        let mut file = std::fs::File::open(path)?;
        let mut hasher = Digest::hasher();
        let mut block = vec![0; BLOCK];
        loop {
            let read = file.read(&mut block)?;
            if read == 0 {
                return Ok(hasher.finish());
            }
            hasher.update(block.get(..read).unwrap_or(&block));
        }
    };
    read().map_err(ImagesError::file(path))
}
