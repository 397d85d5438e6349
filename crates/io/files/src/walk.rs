//! Reading a file, or every file under a folder.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};

use camino::{Utf8Path, Utf8PathBuf};

use crate::text::why_not_text;
use crate::{FilesError, Limits};

/// Files by their path relative to the folder that was read, with `/` between the parts on every system.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// What [`read_tree`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The text files.
    pub tree: Tree,
    /// What was left out, and why; sorted by path.
    pub skipped: Vec<Skipped>,
    /// The folder that paths in [`Reading::tree`] are relative to: the path given, or the folder of the file given.
    pub root: Utf8PathBuf,
}

/// A file or folder that was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// Path relative to the root.
    pub path: String,
    /// Why.
    pub reason: SkipReason,
}

/// Why a file or folder was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// Its name begins with a dot.
    Hidden,
    /// It holds zero bytes.
    Binary,
    /// It is text, but in UTF-16, which Kubernetes' tools do not read either.
    Utf16,
    /// It is not UTF-8.
    NotUtf8,
    /// A device, socket or pipe.
    NotRegular,
    /// Its name is not UTF-8.
    NameNotUtf8,
}

impl SkipReason {
    /// What to do if the file was meant to be read.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Hidden => "rename it without the leading dot",
            Self::Binary => "name a text file",
            Self::Utf16 | Self::NotUtf8 => "save it as UTF-8",
            Self::NotRegular => "save its content to a file",
            Self::NameNotUtf8 => "rename it",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "hidden (its name begins with a dot)",
            Self::Binary => "binary",
            Self::Utf16 => "UTF-16 text",
            Self::NotUtf8 => "not UTF-8",
            Self::NotRegular => "neither a file nor a folder",
            Self::NameNotUtf8 => "its name is not UTF-8",
        })
    }
}

/// Reads one text file that the user named.
///
/// # Errors
/// When it is missing, not a text file, or larger than [`Limits::file_bytes`].
pub fn read_file(path: &Utf8Path, limits: &Limits) -> Result<Vec<u8>, FilesError> {
    let metadata = fs::metadata(path).map_err(|source| missing_or(path, "read", source))?;
    if metadata.is_dir() {
        return Err(FilesError::IsFolder { path: path.to_owned() });
    }
    if !metadata.is_file() {
        return Err(FilesError::NotRegular { path: path.to_owned() });
    }
    let bytes = read_bounded(path, limits.file_bytes)?;
    match why_not_text(&bytes) {
        Some(reason) => Err(FilesError::NotText { path: path.to_owned(), reason }),
        None => Ok(bytes),
    }
}

/// Reads the text files under a folder, or the one file that is named, within `limits`.
///
/// Hidden and binary files are left out and listed. Symbolic links are followed as long as they stay inside the folder.
///
/// # Errors
/// When the path is missing, a link leaves the folder or leads nowhere, or a limit is passed.
pub fn read_tree(path: &Utf8Path, limits: &Limits) -> Result<Reading, FilesError> {
    let metadata = fs::metadata(path).map_err(|source| missing_or(path, "read", source))?;
    if !metadata.is_dir() {
        let bytes = read_file(path, limits)?;
        let name = path.file_name().unwrap_or(path.as_str()).to_owned();
        let root = path.parent().map(Utf8Path::to_owned).unwrap_or_default();
        return Ok(Reading { tree: Tree::from([(name, bytes)]), skipped: Vec::new(), root });
    }
    let canonical = canonical(path)?;
    let mut walk = Walk {
        limits,
        root: path,
        canonical_root: &canonical,
        entries: 0,
        bytes: 0,
        tree: Tree::new(),
        skipped: Vec::new(),
    };
    walk.folder(path, "", &mut vec![canonical.clone()])?;
    let Walk { tree, mut skipped, .. } = walk;
    skipped.sort();
    Ok(Reading { tree, skipped, root: path.to_owned() })
}

struct Walk<'a> {
    limits: &'a Limits,
    root: &'a Utf8Path,
    canonical_root: &'a Utf8Path,
    entries: usize,
    bytes: u64,
    tree: Tree,
    skipped: Vec<Skipped>,
}

impl Walk<'_> {
    /// `inside` holds the canonical folders from the root down to this one: a link to any of them would never end.
    fn folder(
        &mut self,
        folder: &Utf8Path,
        relative: &str,
        inside: &mut Vec<Utf8PathBuf>,
    ) -> Result<(), FilesError> {
        if inside.len() > self.limits.depth {
            return Err(FilesError::TooDeep { path: folder.to_owned(), limit: self.limits.depth });
        }
        for name in self.names(folder, relative)? {
            let path = folder.join(&name);
            let relative = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            if name.starts_with('.') {
                self.skip(relative, SkipReason::Hidden);
                continue;
            }
            let link = fs::symlink_metadata(&path).map_err(|source| missing_or(&path, "read", source))?;
            let resolved = if link.is_symlink() {
                Some(resolve_link(&path, self.canonical_root, self.root)?)
            } else {
                None
            };
            let metadata = fs::metadata(&path).map_err(|source| missing_or(&path, "read", source))?;
            if metadata.is_dir() {
                let resolved = match resolved {
                    Some(resolved) => resolved,
                    None => canonical(&path)?,
                };
                if inside.contains(&resolved) {
                    return Err(FilesError::LinkLoop { path });
                }
                inside.push(resolved);
                self.folder(&path, &relative, inside)?;
                inside.pop();
            } else if metadata.is_file() {
                self.file(&path, relative)?;
            } else {
                self.skip(relative, SkipReason::NotRegular);
            }
        }
        Ok(())
    }

    /// The names in a folder, sorted, so that the first error is the same on every machine.
    fn names(&mut self, folder: &Utf8Path, relative: &str) -> Result<Vec<String>, FilesError> {
        let failed = |source| missing_or(folder, "list the folder", source);
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(FilesError::TooManyEntries {
                    root: self.root.to_owned(),
                    limit: self.limits.entries,
                });
            }
            match entry.map_err(failed)?.file_name().into_string() {
                Ok(name) => names.push(name),
                Err(name) => {
                    let name = name.to_string_lossy();
                    let path =
                        if relative.is_empty() { name.into_owned() } else { format!("{relative}/{name}") };
                    self.skip(path, SkipReason::NameNotUtf8);
                }
            }
        }
        names.sort();
        Ok(names)
    }

    fn file(&mut self, path: &Utf8Path, relative: String) -> Result<(), FilesError> {
        let bytes = read_bounded(path, self.limits.file_bytes)?;
        if let Some(reason) = why_not_text(&bytes) {
            self.skip(relative, reason);
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > self.limits.total_bytes {
            return Err(FilesError::TreeTooLarge {
                root: self.root.to_owned(),
                path: path.to_owned(),
                limit: self.limits.total_bytes,
            });
        }
        self.tree.insert(relative, bytes);
        Ok(())
    }

    fn skip(&mut self, path: String, reason: SkipReason) {
        self.skipped.push(Skipped { path, reason });
    }
}

/// Where a symbolic link ends, if that is inside the root.
pub(crate) fn resolve_link(
    link: &Utf8Path,
    canonical_root: &Utf8Path,
    root: &Utf8Path,
) -> Result<Utf8PathBuf, FilesError> {
    let target = || fs::read_link(link).map_or_else(|_| "?".to_owned(), |t| t.display().to_string());
    let resolved = canonical(link).map_err(|error| match error {
        FilesError::NotFound { .. } => FilesError::LinkBroken { path: link.to_owned(), target: target() },
        other => other,
    })?;
    if resolved.starts_with(canonical_root) {
        return Ok(resolved);
    }
    Err(FilesError::LinkOutside { path: link.to_owned(), root: root.to_owned(), target: target() })
}

pub(crate) fn canonical(path: &Utf8Path) -> Result<Utf8PathBuf, FilesError> {
    path.canonicalize_utf8().map_err(|source| missing_or(path, "read", source))
}

/// Reads at most `limit` bytes: the size that the file system reports may have changed meanwhile.
fn read_bounded(path: &Utf8Path, limit: u64) -> Result<Vec<u8>, FilesError> {
    let failed = |source| missing_or(path, "read", source);
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(failed)?.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(FilesError::FileTooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

pub(crate) fn missing_or(path: &Utf8Path, action: &'static str, source: io::Error) -> FilesError {
    match source.kind() {
        io::ErrorKind::NotFound => FilesError::NotFound { path: path.to_owned(), similar: similar(path) },
        _ => FilesError::Io { path: path.to_owned(), action, source },
    }
}

/// How many entries of a folder are compared for a spelling hint.
const SIMILAR_ENTRIES: usize = 1_000;

/// An entry of the same folder that differs by case or by at most two letters.
fn similar(path: &Utf8Path) -> Option<String> {
    let wanted = path.file_name()?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    };
    let mut best: Option<(usize, String)> = None;
    for entry in folder.read_dir_utf8().ok()?.take(SIMILAR_ENTRIES).filter_map(Result::ok) {
        let name = entry.file_name();
        let distance = distance(&name.to_lowercase(), &wanted.to_lowercase());
        let candidate = (distance, name.to_owned());
        if distance <= 2 && wanted.len() > 3 && best.as_ref().is_none_or(|best| candidate < *best) {
            best = Some(candidate);
        }
    }
    best.map(|(_, name)| path.with_file_name(name).into_string())
}

/// Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut next = vec![i + 1];
        for ((r, above), diagonal) in right.iter().zip(row.iter().skip(1)).zip(&row) {
            let last = next.last().copied().unwrap_or(0);
            next.push((diagonal + usize::from(l != *r)).min(above + 1).min(last + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
