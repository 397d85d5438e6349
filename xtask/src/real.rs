//! What tests on a real cluster need: packages of the system, and Kubernetes built from its modules.

#[path = "../../tests/real/src/program.rs"]
mod program;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::tools::install_packages;

/// Says what is missing for real clusters, and provides it if that was asked for. Where there can be none, the tests skip
/// themselves and say why.
pub(crate) fn provide(install: bool) -> anyhow::Result<()> {
    if let Some(why) = program::obstacle() {
        println!("no tests on a real cluster: {why}");
        return Ok(());
    }
    let packages = program::missing_packages();
    let program = program::path();
    if packages.is_empty() && program.is_file() {
        return Ok(());
    }
    if !packages.is_empty() {
        println!("missing: a real cluster's packages: apt-get install {}", packages.join(" "));
    }
    if !program.is_file() {
        println!("missing: {} (a real Kubernetes), built with Go from tests/real/program", program.display());
    }
    if !install {
        println!("tests that need them are skipped; `cargo xtask test --install` provides them");
        return Ok(());
    }
    if !packages.is_empty() {
        println!("installing {}", packages.join(", "));
        install_packages(&packages)?;
    }
    if !program::has_go() {
        println!("no tests on a real cluster: Kubernetes is not built, and there is no Go to build it with");
        return Ok(());
    }
    if !program.is_file() {
        println!("building Kubernetes, once: 10 to 20 minutes");
        build()?;
    }
    Ok(())
}

/// Builds the program: 600 MB are fetched and 3 GB written, which are deleted afterwards.
fn build() -> anyhow::Result<()> {
    let program = program::path();
    let folder = program.parent().context("the program has no folder")?;
    // Two that build at once must not meet.
    let work = folder.join(format!("build-{}", std::process::id()));
    std::fs::create_dir_all(work.join("source"))
        .with_context(|| format!("failed to make {}", work.display()))?;
    let built = build_in(&work).and_then(|()| {
        std::fs::rename(work.join("realkube"), &program)
            .with_context(|| format!("failed to put the program to {}", program.display()))
    });
    let removed = std::fs::remove_dir_all(&work);
    built?;
    removed.with_context(|| format!("failed to remove {}", work.display()))
}

fn build_in(work: &Path) -> anyhow::Result<()> {
    for (name, text) in program::SOURCES {
        std::fs::write(work.join("source").join(name), text)?;
    }
    let version = kubernetes_version()?;
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let about = "k8s.io/component-base/version";
    // Without these, the server calls itself v0.0.0-master, and clients refuse to speak to it.
    let flags = format!(
        "-s -w -X {about}.gitVersion={version} -X {about}.gitMajor={major} -X {about}.gitMinor={minor} \
         -X {about}.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion={version}"
    );
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-buildvcs=false", "-modcacherw", "-ldflags", &flags, "-o"])
        .arg(work.join("realkube"))
        .arg(".")
        .current_dir(work.join("source"))
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "")
        .env("GOCACHE", work.join("cache"))
        .env("GOMODCACHE", work.join("modules"));
    let output = go.output().context("failed to run go")?;
    if !output.status.success() {
        bail!("go build failed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// The version of Kubernetes that the sources ask for, `v1.35.4`.
fn kubernetes_version() -> anyhow::Result<&'static str> {
    let [(_, module), ..] = program::SOURCES;
    module
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .context("go.mod names no Kubernetes")
}
