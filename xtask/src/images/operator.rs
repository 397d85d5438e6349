//! The operator's image: the program itself, which needs nothing around it.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use scantling_images::{OPERATOR, OPERATOR_PROGRAM, operator_program};

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

/// Builds the program, then the images.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> anyhow::Result<()> {
    let folder = Utf8Path::from_path(root).context("the repository's path is no text")?;
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| folder.join("target"), Utf8PathBuf::from);
    let program = operator_program(Command::new("cargo"), folder, &target, &arguments.profile)?;
    let images = super::images(root, arguments.output.as_deref())?.with_program(OPERATOR_PROGRAM, program);
    let built = images.build(&images.select(&[OPERATOR.to_owned()])?, &super::say)?;
    built.iter().for_each(super::show);
    arguments.push.as_deref().map_or(Ok(()), |registry| super::push(&built, registry))
}
