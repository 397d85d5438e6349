//! Names of images.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name and version of an image: the repository and tag that it gets, and the folders of its recipe. Written `NAME:VERSION`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageName {
    name: String,
    version: String,
}

/// Why a text names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no image: write NAME:VERSION, each of lower-case letters, digits, `.` and `-`")]
pub struct ImageNameError(String);

impl ImageName {
    /// Reads `NAME:VERSION`.
    pub fn parse(text: &str) -> Result<Self, ImageNameError> {
        let error = || ImageNameError(text.to_owned());
        let (name, version) = text.split_once(':').ok_or_else(error)?;
        Self::new(name, version).ok_or_else(error)
    }

    pub(crate) fn new(name: &str, version: &str) -> Option<Self> {
        // They become folders, repositories and tags; this is what is allowed in all three.
        let is_plain = |text: &str| {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            text.starts_with(is_word)
                && text.ends_with(is_word)
                && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
                && !text.contains("..")
        };
        (is_plain(name) && is_plain(version))
            .then(|| Self { name: name.to_owned(), version: version.to_owned() })
    }

    /// The name, which is the repository's last part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, which is the tag.
    pub fn version(&self) -> &str {
        &self.version
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.name, self.version)
    }
}

impl TryFrom<String> for ImageName {
    type Error = ImageNameError;

    fn try_from(text: String) -> Result<Self, ImageNameError> {
        Self::parse(&text)
    }
}

impl From<ImageName> for String {
    fn from(name: ImageName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_folders_repositories_and_tags() {
        assert_eq!(ImageName::parse("pytorch-cuda:2026.1").unwrap().to_string(), "pytorch-cuda:2026.1");
        for text in ["a", "a:", ":1", "A:1", "a:1:2", "a/b:1", "a:..", "a:1..2", "-a:1", "a:1/2", "a b:1"] {
            assert!(ImageName::parse(text).is_err(), "{text}");
        }
    }
}
