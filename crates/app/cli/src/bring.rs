//! A release is read from disk and brought to a cluster, or it is planned to be.

use camino::Utf8PathBuf;
use clap::Args;
use scantling_files::{Limits, read_file};
use scantling_release::{Lock, Release, Settings, Unreadable};
use scantling_report::findings::Texts;
use scantling_report::run::{Frame, Purpose};
use scantling_run::{Action, Bundle, Options, upgrade};

use crate::cluster::{ClusterArguments, options};
use crate::input::Folder;
use crate::outcome::{Failure, Outcome};
use crate::registries::RegistryArguments;
use crate::release_settings::ReleaseArguments;
use crate::runs::{self, AskArguments, Job, ShownArguments};
use crate::terminal;

/// The release that a command is about, and what is known of it.
#[derive(Debug, Args)]
struct BroughtArguments {
    /// The release: a folder with a release.yaml.
    release: Utf8PathBuf,
    /// The lock of the release; without it release.lock beside release.yaml, and if there is none, what registries say now.
    #[arg(long, value_name = "FILE")]
    lock: Option<Utf8PathBuf>,
    /// The release that was installed by other means than Scantling, to tell its fields from people's.
    #[arg(long, value_name = "OLD")]
    installed: Option<Utf8PathBuf>,
}

/// Everything that a plan or an upgrade is told.
#[derive(Debug, Args)]
pub(crate) struct BringArguments {
    #[command(flatten)]
    release: BroughtArguments,
    #[command(flatten)]
    settings: ReleaseArguments,
    #[command(flatten)]
    shown: ShownArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registries: RegistryArguments,
}

/// Folders of releases.
struct Folders {
    release: Folder,
    installed: Option<Folder>,
}

/// A release that is to be brought.
struct ToBring {
    release: Release,
    options: Options,
}

impl BroughtArguments {
    /// Reads the folders.
    fn folders(&self) -> Result<Folders, Failure> {
        let read = |path: &Utf8PathBuf| Folder::read(path)?.whole();
        Ok(Folders {
            release: read(&self.release)?,
            installed: self.installed.as_ref().map(read).transpose()?,
        })
    }

    /// Makes releases of them.
    fn read(&self, settings: &Settings, folders: &Folders, texts: &Texts<'_>) -> Result<ToBring, Failure> {
        let unreadable =
            |unreadable: Unreadable| Failure::unreadable(&unreadable.findings, texts, terminal::screen());
        let lock = match &self.lock {
            Some(path) => Some(Lock::parse(path.as_str(), &read_file(path, &Limits::default())?)?),
            None => folders.release.lock()?,
        };
        let installed =
            folders.installed.as_ref().map(|folder| folder.previous_release(settings)).transpose();
        let files = folders.release.files_to_bring().clone();
        // Findings quote the files: what they quote has its passwords covered.
        let shown = folders.release.release(settings).map_err(unreadable)?;
        let mut release = folders.release.release_to_bring(settings).map_err(unreadable)?;
        release.findings = shown.findings;
        Ok(ToBring {
            release,
            options: Options {
                installed: installed.map_err(unreadable)?,
                bundle: Some(Bundle::of(files, settings.clone(), lock.clone())),
                lock,
                ..options()?
            },
        })
    }
}

impl Folders {
    /// The texts of their files, by the paths that findings name.
    fn texts(&self) -> Texts<'_> {
        let mut texts = Texts::new();
        if let Some(installed) = &self.installed {
            installed.texts(&mut texts);
        }
        self.release.texts(&mut texts);
        texts
    }
}

/// Plans to bring a release; brings it if it is said whether to ask first.
pub(crate) fn bring(arguments: &BringArguments, ask: Option<&AskArguments>) -> Result<Outcome, Failure> {
    let folders = arguments.release.folders()?;
    let texts = folders.texts();
    let read = arguments.release.read(&arguments.settings.settings(), &folders, &texts)?;
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let env = connected.environment(&arguments.registries, read.release.namespace.as_deref()).await?;
        let job = Job {
            frame: Frame {
                action: Action::Upgrade,
                purpose: Purpose::Plan,
                place: &connected.place.to_string(),
                command: &runs::again("upgrade"),
                texts: &texts,
                detail: arguments.shown.detail(),
                screen: terminal::screen(),
            },
            options: read.options,
            shown: &arguments.shown,
        };
        let run =
            async |options: &_, sink: &mut dyn FnMut(_)| upgrade(&env, &read.release, options, sink).await;
        match ask {
            None => job.plan(&run).await,
            Some(ask) => job.carry_out(ask, &run).await,
        }
    })
}
