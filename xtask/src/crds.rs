//! `cargo xtask crds`: the definitions of our kinds as files, written from the types in `crates/logic/reconcile`.
//!
//! The files are for people and for reviews, where a change of a type shows as one, and for the newest release, which brings
//! them to clusters. Those of older releases stay as they were.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use scantling_reconcile::{DEFINITIONS, problems};

/// `cargo xtask crds`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a file is not what would be written.
    #[arg(long)]
    check: bool,
}

/// Where they are written: beside the types, and in the newest release.
const FOLDERS: [&str; 2] = ["crates/logic/reconcile/crds", "releases/2026.2/crds"];
const HEAD: &str =
    "# Made by `cargo xtask crds` from the types in crates/logic/reconcile and crates/logic/observed.\n";

/// Writes the files, or checks them.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> anyhow::Result<()> {
    let wanted = files()?;
    let mut old = Vec::new();
    for folder in FOLDERS {
        let present = present(root, folder)?;
        if arguments.check {
            let differing = |name: &&String| wanted.get(*name) != present.get(*name);
            let names: std::collections::BTreeSet<&String> = wanted.keys().chain(present.keys()).collect();
            old.extend(names.into_iter().filter(differing).map(|name| format!("{folder}/{name}")));
        } else {
            write(root, folder, &wanted, &present)?;
        }
    }
    if !old.is_empty() {
        bail!("not up to date: {} (run `cargo xtask crds`)", old.join(", "));
    }
    Ok(())
}

fn write(
    root: &Path,
    folder: &str,
    wanted: &BTreeMap<String, String>,
    present: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let path = root.join(folder);
    std::fs::create_dir_all(&path).with_context(|| format!("failed to make {folder}"))?;
    for name in present.keys().filter(|name| !wanted.contains_key(*name)) {
        std::fs::remove_file(path.join(name)).with_context(|| format!("failed to remove {folder}/{name}"))?;
        println!("removed {folder}/{name}");
    }
    for (name, text) in wanted {
        std::fs::write(path.join(name), text).with_context(|| format!("failed to write {folder}/{name}"))?;
        println!("wrote {folder}/{name}");
    }
    Ok(())
}

/// Fails if a file is not what would be written.
pub(crate) fn run_check(root: &Path) -> anyhow::Result<()> {
    run(&Arguments { check: true }, root)
}

/// The files that should be there, by name.
fn files() -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for definition in DEFINITIONS {
        let problems = problems(&definition.structural_schema());
        if !problems.is_empty() {
            bail!("the schema of {} is not structural:\n  {}", definition.kind, problems.join("\n  "));
        }
        let text = format!("{HEAD}{}", scantling_yaml::to_yaml(&definition.to_value()));
        files.insert(format!("{}.yaml", definition.name()), text);
    }
    Ok(files)
}

/// The files that are there, by name.
fn present(root: &Path, folder: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let entries = match std::fs::read_dir(root.join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(error).with_context(|| format!("failed to list {folder}")),
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to list {folder}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(entry.path())
            .with_context(|| format!("failed to read {folder}/{name}"))?;
        files.insert(name, text);
    }
    Ok(files)
}
