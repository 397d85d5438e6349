//! Rules about the tree that no compiler checks: which crate may use which, where time, chance and files come from, how
//! long a file may be, and that nothing is depended on for nothing.

mod dependencies;
mod edges;
mod source;
mod words;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// A file longer than this has more than one job.
const LINES_MAX: usize = 600;

/// Checks the tree; fails with every breach listed.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut breaches = Vec::new();
    let metadata = metadata(root)?;
    edges::check(&metadata, &mut breaches);
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "bench", "tests"] {
        files_below(&root.join(folder), &mut files)?;
    }
    let sources = source::read(root, &files)?;
    sizes(&sources, &mut breaches);
    words::check(&sources, &mut breaches);
    dependencies::check(root, &metadata, &sources, &mut breaches);
    if breaches.is_empty() {
        return Ok(());
    }
    let mut text = String::from("the tree breaks its rules:");
    for breach in breaches {
        let _ = write!(text, "\n  {breach}");
    }
    bail!(text)
}

/// What cargo knows of the workspace and of everything that it is built from on this machine.
fn metadata(root: &Path) -> anyhow::Result<Value> {
    let host = crate::fuzz::host()?;
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--filter-platform", &host])
        .current_dir(root)
        .output()
        .context("failed to run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("failed to read cargo metadata")
}

/// The text under a key, or nothing.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The entries of a list under a key, or none.
fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn sizes(sources: &[source::Source], breaches: &mut Vec<String>) {
    for source in sources.iter().filter(|source| !source.is_test && source.lines > LINES_MAX) {
        breaches.push(format!("{}: {} lines, more than {LINES_MAX}: split it", source.path, source.lines));
    }
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files_below(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
