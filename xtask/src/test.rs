//! The one test command: everything that must hold before a change lands, and a count at the end.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::tools::TOOLS;

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

/// Runs everything; fails if anything failed.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> anyhow::Result<()> {
    let mut count = Count::default();
    provide(arguments.install, root);

    task(&mut count, "format", Command::new("cargo").args(["fmt", "--all", "--check"]), root)?;
    let fuzz = ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"];
    task(&mut count, "format of the fuzz targets", Command::new("cargo").args(fuzz), root)?;
    check(&mut count, "rules about the tree", crate::tidy::run(root));
    task(
        &mut count,
        "lints",
        Command::new("cargo").args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]),
        root,
    )?;
    let fuzz = ["clippy", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target", "--all-targets"];
    task(
        &mut count,
        "lints of the fuzz targets",
        Command::new("cargo").args(fuzz).args(["--quiet", "--", "-D", "warnings"]),
        root,
    )?;
    check(&mut count, "reference pages and links", crate::docs::run_check(root));
    tests(&mut count, root, &[])?;
    // The fuzz targets are a workspace of their own; their dependencies are the same, so the target folder is.
    tests(&mut count, root, &["--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target"])?;

    for reason in &count.skipped {
        println!("skipped: {reason}");
    }
    println!("{} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped.len());
    anyhow::ensure!(count.failed == 0, "{} failed", count.failed);
    Ok(())
}

fn provide(install: bool, root: &Path) {
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
        if tool.find(root).is_some() {
            continue;
        }
        println!("installing {}", tool.name);
        if let Err(error) = tool.install(root) {
            println!("warning: {} can't be installed, its tests are skipped: {error:#}", tool.name);
        }
    }
}

fn task(count: &mut Count, name: &str, command: &mut Command, root: &Path) -> anyhow::Result<()> {
    println!("== {name}");
    let status = command.current_dir(root).status().with_context(|| format!("failed to run {command:?}"))?;
    if status.success() {
        count.passed += 1;
    } else {
        count.failed += 1;
    }
    Ok(())
}

fn check(count: &mut Count, name: &str, result: anyhow::Result<()>) {
    println!("== {name}");
    match result {
        Ok(()) => count.passed += 1,
        Err(error) => {
            println!("{error:#}");
            count.failed += 1;
        }
    }
}

/// Runs all tests of a workspace, and adds up what each test program says of itself.
fn tests(count: &mut Count, root: &Path, workspace: &[&str]) -> anyhow::Result<()> {
    println!("== tests {}", workspace.join(" "));
    let mut command = Command::new("cargo");
    command.arg("test").args(workspace).args(["--workspace", "--no-fail-fast", "--", "--show-output"]);
    command.current_dir(root);
    for tool in &TOOLS {
        if let Some(path) = tool.find(root) {
            command.env(tool.variable, path);
        }
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("failed to run cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut failed = 0;
    let skipped_before = count.skipped.len();
    for line in BufReader::new(output).lines() {
        let line = line.context("failed to read what cargo test prints")?;
        if let Some(reason) = line.trim().strip_prefix("skipped: ") {
            count.skipped.push(reason.to_owned());
        }
        if let Some((passed, its_failed)) = result(&line) {
            count.passed += passed;
            failed += its_failed;
        }
        // The output of tests that pass is read for skips; it is not for the eye.
        if line.starts_with("test ") && !line.ends_with("... ok")
            || line.contains("panicked")
            || line.contains("FAILED")
        {
            println!("{line}");
        }
        if line.contains("vectors agree") {
            println!("{line}");
        }
    }
    let status = child.wait().context("failed to wait for cargo test")?;
    // A test program that does not compile, or dies, says nothing of itself.
    if !status.success() && failed == 0 {
        failed = 1;
    }
    count.failed += failed;
    // A test that skips itself passes as far as its runner knows.
    count.passed = count.passed.saturating_sub((count.skipped.len() - skipped_before) as u64);
    Ok(())
}

/// Passed and failed of a line `test result: ok. 3 passed; 0 failed; …`.
fn result(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| {
        counts.split(';').find_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok())
    };
    Some((number("passed")?, number("failed")?))
}

#[cfg(test)]
mod tests {
    use super::result;

    #[test]
    fn results_of_test_programs_are_read() {
        let line = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(result(line), Some((3, 1)));
        assert_eq!(result("test a ... ok"), None);
    }
}
