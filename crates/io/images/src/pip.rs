//! Python packages, resolved and fetched by pip from the index that the machine is set up with.

use std::collections::BTreeMap;
use std::process::Command;

use camino::Utf8Path;
use scantling_contents::normalised;
use scantling_image::Digest;
use serde::Deserialize;

use crate::cache::{Cache, Wanted};
use crate::error::ImagesError;
use crate::lock::PythonPin;
use crate::name::ImageName;
use crate::program::{attempt, captured};

/// The images' Python. Wheels are chosen for it.
const PYTHON: &str = "3.11";

/// The C library of the images' Debian, by its minor version; older wheels run on it too.
const GLIBC_MINOR: u32 = 36;

/// The oldest C library that a wheel may ask for.
const GLIBC_OLDEST: u32 = 5;

/// Names of platforms from before wheels named the C library.
const OLD_PLATFORMS: [&str; 3] = ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"];

/// What pip says when the index has a package under the pinned version, but other bytes. That is no absence.
const OTHER_HASHES: &str = "DO NOT MATCH THE HASHES";

/// Every name that a wheel for the images may have, the newest first.
fn target(command: &mut Command) {
    command.args(["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp"]);
    for minor in (GLIBC_OLDEST..=GLIBC_MINOR).rev() {
        command.args(["--platform", &format!("manylinux_2_{minor}_x86_64")]);
    }
    for platform in OLD_PLATFORMS {
        command.args(["--platform", platform]);
    }
}

fn pip() -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]);
    command
}

#[derive(Deserialize)]
struct Report {
    install: Vec<Installed>,
}

#[derive(Deserialize)]
struct Installed {
    metadata: Metadata,
    download_info: DownloadInfo,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct DownloadInfo {
    archive_info: Option<ArchiveInfo>,
}

#[derive(Deserialize)]
struct ArchiveInfo {
    hashes: BTreeMap<String, String>,
}

/// The packages and everything that they depend on, as the index has them now; what the image below has stays at its version, and is
/// not repeated.
pub(crate) fn resolve(
    packages: &[String],
    below: &[PythonPin],
    work: &Utf8Path,
) -> Result<Vec<PythonPin>, ImagesError> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    own_python()?;
    let constraints = work.join("constraints.txt");
    let lines: Vec<String> = below.iter().map(|pin| format!("{}=={}\n", pin.name, pin.version)).collect();
    std::fs::write(&constraints, lines.concat()).map_err(ImagesError::file(&constraints))?;
    let report = work.join("report.json");
    let mut command = pip();
    command.args(["install", "--dry-run", "--ignore-installed", "--report", report.as_str()]);
    command.args(["--target", work.join("nowhere").as_str(), "--constraint", constraints.as_str()]);
    target(&mut command);
    command.arg("--").args(packages);
    captured(&mut command, "pip")?;
    let broken = |problem: String| ImagesError::Recipe { path: report.clone(), problem };
    let bytes = std::fs::read(&report).map_err(ImagesError::file(&report))?;
    let read: Report = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
    let is_below = |name: &str| below.iter().any(|pin| normalised(&pin.name) == normalised(name));
    let mut pins = Vec::new();
    for Installed { metadata: Metadata { name, version }, download_info } in read.install {
        if is_below(&name) {
            continue;
        }
        let hash = download_info.archive_info.as_ref().and_then(|info| info.hashes.get("sha256"));
        let digest = hash.and_then(|hex| Digest::parse(&format!("sha256:{hex}")).ok());
        let digest = digest.ok_or_else(|| broken(format!("no SHA-256 of {name} {version}")))?;
        pins.push(PythonPin { name: normalised(&name), version, digest });
    }
    pins.sort();
    Ok(pins)
}

/// Which packages depend on which is decided by the Python that pip runs on, so it must be the images'.
fn own_python() -> Result<(), ImagesError> {
    let printed = captured(Command::new("python3").arg("--version"), "python3")?;
    let version = printed.trim().trim_start_matches("Python ");
    if version.strip_prefix(PYTHON).is_some_and(|rest| rest.starts_with('.')) {
        return Ok(());
    }
    Err(ImagesError::Program {
        command: "python3 --version".to_owned(),
        problem: format!(
            "it is {version}; what packages of Python {PYTHON} depend on is only known to Python {PYTHON} itself"
        ),
    })
}

/// Brings into the cache what is not there yet.
pub(crate) fn fetch(cache: &Cache, image: &ImageName, pins: &[PythonPin]) -> Result<(), ImagesError> {
    let missing: Vec<&PythonPin> = pins.iter().filter(|pin| !cache.has(&pin.digest)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let incoming = cache.incoming()?;
    let requirements = incoming.folder().join("requirements.txt");
    let lines: Vec<String> = missing
        .iter()
        .map(|pin| format!("{}=={} --hash=sha256:{}\n", pin.name, pin.version, pin.digest.hex()))
        .collect();
    std::fs::write(&requirements, lines.concat()).map_err(ImagesError::file(&requirements))?;
    let wheels = incoming.folder().join("wheels");
    let mut command = pip();
    command.args(["download", "--no-deps", "--require-hashes", "--no-cache-dir", "--progress-bar", "off"]);
    command.args(["--dest", wheels.as_str(), "--requirement", requirements.as_str()]);
    target(&mut command);
    let said = attempt(&mut command, "pip")?.err();
    let gone =
        |package: String, problem: String| ImagesError::Gone { image: image.clone(), package, problem };
    if let Some(problem) = said {
        if problem.contains(OTHER_HASHES) {
            return Err(ImagesError::Program { command: format!("pip, for {image},"), problem });
        }
        // pip names the package in its words.
        return Err(gone(format!("one of {} Python packages", missing.len()), problem));
    }
    let files: Vec<_> = wheels
        .read_dir_utf8()
        .and_then(|entries| entries.map(|entry| Ok(entry?.into_path())).collect::<std::io::Result<_>>())
        .map_err(ImagesError::file(&wheels))?;
    let mut by_name = BTreeMap::new();
    for file in files {
        let name = file.file_name().and_then(|name| name.split('-').next()).map(normalised);
        by_name.insert(name.unwrap_or_default(), file);
    }
    for pin in missing {
        let package = format!("{} {}", pin.name, pin.version);
        match by_name.get(&normalised(&pin.name)) {
            Some(file) => cache.take(image, Wanted { package: &package, digest: &pin.digest }, file)?,
            None => return Err(gone(package, "pip left no file".to_owned())),
        }
    }
    Ok(())
}
