//! `scantling rehearse`: an upgrade on a cluster in this process, before it happens on one that matters.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use scantling_files::{Limits, read_file, read_tree, write_file};
use scantling_finding::Finding;
use scantling_rehearse::scenario::{SCENARIO_FILE, Scenario, ScenarioError};
use scantling_rehearse::{Options, Progress, RehearseError, Way, rehearse};
use scantling_report::findings::Texts;

use crate::commands::Format;
use crate::outcome::{Failure, Outcome};
use crate::terminal;

/// Play an upgrade on a cluster in this process, with people on it, and say which promises were kept.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A folder with a rehearsal.yaml: the cluster, its people, the releases, the vendor's way.
    example: Utf8PathBuf,
    /// Upgrade the way the vendor shipped it instead of with Scantling.
    #[arg(long)]
    as_shipped: bool,
    /// Install the new release on an empty cluster instead of upgrading.
    #[arg(long)]
    fresh: bool,
    /// Take one of the example's ways round the incident (with --as-shipped).
    #[arg(long, value_name = "NAME", requires = "as_shipped", conflicts_with = "fresh")]
    variant: Option<String>,
    /// What all chance comes from; the same seed gives the same rehearsal, byte for byte.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Write everything that happened in the cluster to a file, one line an event.
    #[arg(long, value_name = "FILE")]
    trace: Option<Utf8PathBuf>,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let scenario = read(&arguments.example)?;
    if let Some(path) = &arguments.trace {
        if path.starts_with(&arguments.example) {
            return Err(Failure::usage(format!(
                "{path}: a trace inside the example would become a part of it"
            ))
            .with_hint("name a file elsewhere"));
        }
        // Found out now and not when the report is there.
        write_file(path, b"")?;
    }
    let options = Options {
        way: if arguments.as_shipped { Way::AsShipped } else { Way::Scantling },
        fresh: arguments.fresh,
        variant: arguments.variant.clone(),
        seed: arguments.seed,
        kill: None,
    };
    let spinner = terminal::spinner();
    let shown = spinner.clone();
    let progress: Progress = Arc::new(move |line| {
        shown.set_message(terminal::plain(&scantling_report::rehearsal::story_line(line)));
    });
    let result = rehearse(&scenario, &options, progress);
    spinner.finish_and_clear();
    let rehearsal = result.map_err(|error| failure(error, &arguments.example))?;
    if let Some(path) = &arguments.trace {
        write_file(path, (rehearsal.trace.join("\n") + "\n").as_bytes())?;
    }
    let text = match arguments.output {
        Format::Terminal => scantling_report::rehearsal::rehearsal(&rehearsal, terminal::screen()),
        Format::Json => scantling_report::json::rehearsal(&rehearsal)? + "\n",
    };
    terminal::print(&text)?;
    Ok(Outcome::of(usize::from(!rehearsal.ended_well())))
}

/// Reads an example.
pub(crate) fn read(path: &Utf8Path) -> Result<Scenario, Failure> {
    let path = match path.file_name() {
        // Whoever names the file means the example.
        Some(SCENARIO_FILE) => {
            path.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."))
        }
        _ => path,
    };
    let mut reading = read_tree(path, &Limits::default())?;
    crate::input::whole(&reading)?;
    for folder in Scenario::outside(&reading.tree).map_err(|error| failure(Box::new(error).into(), path))? {
        let outside = read_tree(&path.join(&folder), &Limits::default())?;
        crate::input::whole(&outside)?;
        reading
            .tree
            .extend(outside.tree.into_iter().map(|(file, bytes)| (format!("{folder}/{file}"), bytes)));
    }
    Scenario::read(&reading.tree).map_err(|error| failure(Box::new(error).into(), path))
}

fn failure(error: RehearseError, example: &Utf8Path) -> Failure {
    let error = match error {
        RehearseError::Scenario(error) => *error,
        error @ (RehearseError::NoSuchVariant { .. }
        | RehearseError::NothingShipped
        | RehearseError::VariantNeedsShipped) => {
            return Failure::usage(error.to_string());
        }
        error => return Failure::failed(format!("{example}: {error}")),
    };
    match error {
        ScenarioError::NotAnExample => Failure::usage(format!("{example}: {error}"))
            .with_hint("name a folder with a rehearsal.yaml, such as examples/stale-notebook-image"),
        ScenarioError::Release { source, .. } => unreadable(source.findings, example),
        error => {
            let said = match &error {
                ScenarioError::Yaml { source, .. } => source.hint.clone(),
                _ => None,
            };
            let hint = || "docs/how-to/write-an-example.md says what an example consists of".to_owned();
            Failure::usage(format!("{example}/{error}")).with_hint(said.unwrap_or_else(hint))
        }
    }
}

/// A release of an example that can't be read, with the places as a user would write them.
fn unreadable(mut findings: Vec<Finding>, example: &Utf8Path) -> Failure {
    let mut read = BTreeMap::new();
    for file in findings.iter_mut().filter_map(|finding| finding.place.file.as_mut()) {
        file.path = example.join(&file.path).into_string();
        // A file that has gone since is shown without its text.
        if let Ok(bytes) = read_file(Utf8Path::new(&file.path), &Limits::default()) {
            read.insert(file.path.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    let texts: Texts<'_> = read.iter().map(|(path, text)| (path.clone(), text.as_str())).collect();
    Failure::unreadable(&findings, &texts, terminal::screen())
}
