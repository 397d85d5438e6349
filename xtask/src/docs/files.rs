//! The pages about files and reports: texts written by hand, with tables of fields from the types that files are decoded into and
//! reports are made of.
//!
//! A line `<!-- fields of TYPE: FILE FILE; OTHER is WORDS -->` in the text becomes the table of a type that is declared in
//! one of the files. OTHER is a type that has a table of its own, and WORDS what to call it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::fields::{Column, Types};

const FILES: &str = include_str!("files.md");
const REPORTS: &str = include_str!("reports.md");
const BEGIN: &str = "<!-- fields of ";
const END: &str = " -->";

/// The page about files.
pub(crate) fn page(root: &Path) -> anyhow::Result<String> {
    filled(root, FILES, Column::Needed)
}

/// The page about reports.
pub(crate) fn reports(root: &Path) -> anyhow::Result<String> {
    filled(root, REPORTS, Column::Always)
}

/// A text with its tables.
fn filled(root: &Path, text: &str, column: Column) -> anyhow::Result<String> {
    let mut page = String::new();
    for line in text.lines() {
        let Some(directive) = Directive::parse(line) else {
            page.push_str(line);
            page.push('\n');
            continue;
        };
        let directive = directive.with_context(|| format!("in the text about files: {line}"))?;
        let types = Types::read(root, &directive.files)?;
        let table = types.table(directive.name, &directive.elsewhere, column);
        page.push_str(&table.with_context(|| format!("in the table of {}", directive.name))?);
    }
    ensure!(!page.contains(BEGIN), "a directive does not stand on a line of its own");
    Ok(page)
}

#[derive(Debug, PartialEq, Eq)]
struct Directive<'t> {
    name: &'t str,
    files: Vec<&'t str>,
    elsewhere: BTreeMap<&'t str, &'t str>,
}

impl<'t> Directive<'t> {
    /// What a line asks for, if it asks for anything.
    fn parse(line: &'t str) -> Option<anyhow::Result<Self>> {
        let inner = line.strip_prefix(BEGIN)?.strip_suffix(END)?;
        Some(Self::read(inner))
    }

    fn read(inner: &'t str) -> anyhow::Result<Self> {
        let (name, rest) = inner.split_once(": ").context("no `: ` behind the type's name")?;
        let mut parts = rest.split("; ");
        let files = parts.next().unwrap_or_default().split(' ').collect();
        let elsewhere = parts
            .map(|part| part.split_once(" is ").context("no ` is ` in a part"))
            .collect::<Result<_, _>>()?;
        Ok(Self { name, files, elsewhere })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn directives_are_read() {
        let line = "<!-- fields of A: x.rs y.rs; B is [b](#b) -->";
        let directive = Directive::parse(line).unwrap().unwrap();
        assert_eq!(directive.name, "A");
        assert_eq!(directive.files, ["x.rs", "y.rs"]);
        assert_eq!(directive.elsewhere, BTreeMap::from([("B", "[b](#b)")]));
        assert!(Directive::parse("text").is_none());
        assert!(Directive::parse("<!-- fields of A -->").unwrap().is_err());
    }
}
