//! Codes and severities.

use std::cmp::Ordering;
use std::fmt;

use serde::{Serialize, Serializer};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing has to be done.
    Note,
    /// Risky: it can go wrong under conditions that are named.
    Warning,
    /// Wrong: the release, plan or run is refused.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// What a finding does to an upgrade that meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InUpgrade {
    /// An upgrade does not look for it, `scantling check` does.
    NotSeen,
    /// The upgrade is refused before anything is written, or stops when it turns up only later.
    Refused,
    /// The upgrade stops in the middle; run again, it continues.
    Stops,
    /// The upgrade goes on and reports it.
    Reported,
}

impl fmt::Display for InUpgrade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotSeen => "not looked for",
            Self::Refused => "is refused",
            Self::Stops => "stops",
            Self::Reported => "goes on",
        })
    }
}

/// What a code means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CodeInfo {
    /// `SCN` and four digits; never given a second meaning.
    pub code: &'static str,
    /// The severity unless the finder knows better.
    pub severity: Severity,
    /// A few words that name the fault.
    pub title: &'static str,
    /// Why it is a fault, in general.
    pub explanation: &'static str,
    /// What to do about it, in general.
    pub remedy: &'static str,
    /// What it does to an upgrade.
    pub upgrade: InUpgrade,
}

/// A stable code of a kind of fault, such as `SCN0101`.
///
/// A code points at its own registration, so that it cannot exist without one.
#[derive(Clone, Copy)]
pub struct Code(&'static CodeInfo);

impl Code {
    /// The code of a registration. Only the tables in [`crate::codes`] make codes.
    pub(crate) const fn new(info: &'static CodeInfo) -> Self {
        Self(info)
    }

    /// The code as text, such as `SCN0101`.
    pub fn as_str(self) -> &'static str {
        self.0.code
    }

    /// What the code means.
    pub fn info(self) -> &'static CodeInfo {
        self.0
    }

    /// Finds a code by its text, in any letter case.
    pub fn find(text: &str) -> Option<Self> {
        crate::CODES.iter().find(|info| info.code.eq_ignore_ascii_case(text)).map(Self)
    }
}

/// What the code means.
pub fn info(code: Code) -> &'static CodeInfo {
    code.info()
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Code {}

impl PartialOrd for Code {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Code {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl std::hash::Hash for Code {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
