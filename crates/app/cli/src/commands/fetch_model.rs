//! `scantling fetch-model`: brings a model to where its server looks for it. Pods of models run it before their server starts.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::Args;
use scantling_model_fetch::{Access, FetchError, Fetched, Limits, Progress, Uri, check, fetch};
use tokio::time::Instant;

use crate::cluster::random;
use crate::outcome::{Failure, Outcome};
use crate::terminal;

/// How often progress is told.
const EVERY: Duration = Duration::from_secs(5);

/// Fetch a model into a folder: from a web server, S3 or a folder. What is there already is not fetched again, and a file that was cut off
/// goes on where it ended. An archive (.tar, .tar.gz, .tgz, .zip) that is all there is gets unpacked.
#[derive(Debug, Args)]
#[command(
    after_help = "Keys are read from the environment: STORAGE_CONFIG (a data connection in JSON), or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL or AWS_S3_ENDPOINT, AWS_S3_BUCKET. AWS_CA_BUNDLE or SSL_CERT_FILE name a file of certificates to trust beside the public ones."
)]
pub(crate) struct Arguments {
    /// Where the model is: `https://HOST/PATH`, `s3://BUCKET/PATH`, `file:///PATH`.
    uri: String,
    /// The folder that it goes to; it is made.
    #[arg(required_unless_present = "check", conflicts_with = "check")]
    folder: Option<Utf8PathBuf>,
    /// The SHA-256 that the file must have.
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    sha256: Option<String>,
    /// Fetch nothing; fail unless there is a model at this path that is mounted here.
    #[arg(long, conflicts_with = "sha256")]
    check: bool,
    /// Most bytes of all files, and of all that an archive unpacks to.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().bytes)]
    max_bytes: u64,
    /// Most files.
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().files)]
    max_files: usize,
}

fn sha256(text: &str) -> Result<String, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(hex.to_owned())
    } else {
        Err("a SHA-256 has 64 hexadecimal digits".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let limits = Limits { bytes: arguments.max_bytes, files: arguments.max_files, ..Limits::default() };
    let uri = Uri::parse(&arguments.uri).map_err(|error| Failure::usage(error.to_string()))?;
    let Some(folder) = &arguments.folder else {
        let found = check(&uri, &limits).map_err(|error| failure(&error))?;
        terminal::print(&format!("{uri} has {}\n", counted(&found)))?;
        return Ok(Outcome::Fine);
    };
    let access = Access::read(|name| std::env::var(name).ok(), roots()?)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut told = Instant::now();
    let mut tell = |progress: Progress<'_>| {
        if let Some(why) = progress.again {
            terminal::complain(&format!("again: {why}\n"));
        } else if told.elapsed() >= EVERY {
            told = Instant::now();
            terminal::complain(&line(&progress));
        }
    };
    let seed = u64::from_be_bytes(random()?);
    let work =
        fetch(&uri, &access, folder.as_std_path(), arguments.sha256.as_deref(), &limits, seed, &mut tell);
    let done = runtime.block_on(work).map_err(|error| failure(&error))?;
    let unpacked = done.unpacked.as_deref().map(|name| format!(", unpacked from {name}")).unwrap_or_default();
    let reused =
        if done.reused > 0 { format!(", {} of them were here already", done.reused) } else { String::new() };
    terminal::print(&format!("fetched {uri} to {folder}: {}{unpacked}{reused}\n", counted(&done)))?;
    Ok(Outcome::Fine)
}

/// One line, since the pod's status repeats the last.
fn failure(error: &FetchError) -> Failure {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    Failure::failed(format!("{error}{hint}"))
}

fn counted(done: &Fetched) -> String {
    let files = if done.files == 1 { "1 file".to_owned() } else { format!("{} files", done.files) };
    format!("{files}, {} bytes", done.bytes)
}

fn line(progress: &Progress<'_>) -> String {
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    format!(
        "{} of {} files, {}{total} bytes: {}\n",
        progress.files_done, progress.files, progress.bytes, progress.file
    )
}

/// Certificates of the user's own.
fn roots() -> Result<Vec<u8>, Failure> {
    let name = ["AWS_CA_BUNDLE", "SSL_CERT_FILE"].into_iter().find_map(std::env::var_os);
    match name {
        None => Ok(Vec::new()),
        Some(path) => {
            let shown = path.to_string_lossy().into_owned();
            std::fs::read(path)
                .map_err(|error| Failure::failed(format!("cannot read the certificates in {shown}: {error}")))
        }
    }
}
