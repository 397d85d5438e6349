//! The release that a command brings or plans, read from disk.

use camino::Utf8PathBuf;
use clap::Args;
use scantling_files::{Limits, read_file};
use scantling_release::{Lock, Release};
use scantling_report::findings::Texts;
use scantling_run::{Bundle, Options};

use crate::cluster::options;
use crate::input::Folder;
use crate::outcome::Failure;
use crate::terminal;

/// The release that a command is about, and what is known of it.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArguments {
    /// The release: a folder with a release.yaml.
    pub(crate) release: Utf8PathBuf,
    /// The lock of the release; without it release.lock beside release.yaml, and if there is none, what registries say now.
    #[arg(long, value_name = "FILE")]
    lock: Option<Utf8PathBuf>,
    /// The release that was installed by other means than Scantling, to tell its fields from people's.
    #[arg(long, value_name = "OLD")]
    installed: Option<Utf8PathBuf>,
}

/// Folders of releases.
pub(crate) struct Folders {
    release: Folder,
    installed: Option<Folder>,
}

/// A release that is to be brought.
pub(crate) struct ToBring {
    pub(crate) release: Release,
    pub(crate) options: Options,
}

impl ReleaseArguments {
    /// Reads the folders.
    pub(crate) fn folders(&self) -> Result<Folders, Failure> {
        let read = |path: &Utf8PathBuf| Folder::read(path)?.whole();
        Ok(Folders { release: read(&self.release)?, installed: self.installed.as_ref().map(read).transpose()? })
    }

    /// Makes releases of them.
    pub(crate) fn read(&self, folders: &Folders, texts: &Texts<'_>) -> Result<ToBring, Failure> {
        let release = |folder: &Folder| {
            folder
                .release_to_bring()
                .map_err(|unreadable| Failure::unreadable(&unreadable.findings, texts, terminal::screen()))
        };
        let lock = match &self.lock {
            Some(path) => Some(Lock::parse(path.as_str(), &read_file(path, &Limits::default())?)?),
            None => folders.release.lock()?,
        };
        Ok(ToBring {
            release: release(&folders.release)?,
            options: Options {
                installed: folders.installed.as_ref().map(release).transpose()?,
                bundle: Some(Bundle::of(folders.release.files_to_bring().clone(), lock.clone())),
                lock,
                ..options()?
            },
        })
    }
}

impl Folders {
    /// The texts of their files, by the paths that findings name.
    pub(crate) fn texts(&self) -> Texts<'_> {
        let mut texts = Texts::new();
        if let Some(installed) = &self.installed {
            installed.texts(&mut texts);
        }
        self.release.texts(&mut texts);
        texts
    }
}
