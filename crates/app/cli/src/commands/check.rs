//! `scantling check`: what is wrong with a release, before any cluster sees it.

use camino::Utf8PathBuf;
use clap::Args;
use scantling_finding::Severity;
use scantling_release::{Against, Checked, Release, check};
use scantling_report::findings::Texts;

use crate::commands::Format;
use crate::input::{self, Folder};
use crate::outcome::{Failure, Outcome};
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
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let folder = Folder::read(&arguments.release)?;
    let previous = arguments.from.as_deref().map(Folder::read).transpose()?;
    let mut texts = Texts::new();
    folder.texts(&mut texts);
    if let Some(previous) = &previous {
        previous.texts(&mut texts);
    }
    let list = arguments.published.as_deref().map(input::published).transpose()?;
    let release = match folder.release() {
        Ok(release) => release,
        Err(unreadable) => {
            return Err(crate::outcome::unreadable(&unreadable.findings, &texts, terminal::screen()));
        }
    };
    let old = match previous.as_ref().map(Folder::release).transpose() {
        Ok(old) => old,
        Err(unreadable) => {
            return Err(crate::outcome::unreadable(&unreadable.findings, &texts, terminal::screen()));
        }
    };
    let lock = folder.lock()?;
    let old_lock = match &previous {
        Some(previous) => previous.lock()?,
        None => None,
    };
    let against = Against {
        lock: lock.as_ref(),
        previous: old.as_ref().map(|old| (old, old_lock.as_ref())),
        published: list.as_ref().map(|(list, _)| list),
        answers: None,
    };
    let mut checked = check(&release, against);
    if let Some((_, findings)) = &list {
        checked.findings.extend(findings.iter().cloned());
    }
    show(arguments.output, &release, &checked, &texts)?;
    Ok(Outcome::of(checked.count(Severity::Error)))
}

fn show(format: Format, release: &Release, checked: &Checked, texts: &Texts<'_>) -> Result<(), Failure> {
    let text = match format {
        Format::Json => scantling_report::json::check(release, checked)? + "\n",
        Format::Terminal => {
            let mut text = scantling_report::findings::findings(&checked.findings, texts, terminal::screen());
            text.push_str(&scantling_report::findings::check_summary(release, checked));
            text.push('\n');
            text
        }
    };
    Ok(terminal::print(&text)?)
}
