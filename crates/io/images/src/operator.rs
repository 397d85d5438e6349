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

/// Builds the program of the workspace in a folder, as it is in the image, with `cargo`, which builds to the folder `target`; gives where it
/// is. It is a copy: where cargo leaves a program, the next build puts its own.
///
/// # Errors
/// Cargo can't be run or fails, or the copy can't be written.
pub fn operator_program(
    mut cargo: Command,
    root: &Utf8Path,
    target: &Utf8Path,
    profile: &str,
) -> Result<Utf8PathBuf, ImagesError> {
    let failed = |problem: String| ImagesError::Program { command: "cargo rustc".to_owned(), problem };
    cargo
        .args(["rustc", "--package", "scantling-cli", "--bin", "scantling", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .arg("--")
        .args(STATIC)
        .current_dir(root);
    let status = cargo.status().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed("the program does not build, for the reasons above".to_owned()));
    }
    let built = target.join(if profile == "dev" { "debug" } else { profile }).join("scantling");
    let folder = target.join("operator").join(profile);
    let (new, copy) = (folder.join("scantling.new"), folder.join("scantling"));
    std::fs::create_dir_all(&folder).map_err(ImagesError::file(&folder))?;
    std::fs::copy(&built, &new).map_err(ImagesError::file(&built))?;
    std::fs::rename(&new, &copy).map_err(ImagesError::file(&copy))?;
    Ok(copy)
}
