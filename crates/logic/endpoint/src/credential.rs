//! User names and passwords, kept out of sight.

use std::fmt;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, to be sent and never to be written anywhere.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(secret)")
    }
}

/// A credential of a keyring, by its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialId(pub(crate) usize);

/// A user name and password for some registry, and where they came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Where it was found, such as `Secret team/pull`; this is what messages show.
    pub origin: String,
    /// The registry, host pattern or path that it is for, as its file says it.
    pub key: String,
    /// The user name.
    pub username: Secret,
    /// The password or token.
    pub password: Secret,
}

impl fmt::Display for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.origin, self.key)
    }
}
