//! `scantling refs`: every image reference in files, with its place, its route and when it is live.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use clap::Args;
use scantling_finding::Severity;
use scantling_manifest::{Options, discover};
use scantling_report::findings::{self, Texts};
use scantling_report::references::{self, Which};
use scantling_report::{json, style};

use crate::commands::Format;
use crate::input::Folder;
use crate::outcome::{Failure, Outcome};
use crate::release_settings::ReleaseArguments;
use crate::terminal;

/// List every image reference in files: where it is, how the cluster comes to use it, and when it is live.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files and folders: YAML, JSON, env files, scripts, sources.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<Utf8PathBuf>,
    /// Show what nothing pulls as well: notes, statuses, and texts that only look like references.
    #[arg(long)]
    all: bool,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
    #[command(flatten)]
    settings: ReleaseArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let folders = arguments.paths.iter().map(|path| Folder::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut files = BTreeMap::new();
    let mut skipped = Vec::new();
    for folder in &folders {
        files.extend(folder.content().map(|(path, bytes)| (path, bytes.clone())));
        skipped.extend(folder.skipped());
    }
    let mut found = discover(&files, &Options::default());
    let settings = arguments.settings.settings();
    for folder in &folders {
        let release = match folder.release(&settings) {
            Ok(release) => release,
            // A release that cannot be read is no reason to show less: `check` says what is wrong with it.
            Err(_) if settings.is_empty() => continue,
            Err(unreadable) => {
                let mut texts = Texts::new();
                folder.texts(&mut texts);
                return Err(Failure::unreadable(&unreadable.findings, &texts, terminal::screen()));
            }
        };
        let own: BTreeSet<String> = folder.files().map(|(path, _)| path).collect();
        if release.version.is_some() {
            release.annotate(&mut found, |path| own.contains(path));
        }
    }
    let screen = terminal::screen();
    terminal::print(&match arguments.output {
        Format::Json => json::references(&found.candidates, &found.findings, &skipped)? + "\n",
        Format::Terminal => {
            let which = if arguments.all { Which::All } else { Which::Relevant };
            let mut text = references::references(&found.candidates, which, screen);
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&findings::lines(&found.findings));
            for (path, reason) in &skipped {
                let line = format!("left out: {} ({reason})", style::safe(path));
                text.push_str(&style::paint(style::FAINT, &line));
                text.push('\n');
            }
            let references = references::summary(&found.candidates, files.len(), skipped.len());
            let faults = findings::summary(&found.findings);
            text.push_str(&style::last_line(&format!("{references}; {faults}"), screen));
            text
        }
    })?;
    Ok(Outcome::of(found.findings.iter().filter(|finding| finding.severity == Severity::Error).count()))
}
