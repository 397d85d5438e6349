//! `scantling audit`: what a cluster runs, what it would start next, and what does not agree.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use scantling_audit::{Knowledge, KnownRelease, Options, RegistryAnswers, audit};
use scantling_files::{Limits, read_file};
use scantling_release::{Lock, Settings};
use scantling_report::findings::Texts;
use scantling_report::{audit as report, json};
use scantling_snapshot::{Snapshot, read};

use crate::commands::Format;
use crate::input::Folder;
use crate::outcome::{Failure, Outcome};
use crate::terminal;

/// The file beside a snapshot's objects that holds what registries answered when it was taken.
const ANSWERS_FILE: &str = "registry.json";

/// Things that could not be read and are named; the others are counted.
const SHOWN_SKIPPED: usize = 10;

/// Say what runs, what nodes would start next and what does not agree, with evidence and the command that mends it.
///
/// Nothing of Scantling has to be installed, and nothing is written. Without a release it finds what contradicts itself; with one, what
/// differs from it.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 if a promise is broken: another image runs than is meant, would start, or cannot be pulled; 3 if there is nothing to judge."
)]
pub(crate) struct Arguments {
    /// A dump of the cluster, as files and folders: `kubectl get -A -o json` or `-o yaml`, `kubectl cluster-info dump`, a must-gather.
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    snapshot: Vec<Utf8PathBuf>,
    /// The release that the cluster should have: its folder, or a release.lock.
    #[arg(long, value_name = "RELEASE")]
    release: Option<Utf8PathBuf>,
    /// Other releases, to say what runs instead.
    #[arg(long, value_name = "RELEASE", num_args = 1..)]
    known: Vec<Utf8PathBuf>,
    /// What registries answer, as JSON: `{"REFERENCE": {"digest": "sha256:…"}}`; by default registry.json in a folder of the snapshot.
    #[arg(long, value_name = "FILE")]
    answers: Option<Utf8PathBuf>,
    /// Only what concerns these namespaces. Evidence is taken from everywhere.
    #[arg(short, long, value_name = "NAMESPACE", num_args = 1..)]
    namespace: Vec<String>,
    /// How many images a node lists at most: `nodeStatusMaxImages` of its kubelet.
    #[arg(long, value_name = "N", default_value_t = Options::default().listed_images)]
    listed_images: usize,
    /// Name everything, instead of joining equal rows.
    #[arg(long)]
    wide: bool,
    /// Tell the story of a row.
    #[arg(long, value_name = "ROW")]
    explain: Option<String>,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let snapshot = read(&arguments.snapshot, &scantling_snapshot::Limits::default(), &mut |_| {})
        .map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(nowhere) = arguments.namespace.iter().find(|name| !has_namespace(&snapshot, name)) {
        return Err(Failure::failed(format!("the snapshot shows nothing in namespace {nowhere}"))
            .with_hint("nothing can be said of it; name another, or leave -n out"));
    }
    let knowledge = knowledge(arguments)?;
    let options = Options { namespaces: arguments.namespace.clone(), listed_images: arguments.listed_images };
    let mut found = audit(&snapshot.observed, &knowledge, &options);
    found.unseen.extend(unseen(&snapshot));
    if let Some(id) = &arguments.explain {
        let rows = found.find(id);
        if rows.is_empty() {
            return Err(Failure::usage(format!("there is no row {id}"))
                .with_hint("`scantling audit` without --explain lists the rows, each with its id"));
        }
        terminal::print(&match arguments.output {
            Format::Json => json::audit_rows(&rows)? + "\n",
            Format::Terminal => report::story(&rows, terminal::screen()),
        })?;
        return Ok(Outcome::of(rows.iter().filter(|row| row.is_broken()).count()));
    }
    let place = arguments.snapshot.iter().map(|path| path.as_str()).collect::<Vec<_>>().join(", ");
    terminal::print(&match arguments.output {
        Format::Json => json::audit(&found, &place)? + "\n",
        Format::Terminal => report::audit(&found, &place, arguments.wide, terminal::screen()),
    })?;
    if found.broken() == 0 && found.looked.pods == 0 {
        // Whoever asks a script whether all is well must not be told so by an empty file.
        return Err(Failure::failed("nothing can be said: the snapshot shows no pods")
            .with_hint("`kubectl get nodes,pods -A -o json` writes what is needed at the least"));
    }
    Ok(Outcome::of(found.broken()))
}

fn has_namespace(snapshot: &Snapshot, namespace: &str) -> bool {
    let of_pods = || snapshot.observed.pod_records().flatten().any(|pod| &*pod.namespace == namespace);
    snapshot.observed.iter().any(|(key, _)| key.namespace.as_deref() == Some(namespace)) || of_pods()
}

/// What the snapshot does not show.
fn unseen(snapshot: &Snapshot) -> Vec<String> {
    let mut lines: Vec<String> = snapshot
        .not_seen
        .iter()
        .map(|kind| match &kind.missing {
            Some(right) => format!("{}: {}; the right to {right} was missing", kind.resource, kind.why),
            None => format!("{}: {}", kind.resource, kind.why),
        })
        .collect();
    // The answers of registries are no objects; they are read by themselves.
    let left = snapshot.skipped.iter().filter(|left| !left.path.ends_with(ANSWERS_FILE));
    let left: Vec<String> = left.map(|left| format!("{}: {}", left.place(), left.why)).collect();
    lines.extend(left.iter().take(SHOWN_SKIPPED).cloned());
    let more = left.len().saturating_sub(SHOWN_SKIPPED) + snapshot.skipped_more;
    if more > 0 {
        lines.push(format!("and {more} more that could not be read"));
    }
    lines
}

fn knowledge(arguments: &Arguments) -> Result<Knowledge, Failure> {
    let mut releases = Vec::new();
    for path in arguments.release.iter().chain(&arguments.known) {
        releases.push(known(path)?);
    }
    if arguments.release.is_none() && !releases.is_empty() {
        return Err(
            Failure::usage("--known needs --release").with_hint("say which release the cluster should have")
        );
    }
    let beside = || arguments.snapshot.iter().map(|path| path.join(ANSWERS_FILE)).find(|path| path.is_file());
    let registry = match arguments.answers.clone().or_else(beside) {
        Some(path) => {
            let bytes = read_file(&path, &Limits::default())?;
            let read = RegistryAnswers::parse(path.as_str(), &bytes);
            Some(read.map_err(|error| Failure::failed(error.to_string()))?)
        }
        None => None,
    };
    Ok(Knowledge { releases, registry })
}

/// A release from its folder, or from its lock alone.
fn known(path: &Utf8Path) -> Result<KnownRelease, Failure> {
    let title = |lock: &Lock| match &lock.release.version {
        Some(version) => format!("{} {version}", lock.release.name),
        None => lock.release.name.clone(),
    };
    if path.is_file() && path.file_name() != Some(scantling_release::RELEASE_FILE) {
        let lock = Lock::parse(path.as_str(), &read_file(path, &Limits::default())?)?;
        return Ok(KnownRelease { title: title(&lock), lock: Some(lock), release: None });
    }
    let folder = Folder::read(path)?;
    let lock = folder.lock()?;
    let release = folder
        .release(&Settings::default())
        .map_err(|unreadable| Failure::unreadable(&unreadable.findings, &Texts::new(), terminal::screen()))?;
    Ok(KnownRelease { title: release.title(), lock, release: Some(release) })
}
