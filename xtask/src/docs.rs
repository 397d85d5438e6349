//! The reference pages, written from the program and its code, so that they cannot say anything else.

mod commands;
mod fields;
mod files;
mod findings;
mod links;

use std::path::Path;

use anyhow::{Context as _, bail};

/// `cargo xtask docs`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a page is not what would be written, or a link leads nowhere.
    #[arg(long)]
    check: bool,
}

/// The folder of the pages.
const FOLDER: &str = "docs/reference";

/// Writes the pages, or checks them.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> anyhow::Result<()> {
    let pages = [
        ("commands.md", commands::page(root)?),
        ("files.md", files::page(root)?),
        ("findings.md", findings::page()),
        ("reports.md", files::reports(root)?),
    ];
    if arguments.check {
        check(root, &pages)?;
        return links::check(root);
    }
    write(root, &pages)
}

/// Fails if a page is not what would be written, or a link of any page leads nowhere.
pub(crate) fn run_check(root: &Path) -> anyhow::Result<()> {
    run(&Arguments { check: true }, root)
}

fn write(root: &Path, pages: &[(&str, String)]) -> anyhow::Result<()> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("failed to make {FOLDER}"))?;
    for (name, text) in pages {
        std::fs::write(folder.join(name), text)
            .with_context(|| format!("failed to write {FOLDER}/{name}"))?;
        println!("wrote {FOLDER}/{name}");
    }
    Ok(())
}

fn check(root: &Path, pages: &[(&str, String)]) -> anyhow::Result<()> {
    let mut old = Vec::new();
    for (name, text) in pages {
        let path = root.join(FOLDER).join(name);
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(line) = first_difference(&written, text) {
            old.push(format!("{FOLDER}/{name}:{line}"));
        }
    }
    if old.is_empty() {
        return Ok(());
    }
    bail!("not up to date: {} (run `cargo xtask docs`)", old.join(", "))
}

/// The first line, from 1, in which two texts differ.
fn first_difference(one: &str, other: &str) -> Option<usize> {
    if one == other {
        return None;
    }
    let same = one.lines().zip(other.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
        assert_eq!(first_difference("a\nb", "a\nb\n"), Some(3));
        assert_eq!(first_difference("", "a\n"), Some(1));
    }
}
