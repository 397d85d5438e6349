//! The one test command: everything that must hold before a change lands, and a count at the end.

mod output;

use std::io::{BufRead as _, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;

use crate::tools::TOOLS;
use output::Reading;

/// `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Install what tests need and this machine lacks.
    #[arg(long)]
    install: bool,
}

#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
}

/// How `cargo test` begins the line about a test program that failed or died.
const PROGRAM_FAILED: [&str; 2] =
    ["error: test failed, to rerun pass", "error: doctest failed, to rerun pass"];

/// Runs everything. The last line says how much passed, failed and was skipped, whatever happened before.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> ExitCode {
    let mut count = Count::default();
    provide(&mut count, arguments.install, root);
    if let Err(error) = crate::real::provide(arguments.install) {
        println!("a real cluster can't be provided: {error:#}");
        count.failed += 1;
    }

    check(&mut count, "format", || succeeds(root, &["fmt", "--all", "--check"]));
    check(&mut count, "format of the fuzz targets", || {
        succeeds(root, &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])
    });
    check(&mut count, "rules about the tree", || crate::tidy::run(root));
    let lints = ["--all-targets", "--quiet", "--", "-D", "warnings"];
    check(&mut count, "lints", || succeeds(root, &[&["clippy", "--workspace"], &lints[..]].concat()));
    // The fuzz targets are a workspace of their own; their dependencies are the same, so the target folder is.
    let fuzz = ["--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target"];
    check(&mut count, "lints of the fuzz targets", || {
        succeeds(root, &[&["clippy"], &fuzz[..], &lints[..]].concat())
    });
    check(&mut count, "reference pages and links", || crate::docs::run_check(root));
    check(&mut count, "definitions of our kinds", || crate::crds::run_check(root));
    tests(&mut count, "tests", root, &[]);
    tests(&mut count, "tests of the fuzz targets", root, &fuzz);

    for reason in &count.skipped {
        println!("skipped: {reason}");
    }
    println!("{} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped.len());
    if count.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Says what is missing, and installs it if that was asked for.
fn provide(count: &mut Count, install: bool, root: &Path) {
    let missing: Vec<_> = TOOLS.iter().filter(|tool| tool.find(root).is_none()).collect();
    for tool in &missing {
        println!("missing: {} ({}): {}", tool.name, tool.purpose, tool.how());
    }
    if missing.is_empty() {
        return;
    }
    if !install {
        println!("tests that need them are skipped; `cargo xtask test --install` installs them");
        return;
    }
    for tool in missing {
        // One package may have brought several.
        if tool.find(root).is_some() {
            continue;
        }
        println!("installing {}", tool.name);
        let found = tool.install(root).and_then(|()| tool.find(root).context("it is not where it should be"));
        if let Err(error) = found {
            println!("{} can't be installed: {error:#}", tool.name);
            count.failed += 1;
        }
    }
}

/// Runs cargo; fails if cargo does, which has then said why.
fn succeeds(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let status =
        Command::new("cargo").args(arguments).current_dir(root).status().context("failed to run cargo")?;
    anyhow::ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

fn check(count: &mut Count, name: &str, step: impl FnOnce() -> anyhow::Result<()>) {
    println!("== {name}");
    match step() {
        Ok(()) => count.passed += 1,
        Err(error) => {
            println!("{error:#}");
            count.failed += 1;
        }
    }
}

/// Runs all tests of a workspace, and adds up what each test program says of itself.
fn tests(count: &mut Count, name: &str, root: &Path, workspace: &[&str]) {
    println!("== {name}");
    let mut reading = Reading::default();
    let outcome = cargo_test(root, workspace, &mut reading);
    let read = reading.finish(&mut show);
    count.passed += read.passed;
    count.skipped.extend(read.skipped);
    match outcome {
        // A program that died before or after its own result has no line of its own; cargo has one about it.
        Ok(Outcome { success, programs_failed }) => {
            let died = programs_failed.saturating_sub(read.programs_failed);
            let failed = read.failed + died;
            // Nothing ran, or not all of it: what does not compile says nothing of itself.
            count.failed += if success || programs_failed > 0 { failed } else { failed + 1 };
        }
        Err(error) => {
            println!("{error:#}");
            count.failed += read.failed + 1;
        }
    }
}

struct Outcome {
    success: bool,
    programs_failed: u64,
}

fn cargo_test(root: &Path, workspace: &[&str], reading: &mut Reading) -> anyhow::Result<Outcome> {
    let mut command = Command::new("cargo");
    command.arg("test").args(workspace).args(["--workspace", "--no-fail-fast", "--", "--show-output"]);
    command.current_dir(root).stdout(Stdio::piped()).stderr(Stdio::piped());
    for tool in &TOOLS {
        if let Some(path) = tool.find(root) {
            command.env(tool.variable, path);
        }
    }
    // Built before the first test runs: tests of other packages need not ask for it again.
    if workspace.is_empty() {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
        command.env("SCANTLING_TEST_BINARY", target.join("debug/scantling"));
    }
    let mut child = command.spawn().context("failed to run cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let errors = child.stderr.take().context("cargo test has no error output")?;
    let errors = std::thread::spawn(move || pass_on(errors, std::io::stderr()));
    let read = each_line(output, |line| reading.line(line, &mut show));
    let programs_failed = errors.join().unwrap_or(Ok(0));
    let status = child.wait().context("failed to wait for cargo test")?;
    read.context("failed to read what cargo test prints")?;
    let programs_failed = programs_failed.context("failed to read the errors of cargo test")?;
    Ok(Outcome { success: status.success(), programs_failed })
}

fn show(line: &str) {
    println!("{line}");
}

/// Gives cargo's errors to whoever reads ours, and counts the test programs that it says failed.
fn pass_on(errors: impl Read, mut to: impl Write) -> std::io::Result<u64> {
    let mut failed = 0;
    each_line(errors, |line| {
        failed += u64::from(PROGRAM_FAILED.iter().any(|start| line.starts_with(start)));
        // Whoever closed our error output does not want to read it.
        let _ = writeln!(to, "{line}");
    })?;
    Ok(failed)
}

/// Tests may print anything, so lines are bytes first.
fn each_line(from: impl Read, mut take: impl FnMut(&str)) -> std::io::Result<()> {
    for line in BufReader::new(from).split(b'\n') {
        take(&String::from_utf8_lossy(&line?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::pass_on;

    #[test]
    fn cargos_errors_are_passed_on_and_its_failed_programs_counted() {
        let errors = "   Compiling a v0.1.0\nerror: test failed, to rerun pass `-p a --lib`\n\nCaused by:\n  \
                      process didn't exit successfully (signal: 6)\nerror: doctest failed, to rerun pass `-p a --doc`\n\
                      error: 2 targets failed:\n";
        let mut passed_on = Vec::new();
        assert_eq!(pass_on(errors.as_bytes(), &mut passed_on).unwrap(), 2);
        assert_eq!(String::from_utf8(passed_on).unwrap(), errors);
        assert_eq!(pass_on("error: could not compile `a`\n".as_bytes(), Vec::new()).unwrap(), 0);
    }
}
