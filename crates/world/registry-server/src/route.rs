//! Which resource of the distribution API a path names.

use scantling_image::Digest;

/// Longest repository name, as distribution has it (host and name together make at most 255 there).
const MAX_NAME: usize = 255;
/// Longest tag, from the specification's grammar.
const MAX_TAG: usize = 128;

/// A tag or a digest, as it stands at the end of a manifest's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    /// A tag.
    Tag(String),
    /// A digest.
    Digest(Digest),
}

impl Selector {
    /// Reads a tag or digest; `None` when it is neither.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.contains(':') {
            Digest::parse(text).ok().map(Self::Digest)
        } else {
            is_tag(text).then(|| Self::Tag(text.to_owned()))
        }
    }
}

/// A resource of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/v2/`
    Base,
    /// `/v2/_catalog`
    Catalog,
    /// `/token`
    Token,
    /// `/v2/NAME/tags/list`
    Tags { name: String },
    /// `/v2/NAME/manifests/REFERENCE`
    Manifest { name: String, selector: Selector },
    /// `/v2/NAME/blobs/DIGEST`
    Blob { name: String, digest: Digest },
    /// `/v2/NAME/blobs/uploads/`
    Uploads { name: String },
    /// `/v2/NAME/blobs/uploads/ID`
    Upload { name: String, id: String },
    /// `/v2/NAME/referrers/DIGEST`
    Referrers { name: String, digest: Digest },
}

/// Why a path names nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// Not a path of the API.
    Unknown,
    /// The repository's name breaks the grammar.
    Name(String),
    /// The digest is malformed.
    Digest(String),
    /// Neither a tag nor a digest.
    Reference(String),
}

impl Route {
    /// Reads a path. The last keyword decides, because repositories may be called `manifests` or `blobs`.
    pub(crate) fn parse(path: &str) -> Result<Self, NoRoute> {
        if path == "/token" {
            return Ok(Self::Token);
        }
        let rest = match path {
            "/v2" | "/v2/" => return Ok(Self::Base),
            "/v2/_catalog" => return Ok(Self::Catalog),
            _ => path.strip_prefix("/v2/").ok_or(NoRoute::Unknown)?,
        };
        if let Some(name) = rest.strip_suffix("/tags/list") {
            return Ok(Self::Tags { name: repository(name)? });
        }
        if let Some((name, id)) = rest.rsplit_once("/blobs/uploads") {
            let name = repository(name)?;
            return match id.strip_prefix('/') {
                None if id.is_empty() => Ok(Self::Uploads { name }),
                Some("") => Ok(Self::Uploads { name }),
                Some(id) if !id.contains('/') => Ok(Self::Upload { name, id: id.to_owned() }),
                _ => Err(NoRoute::Unknown),
            };
        }
        let (head, last) = rest.rsplit_once('/').ok_or(NoRoute::Unknown)?;
        let (name, keyword) = head.rsplit_once('/').ok_or(NoRoute::Unknown)?;
        let digest = |text: &str| Digest::parse(text).map_err(|_| NoRoute::Digest(text.to_owned()));
        match keyword {
            "manifests" => {
                let name = repository(name)?;
                let selector = Selector::parse(last).ok_or_else(|| {
                    if last.contains(':') {
                        NoRoute::Digest(last.to_owned())
                    } else {
                        NoRoute::Reference(last.to_owned())
                    }
                })?;
                Ok(Self::Manifest { name, selector })
            }
            "blobs" => Ok(Self::Blob { name: repository(name)?, digest: digest(last)? }),
            "referrers" => Ok(Self::Referrers { name: repository(name)?, digest: digest(last)? }),
            _ => Err(NoRoute::Unknown),
        }
    }

    /// The repository that the route is about.
    pub(crate) fn repository(&self) -> Option<&str> {
        match self {
            Self::Base | Self::Catalog | Self::Token => None,
            Self::Tags { name }
            | Self::Manifest { name, .. }
            | Self::Blob { name, .. }
            | Self::Uploads { name }
            | Self::Upload { name, .. }
            | Self::Referrers { name, .. } => Some(name),
        }
    }
}

fn repository(name: &str) -> Result<String, NoRoute> {
    if is_repository(name) { Ok(name.to_owned()) } else { Err(NoRoute::Name(name.to_owned())) }
}

/// Is this a repository name by the specification's grammar: lower-case path components, joined by `/`, whose alphanumeric runs are
/// separated by `.`, `_`, `__` or any number of `-`?
pub(crate) fn is_repository(name: &str) -> bool {
    name.len() <= MAX_NAME && name.split('/').all(is_component)
}

fn is_component(component: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    if !alphanumeric(*first) || !alphanumeric(*last) {
        return false;
    }
    bytes.split(|b| alphanumeric(*b)).all(|separator| {
        matches!(separator, b"" | b"." | b"_" | b"__") || separator.iter().all(|b| *b == b'-')
    })
}

/// Is this a tag by the specification's grammar?
pub(crate) fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= MAX_TAG
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    const D: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_last_keyword_decides() {
        let name = |n: &str| n.to_owned();
        let digest = Digest::parse(D).unwrap();
        for (path, want) in [
            ("/v2", Ok(Route::Base)),
            ("/v2/", Ok(Route::Base)),
            ("/v2/_catalog", Ok(Route::Catalog)),
            ("/v2/a/tags/list", Ok(Route::Tags { name: name("a") })),
            ("/v2/tags/list/tags/list", Ok(Route::Tags { name: name("tags/list") })),
            (
                "/v2/manifests/manifests/manifests/v1",
                Ok(Route::Manifest {
                    name: name("manifests/manifests"),
                    selector: Selector::Tag(name("v1")),
                }),
            ),
            (
                &format!("/v2/a/b/manifests/{D}"),
                Ok(Route::Manifest { name: name("a/b"), selector: Selector::Digest(digest.clone()) }),
            ),
            (&format!("/v2/a/blobs/{D}"), Ok(Route::Blob { name: name("a"), digest: digest.clone() })),
            ("/v2/a/blobs/uploads/", Ok(Route::Uploads { name: name("a") })),
            ("/v2/a/blobs/uploads", Ok(Route::Uploads { name: name("a") })),
            ("/v2/a/blobs/uploads/7", Ok(Route::Upload { name: name("a"), id: name("7") })),
            (&format!("/v2/a/referrers/{D}"), Ok(Route::Referrers { name: name("a"), digest })),
            ("/v2/a/blobs/sha256:12", Err(NoRoute::Digest(name("sha256:12")))),
            ("/v2/a/manifests/-x", Err(NoRoute::Reference(name("-x")))),
            ("/v2/A/manifests/x", Err(NoRoute::Name(name("A")))),
            ("/v2/../manifests/x", Err(NoRoute::Name(name("..")))),
            ("/v2/x", Err(NoRoute::Unknown)),
            ("/v1/", Err(NoRoute::Unknown)),
        ] {
            assert_eq!(Route::parse(path), want, "{path}");
        }
    }

    #[test]
    fn repository_names() {
        for good in ["a", "a/b/c", "a.b", "a_b", "a__b", "a---b", "0"] {
            assert!(is_repository(good), "{good}");
        }
        for bad in ["", "/", "a/", "/a", "a//b", "A", "a..b", "a___b", "a._b", "-a", "a-", "é"] {
            assert!(!is_repository(bad), "{bad}");
        }
        assert!(!is_repository(&"a".repeat(MAX_NAME + 1)));
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in "(/|/v2/|/v2/[a-z/]{0,20})?[ -~]{0,60}") {
            if let Ok(route) = Route::parse(&path)
                && let Some(name) = route.repository()
            {
                prop_assert!(path.contains(name));
                prop_assert!(is_repository(name));
            }
        }
    }
}
