//! Which files there are, for readers that stream: nothing is read yet, and nothing stops the survey.

use std::fmt;
use std::fs;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};

use crate::walk::{canonical, missing_or, resolve_link};
use crate::{FilesError, Limits};

/// A file that can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Path relative to what was named, with `/` between the parts; the file's own name when a file was named.
    pub relative: String,
    /// Where it is.
    pub path: Utf8PathBuf,
    /// Its size in bytes when it was looked at.
    pub bytes: u64,
    /// Whether it was named itself, and not found in a folder.
    pub named: bool,
}

/// Why something was passed over.
#[derive(Debug)]
pub enum PassedOver {
    /// Its name begins with a dot.
    Hidden,
    /// A device, socket or pipe.
    NotRegular,
    /// Its name is not UTF-8.
    NameNotUtf8,
    /// A symbolic link out of the folder, to nothing, or to a folder that holds it; or the system refused.
    Unreachable(FilesError),
    /// Folders too deep inside each other.
    TooDeep(usize),
    /// There are more files and folders than are looked at.
    TooMany(usize),
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => f.write_str("hidden (its name begins with a dot)"),
            Self::NotRegular => f.write_str("neither a file nor a folder"),
            Self::NameNotUtf8 => f.write_str("its name is not UTF-8"),
            Self::Unreachable(error) => match error {
                FilesError::LinkOutside { .. } => f.write_str("a symbolic link out of the folder"),
                FilesError::LinkBroken { .. } => f.write_str("a symbolic link to nothing"),
                FilesError::LinkLoop { .. } => f.write_str("a symbolic link to a folder that contains it"),
                FilesError::Io { source, .. } => write!(f, "{source}"),
                other => write!(f, "{other}"),
            },
            Self::TooDeep(limit) => write!(f, "more than {limit} folders deep"),
            Self::TooMany(limit) => {
                write!(f, "one of more than {limit} files and folders; the rest is not looked at")
            }
        }
    }
}

/// What there is under a path.
#[derive(Debug, Default)]
pub struct Survey {
    /// The files, sorted by path.
    pub files: Vec<Found>,
    /// What was passed over: relative path and why.
    pub passed_over: Vec<(String, PassedOver)>,
}

/// Looks at the file or folder that is named. Links are followed as long as they stay inside the folder.
///
/// # Errors
/// Only when nothing is at the path, or the system does not let it be looked at.
pub fn survey(path: &Utf8Path, limits: &Limits) -> Result<Survey, FilesError> {
    let metadata = fs::metadata(path).map_err(|source| missing_or(path, "read", source))?;
    let mut survey = Survey::default();
    if metadata.is_dir() {
        let root = canonical(path)?;
        let mut surveyor = Surveyor { limits, root: root.clone(), entries: 0, survey };
        surveyor.folder(path, "", &mut vec![root]);
        survey = surveyor.survey;
        survey.files.sort_by(|left, right| left.relative.cmp(&right.relative));
    } else if metadata.is_file() {
        survey.files.push(Found {
            relative: path.file_name().unwrap_or(path.as_str()).to_owned(),
            path: path.to_owned(),
            bytes: metadata.len(),
            named: true,
        });
    } else {
        return Err(FilesError::NotRegular { path: path.to_owned() });
    }
    Ok(survey)
}

/// Opens a file for reading from its beginning.
///
/// # Errors
/// When the system refuses.
pub fn open(path: &Utf8Path) -> Result<impl Read + Send + use<>, FilesError> {
    fs::File::open(path).map_err(|source| missing_or(path, "read", source))
}

struct Surveyor<'a> {
    limits: &'a Limits,
    root: Utf8PathBuf,
    entries: usize,
    survey: Survey,
}

impl Surveyor<'_> {
    /// `inside` holds the canonical folders from the root down to this one: a link to any of them would never end.
    fn folder(&mut self, folder: &Utf8Path, relative: &str, inside: &mut Vec<Utf8PathBuf>) {
        if inside.len() > self.limits.depth {
            return self.pass(relative.to_owned(), PassedOver::TooDeep(self.limits.depth));
        }
        let names = match self.names(folder, relative) {
            Ok(names) => names,
            Err(source) => {
                let error = missing_or(folder, "list the folder", source);
                return self.pass(relative.to_owned(), PassedOver::Unreachable(error));
            }
        };
        for name in names {
            let path = folder.join(&name);
            let relative = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            if name.starts_with('.') {
                self.pass(relative, PassedOver::Hidden);
            } else if let Err(error) = self.entry(&path, &relative, inside) {
                self.pass(relative, PassedOver::Unreachable(error));
            }
        }
    }

    fn entry(
        &mut self,
        path: &Utf8Path,
        relative: &str,
        inside: &mut Vec<Utf8PathBuf>,
    ) -> Result<(), FilesError> {
        let failed = |source| missing_or(path, "read", source);
        let is_link = fs::symlink_metadata(path).map_err(failed)?.is_symlink();
        let resolved = if is_link { Some(resolve_link(path, &self.root, &self.root)?) } else { None };
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            let resolved = match resolved {
                Some(resolved) => resolved,
                None => canonical(path)?,
            };
            if inside.contains(&resolved) {
                return Err(FilesError::LinkLoop { path: path.to_owned() });
            }
            inside.push(resolved);
            self.folder(path, relative, inside);
            inside.pop();
        } else if metadata.is_file() {
            self.survey.files.push(Found {
                relative: relative.to_owned(),
                path: path.to_owned(),
                bytes: metadata.len(),
                named: false,
            });
        } else {
            self.pass(relative.to_owned(), PassedOver::NotRegular);
        }
        Ok(())
    }

    /// The names in a folder, sorted. Those above the limit are not looked at.
    fn names(&mut self, folder: &Utf8Path, relative: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            if self.entries >= self.limits.entries {
                self.pass(relative.to_owned(), PassedOver::TooMany(self.limits.entries));
                break;
            }
            self.entries += 1;
            match entry?.file_name().into_string() {
                Ok(name) => names.push(name),
                Err(name) => {
                    let name = name.to_string_lossy();
                    let path =
                        if relative.is_empty() { name.into_owned() } else { format!("{relative}/{name}") };
                    self.pass(path, PassedOver::NameNotUtf8);
                }
            }
        }
        names.sort();
        Ok(names)
    }

    fn pass(&mut self, path: String, why: PassedOver) {
        self.survey.passed_over.push((path, why));
    }
}
