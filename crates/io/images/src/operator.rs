//! The operator's image: the program itself, which needs nothing around it.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::ImagesError;

/// What recipes call the image.
pub const OPERATOR: &str = "operator";
/// Where the program is in it.
pub const OPERATOR_PROGRAM: &str = "usr/bin/scantling";

/// The program has its C library within, so that the image needs none, and no names of its functions. Only the last step of its build
/// is told so: all that it is made of is built the same for every other purpose.
const STATIC: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Cstrip=symbols"];

/// What cargo tells a program that it runs about its package: crates would be built anew that look at it.
const ABOUT: [&str; 5] =
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_PRIMARY_", "CARGO_TARGET_TMPDIR"];

/// Builds the program of the workspace in a folder, as it is in the image; gives where it is. It is a copy: where cargo leaves a program,
/// the next build puts its own.
///
/// # Errors
/// Cargo can't be run or fails, or the copy can't be written.
pub fn operator_program(root: &Utf8Path, profile: &str) -> Result<Utf8PathBuf, ImagesError> {
    let failed = |problem: String| ImagesError::Program { command: "cargo rustc".to_owned(), problem };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["rustc", "--package", "scantling-cli", "--bin", "scantling", "--profile", profile, "--"])
        .args(STATIC)
        .current_dir(root);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| ABOUT.iter().any(|start| name.starts_with(start))) {
            cargo.env_remove(name);
        }
    }
    let status = cargo.status().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed("the program does not build, for the reasons above".to_owned()));
    }
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), Utf8PathBuf::from);
    let built = target.join(if profile == "dev" { "debug" } else { profile }).join("scantling");
    let folder = target.join("operator").join(profile);
    let (new, copy) = (folder.join("scantling.new"), folder.join("scantling"));
    std::fs::create_dir_all(&folder).map_err(ImagesError::file(&folder))?;
    std::fs::copy(&built, &new).map_err(ImagesError::file(&built))?;
    std::fs::rename(&new, &copy).map_err(ImagesError::file(&copy))?;
    Ok(copy)
}
