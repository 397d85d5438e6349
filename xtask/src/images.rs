//! Images from the recipes in `releases/images`.

pub(crate) mod operator;

use std::path::Path;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use scantling_images::{Image, Images, plain_http, push_all};

/// `cargo xtask images`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// NAME for every version, NAME:VERSION for one. Without any: all that aren't marked `onRequest`.
    names: Vec<String>,
    /// Write the recipes' locks anew, with what the archives have now, instead of making images.
    #[arg(long)]
    update: bool,
    /// Push the images to this registry, as HOST:PORT/PREFIX/NAME:VERSION. It's spoken to without TLS.
    #[arg(long, value_name = "HOST:PORT[/PREFIX]")]
    push: Option<String>,
    /// Where the layouts go.
    #[arg(long, value_name = "DIR")]
    output: Option<Utf8PathBuf>,
}

/// Makes, pushes or updates.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> anyhow::Result<()> {
    let images = images(root, arguments.output.as_deref())?;
    let names = images.select(&arguments.names)?;
    if arguments.update {
        return Ok(images.update(&names, &say)?);
    }
    let built = images.build(&names, &say)?;
    for image in &built {
        show(image);
    }
    arguments.push.as_deref().map_or(Ok(()), |registry| push(&built, registry))
}

/// The recipes of this repository; layouts under `target`, packages in the user's cache.
pub(crate) fn images(root: &Path, output: Option<&Utf8Path>) -> anyhow::Result<Images> {
    let root = Utf8Path::from_path(root).context("the repository's path is no text")?;
    let cache = std::env::var("XDG_CACHE_HOME")
        .ok()
        .filter(|path| !path.is_empty())
        .or_else(|| std::env::var("HOME").ok().map(|home| format!("{home}/.cache")))
        .context("there is no HOME to keep packages in")?;
    let output = output.map_or_else(|| root.join("target/images"), Utf8Path::to_owned);
    Ok(Images::new(root.join("releases/images"), output, Utf8Path::new(&cache).join("scantling/images")))
}

/// Pushes images, and says where they are.
pub(crate) fn push(images: &[Image], registry: &str) -> anyhow::Result<()> {
    let host = registry.split('/').next().unwrap_or(registry);
    let client = plain_http(host)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for pushed in runtime.block_on(push_all(&client, images, registry))? {
        println!(
            "{} {} ({:.1} MB sent)",
            pushed.tagged,
            pushed.copied.digest,
            megabytes(pushed.copied.bytes)
        );
    }
    Ok(())
}

pub(crate) fn say(line: &str) {
    println!("{line}");
}

pub(crate) fn show(image: &Image) {
    let unpacked: u64 = image.layers.iter().map(|(_, _, unpacked)| unpacked).sum();
    let state = if image.reused { "was there" } else { "made" };
    println!(
        "{} {} {state}: {} layers, {:.1} MB ({:.1} MB unpacked)",
        image.name,
        image.digest,
        image.layers.len(),
        megabytes(image.size()),
        megabytes(unpacked)
    );
}

#[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
