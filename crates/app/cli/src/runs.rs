//! What plans, upgrades and the way back have in common: a release that is read, a run that is watched, a report.

use std::io::IsTerminal as _;

use camino::Utf8PathBuf;
use clap::Args;
use scantling_files::{Limits, read_file};
use scantling_release::{Lock, Release};
use scantling_report::findings::Texts;
use scantling_report::json;
use scantling_report::objects::Detail;
use scantling_report::run::{End, Frame};
use scantling_run::{Options, RunError, RunReport};
use tokio::runtime::Runtime;

use crate::commands::Format;
use crate::input::Folder;
use crate::outcome::{Failure, Outcome};
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

/// How a run is shown.
#[derive(Debug, Args)]
pub(crate) struct ShownArguments {
    /// Show every object and field.
    #[arg(long, short)]
    verbose: bool,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub(crate) output: Format,
}

impl ShownArguments {
    pub(crate) fn detail(&self) -> Detail {
        if self.verbose { Detail::All } else { Detail::Summary }
    }
}

/// Releases, read.
pub(crate) struct Read {
    pub(crate) release: Release,
    pub(crate) lock: Option<Lock>,
    pub(crate) installed: Option<Release>,
}

/// Folders of releases.
pub(crate) struct Folders {
    release: Folder,
    installed: Option<Folder>,
}

impl ReleaseArguments {
    /// Reads the folders.
    pub(crate) fn folders(&self) -> Result<Folders, Failure> {
        let read = |path: &Utf8PathBuf| Folder::read(path)?.whole();
        Ok(Folders {
            release: read(&self.release)?,
            installed: self.installed.as_ref().map(read).transpose()?,
        })
    }

    /// Makes releases of them.
    pub(crate) fn read(&self, folders: &Folders, texts: &Texts<'_>) -> Result<Read, Failure> {
        let release = |folder: &Folder| {
            folder
                .release_to_bring()
                .map_err(|unreadable| Failure::unreadable(&unreadable.findings, texts, terminal::screen()))
        };
        let lock = match &self.lock {
            Some(path) => Some(Lock::parse(path.as_str(), &read_file(path, &Limits::default())?)?),
            None => folders.release.lock()?,
        };
        Ok(Read {
            release: release(&folders.release)?,
            lock,
            installed: folders.installed.as_ref().map(release).transpose()?,
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

impl Read {
    /// How the run is to go.
    pub(crate) fn options(&self) -> Options {
        Options { lock: self.lock.clone(), installed: self.installed.clone(), ..Options::default() }
    }
}

/// The runtime of a command that talks to a cluster. Signals are answered while a thread computes.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Shows a run's report and says what the shell is told.
pub(crate) fn report(
    result: &Result<RunReport, RunError>,
    frame: &Frame<'_>,
    format: Format,
) -> Result<Outcome, Failure> {
    terminal::print(&match format {
        Format::Json => json::run(result, frame)? + "\n",
        Format::Terminal => scantling_report::run::run(result, frame),
    })?;
    Ok(Outcome::of(usize::from(End::of(result).0 != End::Done)))
}

/// Whether somebody is there who can be asked.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question that only `y` or `yes` answers with yes.
pub(crate) async fn ask(question: &str) -> Result<bool, Failure> {
    terminal::complain(&format!("{question} [y/N] "));
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = answer.await.map_err(|error| Failure::failed(error.to_string()))??;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
