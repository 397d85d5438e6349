//! `recipe.lock`: every package of a recipe, pinned.

use scantling_image::Digest;
use serde::{Deserialize, Serialize};

/// Every package of a recipe with what it depends on, pinned by hash. What the image below has is not repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RecipeLock {
    /// The version of the format, 1.
    pub(crate) version: u32,
    /// The digest of the lock of the image below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) below: Option<Digest>,
    /// The Debian packages that the recipe asked for.
    #[serde(default)]
    pub(crate) debian_asked: Vec<String>,
    /// The Python packages that the recipe asked for.
    #[serde(default)]
    pub(crate) python_asked: Vec<String>,
    /// Debian packages, sorted by name.
    #[serde(default)]
    pub(crate) debian: Vec<DebianPin>,
    /// Python packages, sorted by name.
    #[serde(default)]
    pub(crate) python: Vec<PythonPin>,
}

/// A Debian package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DebianPin {
    /// Its name.
    pub(crate) name: String,
    /// Its version, with epoch.
    pub(crate) version: String,
    /// Its architecture, or `all`.
    pub(crate) architecture: String,
    /// The digest of its file.
    pub(crate) digest: Digest,
}

/// A Python package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PythonPin {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// The digest of its wheel.
    pub(crate) digest: Digest,
}

pub(crate) const VERSION: u32 = 1;

impl RecipeLock {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let lock: Self = crate::one_document(bytes)?;
        if lock.version != VERSION {
            return Err(format!("version {} is not known, {VERSION} is", lock.version));
        }
        let words = lock.debian.iter().flat_map(|pin| [&pin.name, &pin.version, &pin.architecture]);
        for word in words.chain(lock.python.iter().flat_map(|pin| [&pin.name, &pin.version])) {
            // They go into commands and requirement files.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || ".+-~:_!".contains(c);
            if !word.starts_with(|c: char| c.is_ascii_alphanumeric()) || !word.chars().all(is_plain) {
                return Err(format!("{word:?} is no name or version of a package"));
            }
        }
        Ok(lock)
    }

    /// One line for each package, so that a change of one is one line of a diff.
    pub(crate) fn write(&self) -> Result<String, serde_json::Error> {
        use std::fmt::Write as _;
        let mut text = String::from("# Written by `cargo xtask images --update`.\nversion: 1\n");
        if let Some(below) = &self.below {
            let _ = writeln!(text, "below: {below}");
        }
        let _ = writeln!(text, "debianAsked: {}", serde_json::to_string(&self.debian_asked)?);
        let _ = writeln!(text, "pythonAsked: {}", serde_json::to_string(&self.python_asked)?);
        let mut list = |name: &str, pins: Vec<String>| {
            let _ = writeln!(text, "{name}:{}", if pins.is_empty() { " []" } else { "" });
            for pin in pins {
                let _ = writeln!(text, "- {pin}");
            }
        };
        list("debian", self.debian.iter().map(serde_json::to_string).collect::<Result<_, _>>()?);
        list("python", self.python.iter().map(serde_json::to_string).collect::<Result<_, _>>()?);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let lock = RecipeLock {
            version: VERSION,
            below: Some(Digest::of(b"below")),
            debian_asked: vec!["bash".to_owned()],
            debian: vec![DebianPin {
                name: "libgmp10".to_owned(),
                version: "2:6.2.1+dfsg1-1.1".to_owned(),
                architecture: "amd64".to_owned(),
                digest: Digest::of(b"a"),
            }],
            ..RecipeLock::default()
        };
        let text = lock.write().unwrap();
        assert_eq!(RecipeLock::read(text.as_bytes()).unwrap(), lock);
        let bad = text.replace("libgmp10", "--option");
        assert!(RecipeLock::read(bad.as_bytes()).unwrap_err().contains("no name or version"));
    }
}
