//! Rules about the tree that no compiler checks: which crate may use which, and where time, chance and files come from.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The layers, from the lowest. A crate uses its own layer and those below.
const LAYERS: [&str; 5] = ["model", "logic", "io", "world", "app"];

/// What pure layers may not use: runtimes, clients, clocks and chance.
const FORBIDDEN_IN_PURE: [&str; 12] = [
    "tokio",
    "kube",
    "k8s-openapi",
    "hyper",
    "hyper-util",
    "hyper-rustls",
    "rustls",
    "fastrand",
    "tempfile",
    "camino",
    "indicatif",
    "futures",
];

/// Edges that the layers alone would allow, and the reason against each.
const FORBIDDEN_EDGES: [(&str, &str, &str); 7] = [
    ("scantling-sandbox", "scantling-cluster", "the sandbox is a cluster, it does not know its clients"),
    ("scantling-sandbox", "scantling-registry", "the sandbox is a cluster, it does not know its clients"),
    ("scantling-sandbox", "scantling-run", "the sandbox is a cluster, it does not know its clients"),
    ("scantling-sandbox", "scantling-plan", "what is rehearsed must not know the rehearsal"),
    ("scantling-sandbox", "scantling-reconcile", "what is rehearsed must not know the rehearsal"),
    ("scantling-sandbox", "scantling-audit", "what is rehearsed must not know the rehearsal"),
    ("scantling-console", "scantling-sandbox", "the console gets a client and knows no cluster"),
];

/// Who may use the sandbox: the crate that joins it to the product, and the edge.
const SANDBOX_USERS: [&str; 3] = ["scantling-rehearse", "scantling-cli", "bench"];

/// Words that may stand in the source of no crate but those named: the one place for each kind of impurity.
const WORDS: [(&str, &[&str], &str); 7] = [
    ("std::fs", &["crates/io/files", "crates/app/cli"], "files are read in one place"),
    ("SystemTime", &[], "time comes from a clock that is passed in"),
    ("std::time::Instant", &["crates/app/cli"], "time comes from a clock that is passed in"),
    ("Timestamp::now", &["crates/app/cli"], "time comes from a clock that is passed in"),
    ("Rng::new()", &[], "chance comes from a seed"),
    ("std::env::", &["crates/app/cli"], "the environment is read at the edge"),
    ("tokio::spawn", &["crates/app/cli"], "a rehearsal runs on one task"),
];

/// Checks the tree; fails with every breach listed.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut breaches = Vec::new();
    edges(root, &mut breaches)?;
    words(root, &mut breaches)?;
    if breaches.is_empty() {
        return Ok(());
    }
    let mut text = String::from("the tree breaks its rules:");
    for breach in breaches {
        let _ = write!(text, "\n  {breach}");
    }
    bail!(text)
}

fn edges(root: &Path, breaches: &mut Vec<String>) -> anyhow::Result<()> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("failed to run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("failed to read cargo metadata")?;
    let packages = metadata.get("packages").and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let layers: BTreeMap<String, Option<usize>> = packages
        .iter()
        .map(|package| (text(package, "name"), layer(&text(package, "manifest_path"))))
        .collect();
    for package in &packages {
        let name = text(package, "name");
        let own = layers.get(&name).copied().flatten();
        for dependency in package.get("dependencies").and_then(Value::as_array).into_iter().flatten() {
            if dependency.get("kind").and_then(Value::as_str) == Some("dev") {
                continue;
            }
            let on = text(dependency, "name");
            if let Some((_, _, why)) = FORBIDDEN_EDGES.iter().find(|(from, to, _)| *from == name && *to == on)
            {
                breaches.push(format!("{name} uses {on}: {why}"));
            }
            if on == "scantling-sandbox" && !SANDBOX_USERS.contains(&name.as_str()) {
                breaches.push(format!("{name} uses {on}: only {} may", SANDBOX_USERS.join(", ")));
            }
            if own.is_some_and(|own| own < 2) && FORBIDDEN_IN_PURE.contains(&on.as_str()) {
                breaches
                    .push(format!("{name} uses {on}: {} crates are pure", LAYERS[own.unwrap_or_default()]));
            }
            if let (Some(own), Some(Some(other))) = (own, layers.get(&on)) {
                if *other > own {
                    breaches.push(format!(
                        "{name} ({}) uses {on} ({}): arrows go down",
                        LAYERS[own], LAYERS[*other]
                    ));
                }
            }
        }
    }
    Ok(())
}

fn layer(manifest: &str) -> Option<usize> {
    let (_, rest) = manifest.rsplit_once("/crates/")?;
    let name = rest.split('/').next()?;
    LAYERS.iter().position(|layer| *layer == name)
}

fn words(root: &Path, breaches: &mut Vec<String>) -> anyhow::Result<()> {
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files)?;
    for file in files {
        let relative = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        if !relative.contains("/src/") || relative.ends_with("tests.rs") || relative.contains("/tests/") {
            continue;
        }
        let text = std::fs::read_to_string(&file).with_context(|| format!("failed to read {relative}"))?;
        // What stands behind the first `#[cfg(test)]` of a file is its tests.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for (word, homes, why) in WORDS {
                if line.contains(word) && !homes.iter().any(|home| relative.starts_with(home)) {
                    breaches.push(format!("{relative}:{}: {word}: {why}", number + 1));
                }
            }
        }
    }
    Ok(())
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
