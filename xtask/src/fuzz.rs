//! Fuzzing on the stable compiler: the targets are built with LLVM's coverage counters and libFuzzer's engine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The target: a folder of fuzz/seeds.
    name: String,
    /// How long to look.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u32,
    /// The longest input that is made, in bytes.
    #[arg(long, default_value_t = 8192, value_name = "N")]
    longest: u32,
}

/// What `cargo fuzz` asks of the compiler, spelled out: coverage counters and compared values, seen by libFuzzer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// An input that takes longer than this many seconds has found something too.
const SLOW: u32 = 10;
/// Mebibytes that one input may need: above what every limit of the code under test allows together.
const MEMORY: u32 = 2048;

/// Builds the targets and runs one of them.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> anyhow::Result<()> {
    let folder = root.join("fuzz");
    let seeds = folder.join("seeds").join(&arguments.name);
    ensure!(
        seeds.is_dir(),
        "there is no target {:?}; the folders of fuzz/seeds are the targets",
        arguments.name
    );
    let host = host()?;
    let built = Command::new("cargo")
        // With a target named, the flags go to what is fuzzed and not to build scripts.
        .args(["build", "--release", "--features", "engine", "--bin", "fuzz", "--target", &host])
        .env("RUSTFLAGS", FLAGS)
        .current_dir(&folder)
        .status()
        .context("failed to run cargo build")?;
    ensure!(built.success(), "the targets do not build");
    let corpus = folder.join("corpus").join(&arguments.name);
    let artifacts = folder.join("artifacts").join(&arguments.name);
    for made in [&corpus, &artifacts] {
        std::fs::create_dir_all(made).with_context(|| format!("failed to make {}", made.display()))?;
    }
    let status = Command::new(folder.join("target").join(&host).join("release/fuzz"))
        .arg(format!("-max_total_time={}", arguments.seconds))
        .arg(format!("-max_len={}", arguments.longest))
        .arg(format!("-timeout={SLOW}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .args([&corpus, &seeds])
        .env("SCANTLING_FUZZ_TARGET", &arguments.name)
        .status()
        .context("failed to run the fuzzer")?;
    ensure!(
        status.success(),
        "the target failed; mend the cause and put the input from {} into {}",
        artifacts.display(),
        seeds.display()
    );
    Ok(())
}

/// The machine's own target, as the compiler calls it.
pub(crate) fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("failed to run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it runs on")?.to_owned())
}
