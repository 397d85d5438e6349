//! When a node pulls an image.

use std::fmt;

use crate::reference::Reference;
use crate::serde_text::as_text;

/// A container's `imagePullPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PullPolicy {
    /// The registry is asked at every start of the container.
    Always,
    /// The registry is asked only if the node does not have an image under the written reference.
    IfNotPresent,
    /// The registry is never asked.
    Never,
}

/// A text that is no pull policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no pull policy: use Always, IfNotPresent or Never")]
pub struct PullPolicyError {
    /// What was written, at most 40 characters.
    pub found: String,
}

impl PullPolicy {
    /// Reads the policy as Kubernetes writes it; case matters there too.
    pub fn parse(text: &str) -> Result<Self, PullPolicyError> {
        match text {
            "Always" => Ok(Self::Always),
            "IfNotPresent" => Ok(Self::IfNotPresent),
            "Never" => Ok(Self::Never),
            other => Err(PullPolicyError { found: other.chars().take(40).collect() }),
        }
    }

    /// The policy that the Kubernetes API server writes into a container that states none: `Always` if the tag is
    /// `latest` (with or without a digest behind it) or if neither tag nor digest is written, else `IfNotPresent`.
    ///
    /// Source: `SetDefaults_Container` in Kubernetes' `pkg/apis/core/v1/defaults.go`. It is decided once, when the
    /// object is created, and does not follow later changes of the image.
    pub fn defaulted(reference: &Reference) -> Self {
        if reference.effective_tag() == Some("latest") { Self::Always } else { Self::IfNotPresent }
    }

    /// The policy as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

impl fmt::Display for PullPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

as_text!(PullPolicy, PullPolicyError, "Always, IfNotPresent or Never");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn defaulting_follows_tag_and_digest() {
        let digest = format!("@sha256:{}", "0".repeat(64));
        let check = |text: String, policy| {
            assert_eq!(PullPolicy::defaulted(&Reference::parse(&text).unwrap()), policy, "{text}");
        };
        check("quay.io/a/b".into(), PullPolicy::Always);
        check("quay.io/a/b:latest".into(), PullPolicy::Always);
        check(format!("quay.io/a/b:latest{digest}"), PullPolicy::Always);
        check("quay.io/a/b:1.2".into(), PullPolicy::IfNotPresent);
        check("quay.io/a/b:Latest".into(), PullPolicy::IfNotPresent);
        check(format!("quay.io/a/b{digest}"), PullPolicy::IfNotPresent);
        check(format!("quay.io/a/b:1.2{digest}"), PullPolicy::IfNotPresent);
    }

    #[test]
    fn text_round_trips() {
        for policy in [PullPolicy::Always, PullPolicy::IfNotPresent, PullPolicy::Never] {
            assert_eq!(PullPolicy::parse(&policy.to_string()), Ok(policy));
        }
        assert_eq!(PullPolicy::parse("always"), Err(PullPolicyError { found: "always".into() }));
    }
}
