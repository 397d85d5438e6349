//! The page about commands: what the program itself says of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// Wide enough for the longest option, narrow enough for a page.
const COLUMNS: &str = "100";

/// The page.
pub(crate) fn page(root: &Path) -> anyhow::Result<String> {
    let program = build(root)?;
    let overview = help(&program, &[])?;
    let mut page = String::from(
        "<!-- Made by `cargo xtask docs` from the program's own help; change the texts in crates/app/cli. -->\n\n\
         # Commands\n\nWhat `scantling COMMAND --help` says.\n",
    );
    section(&mut page, "scantling", &overview);
    for name in subcommands(&overview) {
        let text = help(&program, &[&name])?;
        ensure!(
            subcommands(&text).is_empty(),
            "`scantling {name}` has commands of its own; teach {} to show them",
            file!()
        );
        section(&mut page, &format!("scantling {name}"), &text);
    }
    Ok(page)
}

fn section(page: &mut String, name: &str, help: &str) {
    // Lines that clap leaves blank hold the spaces of their indentation.
    let text: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", text.join("\n"));
}

/// The commands that a help text lists, without `help` itself.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed
        .take_while(|line| !line.is_empty())
        // A name is indented by two; lines that go on with a description are indented further.
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn help(program: &Path, command: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(command)
        .arg("--help")
        // Nothing of whoever runs this may get into the page: not their settings, not the width of their terminal.
        .env_clear()
        .env("COLUMNS", COLUMNS)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to run {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "{} {} --help failed: {}",
            program.display(),
            command.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8(output.stdout).context("a help text is not UTF-8")
}

/// Builds the program and says where it is.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new("cargo")
        .args([
            "build",
            "--quiet",
            "--package",
            "scantling-cli",
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("failed to run cargo build")?;
    ensure!(output.status.success(), "the program does not build");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .context("cargo build names no program")
}

#[cfg(test)]
mod tests {
    use super::subcommands;

    #[test]
    fn commands_are_read_from_a_help_text() {
        let help = "About\n\nUsage: x <COMMAND>\n\nCommands:\n  check  Finds\n         more\n  help   Prints\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help), ["check"]);
        assert_eq!(subcommands("Usage: x\n\nOptions:\n  -h\n"), Vec::<String>::new());
    }
}
