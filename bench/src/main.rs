//! Measures what users wait for: `cargo run --release -p bench`.
//!
//! Whole processes are timed from outside, start included. Figures that need something that isn't there are left out with
//! the reason.

#![allow(clippy::print_stdout, reason = "a benchmark speaks to whoever runs it")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

mod audit;
mod real;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;

/// Measures what users wait for.
#[derive(Parser)]
struct Arguments {
    /// Runs of each command; the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Measure this binary instead of building it.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Measure only this.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Also build the binary from nothing, in a folder of its own, and say how long that takes.
    #[arg(long)]
    clean_build: bool,
    /// Read this dump and say how long it took: what a part of the measurement starts.
    #[arg(long, hide = true)]
    read: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// What needs nothing but this machine.
    Local,
    /// What needs a real API server.
    Real,
    /// Of that, what concerns the operator: it takes no peers and a few minutes.
    Operator,
    /// Reading the dumps of big clusters.
    Audit,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(dump) = arguments.read {
        return audit::read_once(dump);
    }
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the bench has no workspace")?.to_path_buf();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores");
    if arguments.clean_build {
        clean_build(&root)?;
    }
    let binary = match arguments.binary {
        Some(binary) => binary,
        None => build(&root)?,
    };
    if matches!(arguments.only, None | Some(Part::Audit)) {
        audit::measure(&binary, arguments.runs)?;
    }
    if matches!(arguments.only, None | Some(Part::Local)) {
        rehearsals(&root, &binary, arguments.runs)?;
        references(&binary, arguments.runs)?;
        first_get(&root, &binary, arguments.runs)?;
    }
    match arguments.only {
        None | Some(Part::Real) => real::measure(&root, &binary)?,
        Some(Part::Operator) => real::measure_operator(&root, &binary)?,
        Some(Part::Local | Part::Audit) => {}
    }
    Ok(())
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let status = Command::new("cargo").args(["build", "--release", "--quiet"]).current_dir(root).status()?;
    anyhow::ensure!(status.success(), "the binary does not build");
    Ok(root.join("target/release/scantling"))
}

fn clean_build(root: &Path) -> anyhow::Result<()> {
    let folder = root.join("target/bench-clean-build");
    let _ = std::fs::remove_dir_all(&folder);
    let started = Instant::now();
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet"])
        .env("CARGO_TARGET_DIR", &folder)
        .current_dir(root)
        .status()?;
    anyhow::ensure!(status.success(), "the binary does not build");
    println!("clean release build: {}", shown(started.elapsed()));
    std::fs::remove_dir_all(&folder).context("failed to remove the clean build")
}

/// Every example, both ways: time, and events of the sandbox in a second.
fn rehearsals(root: &Path, binary: &Path, runs: usize) -> anyhow::Result<()> {
    for example in folders(&root.join("examples"))? {
        let name = example.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let story = std::fs::read_to_string(example.join("rehearsal.yaml"))?;
        let shipped = story.lines().any(|line| line.starts_with("shipped:"));
        for way in [Some(&[][..]), shipped.then_some(&["--as-shipped"][..])].into_iter().flatten() {
            let mut command = Command::new(binary);
            command.arg("rehearse").arg(&example).args(way).args(["--output", "json"]).current_dir(root);
            let (time, output) = median(&mut command, runs)?;
            let report: serde_json::Value =
                serde_json::from_slice(&output).context("the report is not JSON")?;
            let events = report.get("events").and_then(serde_json::Value::as_u64).unwrap_or_default();
            let rate = per_second(events, time);
            println!("rehearse {name} {}: {}, {events} events, {rate} events/s", way.join(" "), shown(time));
        }
    }
    Ok(())
}

/// Reference discovery over real manifests, if there are any.
fn references(binary: &Path, runs: usize) -> anyhow::Result<()> {
    let Some(inputs) = std::env::var_os("SCANTLING_REAL_INPUTS").map(PathBuf::from) else {
        println!("refs: left out, SCANTLING_REAL_INPUTS names no folder of manifests");
        return Ok(());
    };
    let bytes = size(&inputs)?;
    let (time, _) = median(Command::new(binary).args(["refs", "--output", "json"]).arg(&inputs), runs)?;
    println!("refs over {bytes} bytes: {}, {:.1} MB/s", shown(time), mega_per_second(bytes, time));
    Ok(())
}

/// From the start of a sandbox to kubectl's first answer.
fn first_get(root: &Path, binary: &Path, runs: usize) -> anyhow::Result<()> {
    let kubectl = std::env::var_os("SCANTLING_TEST_KUBECTL")
        .map_or_else(|| root.join(".cache/tools/kubectl/kubectl"), PathBuf::from);
    if !kubectl.is_file() {
        println!(
            "sandbox to first kubectl get: left out, kubectl is not installed (cargo xtask test --install)"
        );
        return Ok(());
    }
    let mut command = Command::new(binary);
    command.arg("sandbox").arg(root.join("examples/stale-notebook-image")).arg("--");
    command.arg(kubectl).args(["get", "nodes"]).current_dir(root);
    let (time, _) = median(&mut command, runs)?;
    println!("sandbox to first kubectl get: {}", shown(time));
    Ok(())
}

fn median(command: &mut Command, runs: usize) -> anyhow::Result<(Duration, Vec<u8>)> {
    let mut times = Vec::new();
    let mut last = Vec::new();
    for _ in 0..=runs.max(1) {
        let started = Instant::now();
        let output =
            command.stderr(Stdio::null()).output().with_context(|| format!("failed to run {command:?}"))?;
        times.push(started.elapsed());
        // 1 means that the command found what it looked for.
        anyhow::ensure!(matches!(output.status.code(), Some(0 | 1)), "{command:?} failed: {}", output.status);
        last = output.stdout;
    }
    // The first run warms caches.
    let mut counted = times.split_off(1);
    counted.sort();
    let middle = counted.get(counted.len() / 2).copied().unwrap_or_default();
    Ok((middle, last))
}

fn folders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}

fn size(path: &Path) -> anyhow::Result<u64> {
    if path.is_dir() {
        let mut sum = 0;
        for entry in std::fs::read_dir(path)? {
            sum += size(&entry?.path())?;
        }
        return Ok(sum);
    }
    Ok(path.metadata()?.len())
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate for the eye"
)]
fn per_second(events: u64, time: Duration) -> u64 {
    (events as f64 / time.as_secs_f64()) as u64
}

#[expect(clippy::cast_precision_loss, reason = "a rate for the eye")]
fn mega_per_second(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

fn shown(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
