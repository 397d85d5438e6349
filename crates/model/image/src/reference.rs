//! Image references, as written by people and as container runtimes understand them.

mod doubt;
mod error;
mod grammar;

use std::fmt;

use crate::digest::Digest;
use crate::serde_text::as_text;

pub use doubt::Doubt;
pub use error::{Part, Reason, ReferenceError};

/// The registry that is meant when a reference names none.
pub const DOCKER_HUB: &str = "docker.io";
/// Most characters that a repository path can have, `library/` included (distribution's `RepositoryNameTotalLengthMax`).
pub const NAME_LENGTH_MAX: usize = 255;
/// Most characters that a tag can have.
pub const TAG_LENGTH_MAX: usize = 128;
/// Most bytes that are looked at: the longest path, tag and digest, a host of 253 characters and a port, and signs
/// between them, rounded up.
pub const WRITTEN_LENGTH_MAX: usize = 1024;

/// A reference to an image: `[registry/]repository[:tag][@digest]`.
///
/// It keeps the text as it was written and knows beside it what a container runtime makes of that text. Order and
/// equality are those of the written text; compare [`Reference::name`] to know if two name the same repository.
///
/// The grammar is the one of <https://github.com/distribution/reference>, with two differences: digests are checked in
/// full (sha256 and sha512), and a port must be one that exists.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    written: String,
    domain: Option<String>,
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// Reads a reference. Nothing is trimmed, lower-cased or otherwise repaired.
    pub fn parse(written: &str) -> Result<Self, ReferenceError> {
        grammar::check_whole(written)?;
        let (name_and_tag, digest) = match written.split_once('@') {
            Some((before, digest)) => (before, Some(grammar::digest(written, before, digest)?)),
            None => (written, None),
        };
        let (domain, rest) = split_domain(name_and_tag);
        if let Some(domain) = domain {
            grammar::check_domain(written, domain)?;
        }
        let (path, tag) = grammar::split_tag(written, rest, digest.as_ref())?;
        grammar::check_path(written, path, domain)?;
        if let Some(tag) = tag {
            grammar::check_tag(written, tag)?;
        }
        let registry = domain.map_or_else(|| DOCKER_HUB.to_owned(), canonical_registry);
        // The rule is distribution's: only for the two names that it knows for this registry.
        let official = domain.is_none_or(|domain| {
            domain.eq_ignore_ascii_case(DOCKER_HUB) || domain.eq_ignore_ascii_case("index.docker.io")
        });
        let repository =
            if official && !path.contains('/') { format!("library/{path}") } else { path.to_owned() };
        if repository.len() > NAME_LENGTH_MAX {
            return Err(ReferenceError::new(
                written,
                Part::Repository,
                Reason::TooLong { most: NAME_LENGTH_MAX, found: repository.len() },
            ));
        }
        Ok(Self {
            written: written.to_owned(),
            domain: domain.map(str::to_owned),
            registry,
            repository,
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// The text as it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The registry as it was written, with its port; `None` if none was.
    pub fn domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    /// The registry that is meant: lower-case, with its port, `docker.io` for Docker Hub under any of its names.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path of the repository that is meant, with `library/` where Docker Hub's rule puts it.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Registry and repository: `docker.io/library/python`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The tag, if one was written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The tag that a runtime would ask for: the written one, or `latest` if neither tag nor digest was written. With
    /// a digest the tag is information only; the digest decides.
    pub fn effective_tag(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, None) => Some("latest"),
            (None, Some(_)) => None,
        }
    }

    /// The digest, if one was written.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// True if a digest was written, so that the content cannot change.
    pub fn is_pinned(&self) -> bool {
        self.digest.is_some()
    }

    /// True if both name the same repository of the same registry, whatever was written.
    pub fn same_repository(&self, other: &Self) -> bool {
        self.registry == other.registry && self.repository == other.repository
    }

    /// `registry/repository@digest`: the same repository by digest, without a tag.
    #[must_use]
    pub fn with_digest(&self, digest: &Digest) -> Self {
        Self {
            written: format!("{}/{}@{digest}", self.lasting_domain(), self.repository),
            domain: Some(self.lasting_domain().to_owned()),
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            tag: None,
            digest: Some(digest.clone()),
        }
    }

    /// The registry, written so that it is read as one. `A0/app` names the registry `a0` by its upper-case letter only:
    /// `a0/app` would be a repository on Docker Hub.
    fn lasting_domain(&self) -> &str {
        match &self.domain {
            Some(domain) if !is_domain(&self.registry) => domain,
            _ => &self.registry,
        }
    }

    /// `registry/repository:tag`: the same repository by tag, without a digest.
    pub fn with_tag(&self, tag: &str) -> Result<Self, ReferenceError> {
        let written = format!("{}/{}:{tag}", self.lasting_domain(), self.repository);
        grammar::check_whole(&written)?;
        grammar::check_tag(&written, tag)?;
        Ok(Self {
            written,
            domain: Some(self.lasting_domain().to_owned()),
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            tag: Some(tag.to_owned()),
            digest: None,
        })
    }

    /// What is asked for, spelled out: `registry/repository@digest` if there is a digest, else
    /// `registry/repository:tag` with the tag that a runtime would use. Two references with the same canonical text
    /// pull the same thing.
    pub fn canonical(&self) -> String {
        match (&self.digest, self.effective_tag()) {
            (Some(digest), _) => format!("{}@{digest}", self.name()),
            (None, Some(tag)) => format!("{}:{tag}", self.name()),
            (None, None) => self.name(),
        }
    }

    /// Something that is allowed but that is rarely meant.
    pub fn doubt(&self) -> Option<Doubt> {
        doubt::of(self)
    }
}

/// The one name that a registry has for comparing, credentials and mirror rules: lower-case, and `docker.io` for the
/// names of Docker Hub's interface.
pub fn canonical_registry(domain: &str) -> String {
    let domain = domain.to_ascii_lowercase();
    match domain.as_str() {
        "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB.to_owned(),
        _ => domain,
    }
}

/// The first component is a registry if it reads as one; else everything is the path on Docker Hub.
fn split_domain(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((first, rest)) if is_domain(first) => (Some(first), rest),
        _ => (None, name),
    }
}

/// Whether a first component reads as a registry: it has a dot or colon, is `localhost`, or has upper-case letters (which
/// no repository has).
fn is_domain(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':']) || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.written)
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.written)
    }
}

as_text!(Reference, ReferenceError, "an image reference such as quay.io/team/app:1.2");

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;
