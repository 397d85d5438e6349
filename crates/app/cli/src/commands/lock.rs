//! `scantling lock`: what every reference of a release leads to, written down.

use camino::Utf8PathBuf;
use clap::Args;
use scantling_files::write_file;
use scantling_release::{LOCK_FILE, Lock, answer_findings};
use scantling_report::findings::{self, Texts};
use scantling_report::{json, lock as report};

use crate::commands::Format;
use crate::input::Folder;
use crate::outcome::{Failure, Outcome};
use crate::registries::{Registries, RegistryArguments, somebody_answered};
use crate::release_settings::ReleaseArguments;
use crate::terminal;

/// Resolve every reference of a release and write release.lock: digests, platforms, sizes, packages, where it was found.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The release: a folder with a release.yaml, or a folder or file of manifests.
    release: Utf8PathBuf,
    /// Where the lock is written; beside release.yaml if not given.
    #[arg(long, value_name = "FILE")]
    output_file: Option<Utf8PathBuf>,
    /// Do not read the layers: faster, but the lock cannot tell whether what is claimed of an image is true.
    #[arg(long)]
    no_contents: bool,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
    #[command(flatten)]
    settings: ReleaseArguments,
    #[command(flatten)]
    registries: RegistryArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let folder = Folder::read(&arguments.release)?.whole()?;
    let mut texts = Texts::new();
    folder.texts(&mut texts);
    let screen = terminal::screen();
    let release = folder
        .release(&arguments.settings.settings())
        .map_err(|unreadable| Failure::unreadable(&unreadable.findings, &texts, screen))?;
    let path = match &arguments.output_file {
        Some(path) => path.clone(),
        None => folder.root().join(LOCK_FILE),
    };
    let registries = Registries::new(&arguments.registries)?;
    let (images, answers) = registries.resolve(&release.distinct_references(), !arguments.no_contents);
    let faults = answer_findings(&release, &answers);
    if !faults.is_empty() {
        terminal::print(&match arguments.output {
            Format::Json => json::unreadable(&faults)? + "\n",
            Format::Terminal => {
                let mut text = findings::findings(&faults, &texts, screen);
                text.push_str(&report::refused(&release, &faults));
                text.push('\n');
                text
            }
        })?;
        if images.is_empty() {
            somebody_answered(&answers)?;
        }
        return Ok(Outcome::Faults);
    }
    let lock = Lock::from_resolved(&release, images)?;
    write_file(&path, lock.to_text().as_bytes())?;
    terminal::print(&match arguments.output {
        Format::Json => json::lock(&lock)? + "\n",
        Format::Terminal => report::lock(&lock, path.as_str(), screen),
    })?;
    Ok(Outcome::Fine)
}
