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
