//! Debian packages, resolved and fetched by apt from the sources that the machine is set up with.

use std::process::Command;

use camino::Utf8Path;
use scantling_image::Digest;

use crate::cache::{Cache, Wanted};
use crate::error::ImagesError;
use crate::lock::DebianPin;
use crate::name::ImageName;
use crate::program::{attempt, captured};

/// Images are made for this architecture.
const ARCHITECTURE: &str = "amd64";

/// The packages and everything that they depend on, as the machine's sources have them now; nothing counts as installed.
pub(crate) fn resolve(packages: &[String], work: &Utf8Path) -> Result<Vec<DebianPin>, ImagesError> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let status = work.join("status");
    std::fs::write(&status, b"").map_err(ImagesError::file(&status))?;
    let mut command = Command::new("apt-get");
    command.args(["install", "--print-uris", "--yes", "-qq", "--no-install-recommends"]);
    command.arg("-o").arg(format!("Dir::State::status={status}"));
    command.args(["-o", "Debug::NoLocking=1", "-o", "Dir::Cache::archives=/nonexistent"]);
    command.args(["-o", &format!("APT::Architecture={ARCHITECTURE}"), "--"]).args(packages);
    let printed = captured(&mut command, "apt-get")?;
    let mut pins = Vec::new();
    for line in printed.lines() {
        let broken = || ImagesError::Program {
            command: "apt-get install --print-uris".to_owned(),
            problem: format!("cannot make sense of {line:?}"),
        };
        let file = line.split_whitespace().nth(1).ok_or_else(broken)?;
        let stem = file.strip_suffix(".deb").ok_or_else(broken)?;
        let [name, version, architecture] = stem.split('_').collect::<Vec<_>>()[..] else {
            return Err(broken());
        };
        let (name, version) = (name.to_owned(), version.replace("%3a", ":"));
        let digest = digest(&name, &version)?;
        pins.push(DebianPin { name, version, architecture: architecture.to_owned(), digest });
    }
    pins.sort();
    Ok(pins)
}

/// What the archive's signed index says of a package's file.
fn digest(name: &str, version: &str) -> Result<Digest, ImagesError> {
    let package = format!("{name}={version}");
    let shown = captured(Command::new("apt-cache").args(["show", "--", &package]), "apt-cache")?;
    let digest = shown.lines().find_map(|line| line.strip_prefix("SHA256:")).map(str::trim);
    digest.and_then(|hex| Digest::parse(&format!("sha256:{hex}")).ok()).ok_or_else(|| ImagesError::Program {
        command: format!("apt-cache show {package}"),
        problem: "it names no SHA-256 of the package".to_owned(),
    })
}

/// Brings into the cache what is not there yet.
pub(crate) fn fetch(cache: &Cache, image: &ImageName, pins: &[DebianPin]) -> Result<(), ImagesError> {
    let missing: Vec<&DebianPin> = pins.iter().filter(|pin| !cache.has(&pin.digest)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let incoming = cache.incoming()?;
    let names: Vec<String> = missing.iter().map(|pin| format!("{}={}", pin.name, pin.version)).collect();
    let download = || {
        let mut command = Command::new("apt-get");
        command.args(["download", "-qq", "-o", "APT::Sandbox::User=root"]);
        command.args(["-o", &format!("APT::Architecture={ARCHITECTURE}"), "--"]).args(&names);
        attempt(command.current_dir(incoming.folder()), "apt-get")
    };
    let mut said = download()?.err();
    if said.is_some() {
        // The lists of packages may be missing or old. Where they cannot be renewed, the second try says why.
        let _ = attempt(Command::new("apt-get").args(["update", "-qq"]), "apt-get")?;
        said = download()?.err();
    }
    let files = incoming.files()?;
    for pin in missing {
        let start = format!("{}_{}_", pin.name, pin.version.replace(':', "%3a"));
        let file = files.iter().find(|file| file.file_name().is_some_and(|name| name.starts_with(&start)));
        let package = format!("{} {}", pin.name, pin.version);
        let Some(file) = file else {
            let problem = said.clone().unwrap_or_else(|| "apt-get left no file".to_owned());
            return Err(ImagesError::Gone { image: image.clone(), package, problem });
        };
        cache.take(image, Wanted { package: &package, digest: &pin.digest }, file)?;
    }
    Ok(())
}
