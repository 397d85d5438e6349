//! The image IDs that a kubelet reports in `status.containerStatuses[].imageID`.

use std::fmt;

use crate::digest::{Digest, DigestError};
use crate::reference::{Reference, ReferenceError};
use crate::serde_text::as_text;

/// Prefixes that container runtimes put in front of the ID: dockershim wrote `docker-pullable://` before a repository
/// digest and `docker://` before a bare ID; the others appear in the same place with other runtimes.
const PREFIXES: [&str; 4] = ["docker-pullable://", "docker://", "cri-o://", "containerd://"];

/// A pod's image ID: a digest, with or without the repository it was seen under.
///
/// What the digest is the digest *of* differs by runtime: an index, a platform's manifest, or a configuration. It must
/// be compared with the identity class of an image ([`crate::ImageIdentity`]), never with one digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId {
    written: String,
    name: Option<Reference>,
    digest: Digest,
}

/// Why a text is no image ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageIdError {
    /// Nothing was written: the container has no image yet.
    #[error("the image ID is empty: the container has not pulled its image yet")]
    Empty,
    /// A name without a digest.
    #[error("the image ID `{written}` has no digest")]
    NoDigest {
        /// What was written.
        written: String,
    },
    /// The digest is malformed.
    #[error("the digest of the image ID is malformed: {0}")]
    Digest(#[from] DigestError),
    /// The repository in front of the digest is malformed.
    #[error("the repository of the image ID is malformed: {0}")]
    Repository(#[from] ReferenceError),
}

impl ImageId {
    /// Reads `repository@sha256:…`, `docker-pullable://repository@sha256:…`, `docker://sha256:…`, `sha256:…` and a
    /// bare 64-digit ID.
    pub fn parse(written: &str) -> Result<Self, ImageIdError> {
        let text = PREFIXES.iter().find_map(|prefix| written.strip_prefix(prefix)).unwrap_or(written);
        if text.is_empty() {
            return Err(ImageIdError::Empty);
        }
        if text.contains('@') {
            let name = Reference::parse(text)?;
            let Some(digest) = name.digest().cloned() else {
                return Err(ImageIdError::NoDigest { written: written.to_owned() });
            };
            return Ok(Self { written: written.to_owned(), name: Some(name), digest });
        }
        let digest = match Digest::parse(text) {
            Ok(digest) => digest,
            Err(DigestError::NoAlgorithm { .. }) => Digest::parse(&format!("sha256:{text}"))
                .map_err(|_| ImageIdError::NoDigest { written: written.chars().take(80).collect() })?,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { written: written.to_owned(), name: None, digest })
    }

    /// The digest.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The path of the repository without the registry, if the runtime reported one.
    pub fn repository(&self) -> Option<&str> {
        self.name.as_ref().map(Reference::repository)
    }

    /// The reference in the ID, if the runtime reported a repository.
    pub fn reference(&self) -> Option<&Reference> {
        self.name.as_ref()
    }

    /// The text as the pod has it.
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.written)
    }
}

as_text!(ImageId, ImageIdError, "an image ID such as repository@sha256:…");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dialects() {
        let hex = "7ef272bc7be8".repeat(5) + "0123";
        let check = |text: String, repository: Option<&str>| {
            let id = ImageId::parse(&text).unwrap();
            assert_eq!(id.digest().hex(), hex, "{text}");
            assert_eq!(id.repository(), repository, "{text}");
            assert_eq!(id.to_string(), text);
        };
        check(format!("quay.io/modh/nb@sha256:{hex}"), Some("modh/nb"));
        check(format!("docker-pullable://quay.io/modh/nb@sha256:{hex}"), Some("modh/nb"));
        check(format!("docker-pullable://nginx@sha256:{hex}"), Some("library/nginx"));
        check(format!("docker://sha256:{hex}"), None);
        check(format!("sha256:{hex}"), None);
        check(hex.clone(), None);
    }

    #[test]
    fn what_is_no_image_id_says_why() {
        assert_eq!(ImageId::parse(""), Err(ImageIdError::Empty));
        assert_eq!(ImageId::parse("docker://"), Err(ImageIdError::Empty));
        assert_eq!(
            ImageId::parse("quay.io/a/b"),
            Err(ImageIdError::NoDigest { written: "quay.io/a/b".into() })
        );
        assert!(matches!(ImageId::parse("sha256:12"), Err(ImageIdError::Digest(_))));
        assert!(matches!(ImageId::parse("quay.io/a@sha256:12"), Err(ImageIdError::Repository(_))));
        assert!(matches!(ImageId::parse("quay.io/a:1"), Err(ImageIdError::Digest(_))));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,160}") {
            if let Ok(id) = ImageId::parse(&text) {
                prop_assert_eq!(id.written(), text);
            }
        }
    }
}
