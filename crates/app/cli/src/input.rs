//! Releases, locks and lists from the paths that a user names.

use std::collections::BTreeMap;

use camino::Utf8Path;
use scantling_files::{Limits, Reading, SkipReason, read_file, read_tree};
use scantling_release::{LOCK_FILE, Lock, PublishedList, RELEASE_FILE, Release, Settings, Unreadable};
use scantling_report::findings::Texts;

use crate::outcome::Failure;

/// A folder or file of manifests, read from disk.
pub(crate) struct Folder {
    /// With the passwords in addresses covered: what is shown is taken from here.
    reading: Reading,
    /// As the files are: what is brought to a cluster is taken from here.
    uncovered: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    /// Reads what a path names.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, Failure> {
        let path = match path.file_name() {
            // Whoever names the release file means the release.
            Some(RELEASE_FILE) => {
                path.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."))
            }
            _ => path,
        };
        let mut reading = read_tree(path, &Limits::default())?;
        let uncovered = reading.tree.clone();
        for bytes in reading.tree.values_mut() {
            crate::passwords::cover(bytes);
        }
        if reading.tree.is_empty() {
            return Err(Failure::usage(format!("{path}: no text files in this folder"))
                .with_hint("name the folder that holds the manifests"));
        }
        Ok(Self { reading, uncovered })
    }

    /// Refuses a folder in which a file of text can't be read: what is left out of a release can't be checked.
    pub(crate) fn whole(self) -> Result<Self, Failure> {
        whole(&self.reading)?;
        Ok(self)
    }

    /// The folder that its files are in.
    pub(crate) fn root(&self) -> &Utf8Path {
        &self.reading.root
    }

    /// The release in it.
    pub(crate) fn release(&self, settings: &Settings) -> Result<Release, Unreadable> {
        Release::read_at(self.reading.root.as_str(), &self.reading.tree, settings)
    }

    /// The same if it is the release before the one that the settings are for.
    pub(crate) fn previous_release(&self, settings: &Settings) -> Result<Release, Unreadable> {
        Release::read_previous_at(self.reading.root.as_str(), &self.reading.tree, settings)
    }

    /// The release in it as it is brought to a cluster.
    pub(crate) fn release_to_bring(&self, settings: &Settings) -> Result<Release, Unreadable> {
        Release::read_at(self.reading.root.as_str(), &self.uncovered, settings)
    }

    /// The files of the release as it is brought to a cluster.
    pub(crate) fn files_to_bring(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.uncovered
    }

    /// Its files, by the paths that findings name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (String, &Vec<u8>)> {
        let root = self.reading.root.as_str();
        self.reading.tree.iter().map(move |(path, bytes)| (scantling_release::shown_path(root, path), bytes))
    }

    /// The same without the files that are about the release instead of in it.
    pub(crate) fn content(&self) -> impl Iterator<Item = (String, &Vec<u8>)> {
        let root = self.reading.root.as_str();
        let is_release = self.reading.tree.contains_key(RELEASE_FILE);
        let files = self.reading.tree.iter();
        files
            .filter(move |(path, _)| !is_release || ![RELEASE_FILE, LOCK_FILE].contains(&path.as_str()))
            .map(move |(path, bytes)| (scantling_release::shown_path(root, path), bytes))
    }

    /// What was left out: paths and reasons.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (String, String)> {
        let root = self.reading.root.as_str();
        let skipped = self.reading.skipped.iter();
        skipped.map(move |left| (scantling_release::shown_path(root, &left.path), left.reason.to_string()))
    }

    /// The lock beside the release, if there is one.
    pub(crate) fn lock(&self) -> Result<Option<Lock>, Failure> {
        let Some(bytes) = self.reading.tree.get(LOCK_FILE) else { return Ok(None) };
        Ok(Some(Lock::parse(self.reading.root.join(LOCK_FILE).as_str(), bytes)?))
    }

    /// Adds the texts of its files, by the paths that findings name.
    pub(crate) fn texts<'t>(&'t self, texts: &mut Texts<'t>) {
        for (path, bytes) in self.files() {
            if let Ok(text) = std::str::from_utf8(bytes) {
                texts.insert(path, text);
            }
        }
    }
}

/// Fails if a file was left out that somebody may have meant to be read.
pub(crate) fn whole(reading: &Reading) -> Result<(), Failure> {
    let left = reading.skipped.iter().find(|left| {
        !matches!(left.reason, SkipReason::Hidden)
            && matches!(extension(&left.path), "yaml" | "yml" | "json" | "env")
    });
    match left {
        None => Ok(()),
        Some(left) => {
            Err(Failure::usage(format!("{}: left out, {}", reading.root.join(&left.path), left.reason))
                .with_hint(left.reason.remedy()))
        }
    }
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Reads a list of published images; findings about its lines come with it.
pub(crate) fn published(
    path: &Utf8Path,
) -> Result<(PublishedList, Vec<scantling_finding::Finding>), Failure> {
    let bytes = read_file(path, &Limits::default())?;
    let (list, findings) = PublishedList::parse(path.as_str(), &String::from_utf8_lossy(&bytes));
    if list.is_empty() && findings.is_empty() {
        return Err(Failure::usage(format!("{path}: the list of published images is empty"))
            .with_hint("write one reference a line"));
    }
    Ok((list, findings))
}
