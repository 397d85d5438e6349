//! Writing one file whole or not at all.

use std::fs;
use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};

use crate::FilesError;

/// Writes `bytes` to `path`: first beside it, then renamed into place, so that a reader sees the old or the new content
/// and never half of one.
///
/// # Errors
/// When the folder does not exist or cannot be written to.
pub fn write_file(path: &Utf8Path, bytes: &[u8]) -> Result<(), FilesError> {
    let failed = |source| FilesError::Io { path: path.to_owned(), action: "write", source };
    let name = path.file_name().ok_or_else(|| FilesError::IsFolder { path: path.to_owned() })?;
    // What a link leads to is what is written; a device or pipe would be replaced by a file.
    let path = &path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(FilesError::IsFolder { path: path.clone() }),
        Ok(there) if !there.is_file() => {
            return Err(failed(std::io::Error::other("it is a device or pipe; name a file")));
        }
        _ => {}
    }
    let beside: Utf8PathBuf = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = fs::File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    written.map_err(|source| {
        // The part file is ours; if removing it fails too, the first error says more.
        let _ = fs::remove_file(&beside);
        failed(source)
    })
}

/// Makes a folder and those above it, if they are not there. What it holds is for its owner only, on systems that know owners.
///
/// # Errors
/// When a file is in the way, or the system refuses.
pub fn make_folder(path: &Utf8Path) -> Result<(), FilesError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| FilesError::Io {
        path: path.to_owned(),
        action: "make the folder",
        source,
    })
}

/// Whether there is nothing at a path, or a folder that holds nothing.
///
/// # Errors
/// When it is no folder, or the system refuses.
pub fn is_vacant(path: &Utf8Path) -> Result<bool, FilesError> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(FilesError::Io { path: path.to_owned(), action: "list the folder", source }),
    }
}

/// Removes a file. One that is not there counts as removed.
///
/// # Errors
/// When it is no file, or the system refuses.
pub fn remove_file(path: &Utf8Path) -> Result<(), FilesError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(FilesError::Io { path: path.to_owned(), action: "remove", source })
        }
        _ => Ok(()),
    }
}
