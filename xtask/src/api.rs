//! `cargo xtask api`: one compact file of facts about Kubernetes' API (kinds, names, verbs, types, list and patch keys).
//!
//! Sources: `api/discovery` and `api/openapi-spec/v3` of the Go module `k8s.io/kubernetes`, and, for what Go's own
//! encoder does with zero values, the type declarations of the modules that hold the API's types (`go_types`).

mod go_types;
mod kinds;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Module, and whether its version is that of Kubernetes with a leading `v0` instead of `v1`.
const TYPE_MODULES: [&str; 4] =
    ["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"];

/// Bodies of deletions are of this type, whatever is deleted.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// What `cargo xtask api` can be told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Version of Kubernetes, without the leading v.
    #[arg(long, default_value = "1.35.4")]
    kubernetes: String,
    /// Fail if the committed file differs instead of writing it.
    #[arg(long)]
    check: bool,
}

/// Reads the modules and writes (or checks) the facts file.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let version = &arguments.kubernetes;
    let (minor_line, staging) = version
        .strip_prefix("1.")
        .and_then(|rest| rest.split('.').next().map(|minor| (format!("1.{minor}"), format!("v0.{rest}"))))
        .with_context(|| format!("the version {version:?} does not look like 1.MINOR.PATCH"))?;
    let module = download(root, "k8s.io/kubernetes", &format!("v{version}"))?;
    let specification = module.join("api");
    let mut go = go_types::GoTypes::default();
    for name in TYPE_MODULES {
        go.read_module(name, &download(root, name, &staging)?)?;
    }
    let discovered = kinds::read(&specification.join("discovery"))?;
    let mut types = types::read(&specification.join("openapi-spec/v3"))?;
    go.annotate(&mut types.types);
    let text = render(version, &discovered, &types)?;
    let path = root.join(format!("crates/model/api/facts/kubernetes-{minor_line}.json"));
    if arguments.check {
        let committed =
            std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        if committed != text {
            bail!("{} is not what the modules of {version} say; run `cargo xtask api`", path.display());
        }
    } else {
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Downloads a module into the target folder and returns the folder of its sources.
fn download(root: &Path, module: &str, version: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", &format!("{module}@{version}")])
        .env("GOMODCACHE", root.join("target/gomod"))
        .env("GOFLAGS", "-modcacherw")
        .current_dir(root)
        .output()
        .context("running go, which is needed to read Kubernetes' modules")?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("go mod download: {}", String::from_utf8_lossy(&output.stderr)))?;
    match answer["Dir"].as_str() {
        Some(folder) => Ok(folder.into()),
        None => bail!("go mod download {module}@{version}: {}", answer["Error"]),
    }
}

/// One line per group, kind and type, so that a change of version can be read as a difference of lines.
fn render(version: &str, discovered: &kinds::Discovered, types: &types::Types) -> Result<String> {
    let mut kinds = BTreeMap::new();
    for (key, kind) in &discovered.kinds {
        let mut kind = kind.clone();
        if let Some(name) = types.by_kind.get(key) {
            kind["type"] = json!(name);
        }
        kinds.insert(key.clone(), kind);
    }
    // Kinds that only subresources speak have a type but no place of their own.
    for key in &discovered.subresource_kinds {
        if let (false, Some(name)) = (kinds.contains_key(key), types.by_kind.get(key)) {
            kinds.insert(key.clone(), json!({"type": name}));
        }
    }
    let roots = kinds.values().filter_map(|kind| kind["type"].as_str()).chain([DELETE_OPTIONS]);
    let mut reachable = types.reachable(roots);
    reachable.insert("__untyped_atomic_".into(), types::untyped_atomic());
    reachable.insert("__untyped_deduced_".into(), types::untyped_deduced());
    let mut text = String::new();
    writeln!(text, "{{")?;
    writeln!(text, "\"kubernetes\": \"v{version}\",")?;
    writeln!(text, "\"groups\": [")?;
    lines(&mut text, discovered.groups.iter().map(Value::to_string))?;
    writeln!(text, "],\n\"kinds\": {{")?;
    lines(&mut text, kinds.iter().map(|(key, kind)| format!("{}: {kind}", json!(key))))?;
    writeln!(text, "}},\n\"types\": {{")?;
    lines(&mut text, reachable.iter().map(|(name, t)| format!("{}: {t}", json!(name))))?;
    writeln!(text, "}}\n}}")?;
    Ok(text)
}

fn lines(text: &mut String, entries: impl Iterator<Item = String>) -> Result<()> {
    let entries: Vec<String> = entries.collect();
    writeln!(text, "{}", entries.join(",\n"))?;
    Ok(())
}
