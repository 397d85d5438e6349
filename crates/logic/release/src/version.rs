//! Versions of releases, such as `1.5.0-7`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Longest accepted version text; the longest published one (`2.11.0-0.1727935135.p`) has 22 characters.
const MAX_LENGTH: usize = 64;

/// A version: numbers joined by dots, then optionally `-` and a build suffix.
///
/// Numbers are compared one by one, missing ones count as 0. With equal numbers a version *without* suffix comes first:
/// `1.5.0-7` is the seventh build of 1.5.0, not a preview of it, which is where the order differs from `SemVer`'s. Suffix
/// parts are compared as numbers where both are numbers, else as text, numbers first. The text is kept as written.
#[derive(Debug, Clone)]
pub struct Version {
    written: String,
    numbers: Vec<u64>,
    suffix: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

/// Why a text is no version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason} in version {written:?} (a version looks like 1.5.0 or 1.5.0-7)")]
pub struct VersionError {
    written: String,
    reason: &'static str,
}

impl Version {
    /// Parses a version.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let fail = |reason| VersionError { written: text.chars().take(MAX_LENGTH).collect(), reason };
        if text.is_empty() {
            return Err(fail("nothing"));
        }
        if text.len() > MAX_LENGTH {
            return Err(fail("more than 64 characters"));
        }
        if text.starts_with(['v', 'V']) {
            return Err(fail("a leading v"));
        }
        let (numbers, suffix) = match text.split_once('-') {
            Some((numbers, suffix)) => (numbers, Some(suffix)),
            None => (text, None),
        };
        let numbers = numbers
            .split('.')
            .map(|part| number(part).ok_or_else(|| fail("a part that is not a number")))
            .collect::<Result<Vec<_>, _>>()?;
        let suffix = suffix
            .map(|suffix| {
                suffix
                    .split(['.', '-'])
                    .map(|part| suffix_part(part).ok_or_else(|| fail("a bad build suffix")))
                    .collect()
            })
            .transpose()?
            .unwrap_or_default();
        Ok(Self { written: text.to_owned(), numbers, suffix })
    }

    /// The version that stands for none.
    pub(crate) fn zero() -> Self {
        Self { written: "0".to_owned(), numbers: vec![0], suffix: Vec::new() }
    }

    /// The version as written.
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn suffix_part(text: &str) -> Option<Part> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    Some(number(text).map_or_else(|| Part::Text(text.to_owned()), Part::Number))
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.numbers.len().max(other.numbers.len());
        let padded = |numbers: &[u64]| {
            numbers.iter().copied().chain(std::iter::repeat(0)).take(length).collect::<Vec<_>>()
        };
        padded(&self.numbers).cmp(&padded(&other.numbers)).then_with(|| self.suffix.cmp(&other.suffix))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written)
    }
}

impl FromStr for Version {
    type Err = VersionError;
    fn from_str(text: &str) -> Result<Self, VersionError> {
        Self::parse(text)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_versions_are_in_the_order_of_their_publication() {
        let ascending = [
            "1.3.0-6",
            "1.5.0",
            "1.5.0-7",
            "1.5.0-10",
            "1.6.0-8",
            "1.20.1-8",
            "1.21.0-18",
            "1.21.0-20",
            "1.21.0-22",
            "1.22.0-2",
            "1.22.1-2",
            "1.22.1-4",
            "2.4.0",
            "2.11.0",
            "2.11.0-0.1727935135.p",
            "2.11.1",
        ];
        for pair in ascending.windows(2) {
            assert!(Version::parse(pair[0]).unwrap() < Version::parse(pair[1]).unwrap(), "{pair:?}");
        }
    }

    #[test]
    fn missing_numbers_are_zero_and_the_text_is_kept() {
        assert_eq!(Version::parse("1.5").unwrap(), Version::parse("1.5.0").unwrap());
        assert_eq!(Version::parse("1.05").unwrap().to_string(), "1.05");
    }

    #[test]
    fn what_is_no_version_is_refused_with_its_reason() {
        let cases = [
            ("", "nothing"),
            ("v1.5.0", "a leading v"),
            ("1..5", "not a number"),
            ("1.5.x", "not a number"),
            ("1.5.0-", "build suffix"),
            ("1.5.0-7.", "build suffix"),
            ("99999999999999999999", "not a number"),
            ("1.5.0 ", "not a number"),
        ];
        for (text, reason) in cases {
            let error = Version::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,80}") {
            if let Ok(version) = Version::parse(&text) {
                prop_assert_eq!(version.as_str(), text.as_str());
                prop_assert_eq!(&Version::parse(version.as_str()).unwrap(), &version);
            }
        }

        #[test]
        fn the_order_is_total(
            a in "[0-9]{1,3}(\\.[0-9]{1,3}){0,3}(-[0-9a-z]{1,4}(\\.[0-9a-z]{1,4})?)?",
            b in "[0-9]{1,3}(\\.[0-9]{1,3}){0,3}(-[0-9a-z]{1,4}(\\.[0-9a-z]{1,4})?)?",
            c in "[0-9]{1,3}(\\.[0-9]{1,3}){0,3}(-[0-9a-z]{1,4}(\\.[0-9a-z]{1,4})?)?",
        ) {
            let [a, b, c] = [a, b, c].map(|text| Version::parse(&text).unwrap());
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
        }
    }
}
