//! `scantling check`: what is wrong with a release, before any cluster sees it.

use camino::Utf8PathBuf;
use clap::Args;
use scantling_finding::Severity;
use scantling_release::{Against, check};
use scantling_report::findings::{self, Texts};
use scantling_report::json;

use crate::commands::Format;
use crate::input::{self, Folder};
use crate::outcome::{Failure, Outcome};
use crate::registries::{Registries, RegistryArguments, somebody_answered};
use crate::release_settings::ReleaseArguments;
use crate::terminal;

/// Find what is wrong with a release: images that cannot be pulled, names that get new content, fallbacks, false claims.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The release: a folder with a release.yaml, or a folder or file of manifests.
    release: Utf8PathBuf,
    /// The release that it is to follow, to compare name by name.
    #[arg(long, value_name = "OLD")]
    from: Option<Utf8PathBuf>,
    /// A list of published images, one a line. If its first line is `# complete: WHO, WHEN`, what is not in it does not exist.
    #[arg(long, value_name = "LIST")]
    published: Option<Utf8PathBuf>,
    /// Ask no registry.
    #[arg(long)]
    offline: bool,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
    #[command(flatten)]
    settings: ReleaseArguments,
    #[command(flatten)]
    registries: RegistryArguments,
}

impl Arguments {
    /// Whether registries are asked. A list is an answer of its own, unless the user also says where to ask.
    fn asks(&self) -> bool {
        !self.offline && (self.published.is_none() || self.registries.are_given())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let folder = Folder::read(&arguments.release)?.whole()?;
    let previous = arguments.from.as_deref().map(Folder::read).transpose()?;
    let mut texts = Texts::new();
    folder.texts(&mut texts);
    if let Some(previous) = &previous {
        previous.texts(&mut texts);
    }
    let list = arguments.published.as_deref().map(input::published).transpose()?;
    let settings = arguments.settings.settings();
    let release = match folder.release(&settings) {
        Ok(release) => release,
        Err(unreadable) => {
            terminal::print(&match arguments.output {
                Format::Json => json::unreadable(&unreadable.findings)? + "\n",
                Format::Terminal => {
                    let path = arguments.release.as_str();
                    findings::unreadable(&unreadable.findings, path, &texts, terminal::screen())
                }
            })?;
            return Ok(Outcome::Faults);
        }
    };
    let old = match previous.as_ref().map(|folder| folder.previous_release(&settings)).transpose() {
        Ok(old) => old,
        Err(unreadable) => {
            return Err(Failure::unreadable(&unreadable.findings, &texts, terminal::screen()));
        }
    };
    let lock = folder.lock()?;
    let old_lock = match &previous {
        Some(previous) => previous.lock()?,
        None => None,
    };
    let answers = if arguments.asks() {
        Some(Registries::new(&arguments.registries)?.probe(&release.distinct_references()))
    } else {
        None
    };
    let against = Against {
        lock: lock.as_ref(),
        previous: old.as_ref().map(|old| (old, old_lock.as_ref())),
        published: list.as_ref().map(|(list, _)| list),
        answers: answers.as_ref(),
    };
    let mut checked = check(&release, against);
    if let Some((_, findings)) = &list {
        checked.findings.extend(findings.iter().cloned());
    }
    terminal::print(&match arguments.output {
        Format::Json => json::check(&release, &checked)? + "\n",
        Format::Terminal => {
            findings::check(&release, arguments.release.as_str(), &checked, &texts, terminal::screen())
        }
    })?;
    let outcome = Outcome::of(checked.count(Severity::Error));
    if let (Outcome::Fine, Some(answers)) = (outcome, &answers) {
        somebody_answered(answers)?;
    }
    Ok(outcome)
}
