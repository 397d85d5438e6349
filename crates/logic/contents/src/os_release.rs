//! The distribution, from `os-release`.

use serde::{Deserialize, Serialize};

/// What `os-release` says (see `os-release(5)`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsRelease {
    /// `ID`: `rhel`, `debian` …; `linux` where the file does not say.
    pub id: String,
    /// `VERSION_ID`.
    pub version: Option<String>,
    /// `PRETTY_NAME`, else `NAME`.
    pub name: Option<String>,
}

/// Where the file may be; the first wins.
pub(crate) const PATHS: [&str; 2] = ["etc/os-release", "usr/lib/os-release"];

/// Reads the file: shell assignments, one a line.
pub(crate) fn parse(text: &str) -> OsRelease {
    let mut result = OsRelease { id: "linux".to_owned(), ..OsRelease::default() };
    let mut pretty = None;
    for line in text.lines() {
        let line = line.trim();
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = unquoted(value.trim());
        match key {
            "ID" => result.id = value,
            "VERSION_ID" => result.version = Some(value),
            "NAME" => result.name = Some(value),
            "PRETTY_NAME" => pretty = Some(value),
            _ => {}
        }
    }
    result.name = pretty.or(result.name);
    result
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return if quote == '"' { unescaped(inner) } else { inner.to_owned() };
        }
    }
    value.to_owned()
}

/// In double quotes a backslash keeps the next character as it is.
fn unescaped(inner: &str) -> String {
    let mut result = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => result.extend(chars.next()),
            c => result.push(c),
        }
    }
    result
}
