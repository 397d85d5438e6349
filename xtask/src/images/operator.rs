//! The operator's image: the program itself, which needs nothing around it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use camino::{Utf8Path, Utf8PathBuf};

/// `cargo xtask image`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The profile that the program is built with. `dev` builds faster and makes a larger image.
    #[arg(long, default_value = "release")]
    profile: String,
    /// Push the images to this registry, as HOST:PORT/PREFIX/operator:VERSION. It's spoken to without TLS.
    #[arg(long, value_name = "HOST:PORT[/PREFIX]")]
    push: Option<String>,
    /// Where the layouts go.
    #[arg(long, value_name = "DIR")]
    output: Option<Utf8PathBuf>,
}

/// What recipes call the image, and where the program is in it.
const NAME: &str = "operator";
const PROGRAM: &str = "usr/bin/scantling";

/// The program has its C library within, so that the image needs none, and no names of its functions. Only the last step of its build
/// is told so: all that it is made of is built the same for every other purpose.
const STATIC: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Cstrip=symbols"];

/// Builds the program, then the images.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> anyhow::Result<()> {
    let program = program(&arguments.profile, root)?;
    let images = super::images(root, arguments.output.as_deref())?.with_program(PROGRAM, program);
    let built = images.build(&images.select(&[NAME.to_owned()])?, &super::say)?;
    built.iter().for_each(super::show);
    arguments.push.as_deref().map_or(Ok(()), |registry| super::push(&built, registry))
}

/// Builds the program; gives its path.
fn program(profile: &str, root: &Path) -> anyhow::Result<Utf8PathBuf> {
    let status = Command::new("cargo")
        .args(["rustc", "--package", "scantling-cli", "--bin", "scantling", "--profile", profile, "--"])
        .args(STATIC)
        .current_dir(root)
        .status()
        .context("failed to run cargo")?;
    ensure!(status.success(), "cargo cannot build the program");
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), Into::into);
    let folder = if profile == "dev" { "debug" } else { profile };
    let path = target.join(folder).join("scantling");
    let path = Utf8PathBuf::from_path_buf(path).ok().context("the program's path is no text")?;
    ensure!(Utf8Path::is_file(&path), "cargo left no program at {path}");
    Ok(path)
}
