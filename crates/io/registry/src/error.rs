//! What can go wrong, said with its place.

use std::fmt;
use std::time::Duration;

use scantling_image::{Digest, Platform};

use crate::verdict::Verdict;

/// What a registry answered when it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The error code of the distribution specification, such as `MANIFEST_UNKNOWN`.
    pub code: Option<String>,
    /// The registry's own words, shortened, without control characters.
    pub message: Option<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HTTP {}", self.status)?;
        if let Some(code) = &self.code {
            write!(formatter, " {code}")?;
        }
        if let Some(message) = &self.message {
            write!(formatter, " ({message})")?;
        }
        Ok(())
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The registry does not have it.
    Absent {
        /// Its answer.
        answer: Answer,
        /// What it has instead, where that was looked up.
        nearby: Option<String>,
    },
    /// A credential is needed, or was refused.
    Unauthenticated {
        /// Its answer, if the registry gave one.
        answer: Option<Answer>,
        /// Which credential was used, and what that means.
        detail: String,
    },
    /// The credential does not allow it.
    Forbidden {
        /// Its answer.
        answer: Answer,
        /// Which credential was used, and what that means.
        detail: String,
    },
    /// Too many requests.
    RateLimited {
        /// Its answer.
        answer: Answer,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// No connection, no answer in time, or an answer that broke off.
    Unreachable {
        /// What happened.
        detail: String,
    },
    /// The server failed.
    Failing {
        /// Its answer.
        answer: Answer,
    },
    /// The bytes are not those that were asked for.
    DigestMismatch {
        /// The digest asked for or promised.
        wanted: Digest,
        /// What came.
        detail: String,
    },
    /// A document or an answer breaks the format.
    Malformed {
        /// How.
        detail: String,
    },
    /// The image is not for this platform.
    WrongPlatform {
        /// The platforms that are missing.
        wanted: Vec<Platform>,
        /// The platforms that are there.
        found: Vec<Platform>,
    },
    /// A rule forbids the place.
    RefusedByPolicy {
        /// The rule.
        rule: String,
    },
    /// An answer that decides nothing.
    Unknown {
        /// The answer.
        answer: Answer,
    },
}

/// An error of a registry, with the place it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryError {
    /// The registry asked.
    pub host: String,
    /// The repository asked.
    pub repository: String,
    /// What was asked for: `manifest 1.2`, `blob sha256:…`.
    pub subject: String,
    /// What went wrong.
    pub problem: Box<Problem>,
}

impl RegistryError {
    /// The verdict that this error amounts to.
    pub fn verdict(&self) -> Verdict {
        match self.problem.as_ref() {
            Problem::Absent { .. } => Verdict::Absent,
            Problem::Unauthenticated { .. } => Verdict::Unauthenticated,
            Problem::Forbidden { .. } => Verdict::Forbidden,
            Problem::RateLimited { .. } => Verdict::RateLimited,
            Problem::Unreachable { .. } | Problem::Failing { .. } => Verdict::Unreachable,
            Problem::DigestMismatch { .. } => Verdict::DigestMismatch,
            Problem::Malformed { .. } => Verdict::Malformed,
            Problem::WrongPlatform { .. } => Verdict::WrongPlatform,
            Problem::RefusedByPolicy { .. } => Verdict::RefusedByPolicy,
            Problem::Unknown { .. } => Verdict::Unknown,
        }
    }

    /// Subject and problem without host and repository, for places that show those already.
    pub fn detail(&self) -> String {
        format!("{}: {}", self.subject, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { answer, nearby: None } => write!(formatter, "not there: {answer}"),
            Self::Absent { answer, nearby: Some(nearby) } => {
                write!(formatter, "not there: {answer}; {nearby}")
            }
            Self::Unauthenticated { answer: Some(answer), detail } | Self::Forbidden { answer, detail } => {
                write!(formatter, "{detail}: {answer}")
            }
            Self::RateLimited { answer, retry_after: Some(after) } => {
                write!(formatter, "rate limited for {} s: {answer}", after.as_secs())
            }
            Self::RateLimited { answer, retry_after: None } => write!(formatter, "rate limited: {answer}"),
            Self::Unauthenticated { answer: None, detail }
            | Self::Unreachable { detail }
            | Self::Malformed { detail } => formatter.write_str(detail),
            Self::Failing { answer } => write!(formatter, "the server failed: {answer}"),
            Self::DigestMismatch { wanted, detail } => {
                write!(formatter, "not the bytes of {wanted}: {detail}")
            }
            Self::WrongPlatform { wanted, found } => {
                let list = |platforms: &[Platform]| {
                    platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                };
                write!(formatter, "nothing for {}", list(wanted))?;
                if found.is_empty() { Ok(()) } else { write!(formatter, "; it is for {}", list(found)) }
            }
            Self::RefusedByPolicy { rule } => write!(formatter, "refused by a rule: {rule}"),
            Self::Unknown { answer } => write!(formatter, "an answer that decides nothing: {answer}"),
        }
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}: {}: {}", self.host, self.repository, self.subject, self.problem)
    }
}

impl std::error::Error for RegistryError {}

/// What is asked for, to be named in errors.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) repository: String,
    pub(crate) subject: String,
}

impl Place {
    pub(crate) fn new(host: &str, repository: &str, subject: impl Into<String>) -> Self {
        Self { host: host.to_owned(), repository: repository.to_owned(), subject: subject.into() }
    }

    pub(crate) fn error(&self, problem: Problem) -> RegistryError {
        RegistryError {
            host: self.host.clone(),
            repository: self.repository.clone(),
            subject: self.subject.clone(),
            problem: Box::new(problem),
        }
    }

    pub(crate) fn malformed(&self, detail: impl Into<String>) -> RegistryError {
        self.error(Problem::Malformed { detail: detail.into() })
    }

    pub(crate) fn unreachable(&self, detail: impl Into<String>) -> RegistryError {
        self.error(Problem::Unreachable { detail: detail.into() })
    }
}
