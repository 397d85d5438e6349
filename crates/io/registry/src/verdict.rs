//! What a probe found.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether an image can be pulled from a place, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Manifest, configuration and layers answered for every wanted platform.
    Pullable,
    /// A registry said that it does not have the manifest, or a piece of it.
    Absent,
    /// A credential is needed, or the one given was refused.
    Unauthenticated,
    /// The credential was taken and does not allow it; some registries answer so for what they do not have.
    Forbidden,
    /// The image has no variant for a wanted platform.
    WrongPlatform,
    /// The registry's answer, or a document, breaks the format.
    Malformed,
    /// The bytes are not those of the digest.
    DigestMismatch,
    /// No answer, or the server failed.
    Unreachable,
    /// Too many requests; nothing is known about the image.
    RateLimited,
    /// A rule of the cluster forbids the place.
    RefusedByPolicy,
    /// An answer that decides nothing.
    Unknown,
}

impl Verdict {
    /// The name as it is stored: `digest-mismatch`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pullable => "pullable",
            Self::Absent => "absent",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::WrongPlatform => "wrong-platform",
            Self::Malformed => "malformed",
            Self::DigestMismatch => "digest-mismatch",
            Self::Unreachable => "unreachable",
            Self::RateLimited => "rate-limited",
            Self::RefusedByPolicy => "refused-by-policy",
            Self::Unknown => "unknown",
        }
    }

    /// True if the answer says something about the image; false if asking again later may give another one.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Unreachable | Self::RateLimited | Self::Unknown)
    }

    /// Out of the verdicts of several places, none of them pullable, the one that holds for all: absent only if it is absent
    /// everywhere; else the last one that is not "absent", which is the nearest to the source.
    pub(crate) fn joined(verdicts: impl IntoIterator<Item = Self>) -> Self {
        let mut joined = None;
        for verdict in verdicts {
            if verdict == Self::Pullable {
                return Self::Pullable;
            }
            if joined.is_none() || verdict != Self::Absent {
                joined = Some(verdict);
            }
        }
        joined.unwrap_or(Self::RefusedByPolicy)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_verdicts() {
        use Verdict::{Absent, Forbidden, Pullable, RateLimited, RefusedByPolicy, Unreachable};
        let check = |verdicts: &[Verdict], expected| {
            assert_eq!(Verdict::joined(verdicts.iter().copied()), expected, "{verdicts:?}");
        };
        check(&[], RefusedByPolicy);
        check(&[Absent, Pullable], Pullable);
        check(&[Absent, Absent], Absent);
        check(&[Unreachable, Absent], Unreachable);
        check(&[Absent, RateLimited], RateLimited);
        check(&[Forbidden, Unreachable, Absent], Unreachable);
    }
}
