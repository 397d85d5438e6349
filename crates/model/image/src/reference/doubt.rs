//! References that are allowed but rarely meant.

use std::fmt;

use super::{DOCKER_HUB, Reference};

/// Something that the grammar allows but that is rarely meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// `localhost:5000` or `registry.example.com:5000`: a registry with its port and no repository, which reads as a
    /// repository on Docker Hub with a number as its tag.
    PortAsTag {
        /// What reads as a repository.
        name: String,
        /// What reads as a tag.
        port: String,
    },
    /// `registry.example.com`: a registry alone, which reads as a repository on Docker Hub.
    HostAsRepository {
        /// The host.
        name: String,
    },
    /// `TeamA/app`: upper-case letters make the first component a registry, where a path was probably meant.
    PathAsHost {
        /// The first component.
        name: String,
    },
    /// A whole SHA-256 value written as a tag.
    HashAsTag,
}

pub(super) fn of(reference: &Reference) -> Option<Doubt> {
    let tag = reference.tag();
    if tag.is_some_and(|tag| tag.len() == 64 && tag.bytes().all(|b| b.is_ascii_hexdigit())) {
        return Some(Doubt::HashAsTag);
    }
    match reference.domain() {
        None => {
            let name = reference.repository().strip_prefix("library/")?;
            if !name.contains('.') && name != "localhost" {
                return None;
            }
            match tag {
                Some(port) if port.parse::<u16>().is_ok() => {
                    Some(Doubt::PortAsTag { name: name.to_owned(), port: port.to_owned() })
                }
                None if looks_like_a_host(name) => Some(Doubt::HostAsRepository { name: name.to_owned() }),
                _ => None,
            }
        }
        Some(domain) if reference.registry() != DOCKER_HUB => {
            let plain = !domain.contains(['.', ':']) && domain != "localhost";
            plain.then(|| Doubt::PathAsHost { name: domain.to_owned() })
        }
        Some(_) => None,
    }
}

/// A last label of letters only, as top-level domains have; `python3.8` has none.
fn looks_like_a_host(name: &str) -> bool {
    name == "localhost"
        || name
            .rsplit_once('.')
            .is_some_and(|(_, last)| last.len() >= 2 && last.bytes().all(|b| b.is_ascii_lowercase()))
}

impl fmt::Display for Doubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PortAsTag { name, port } => write!(
                formatter,
                "this reads as the tag `{port}` of {DOCKER_HUB}/library/{name}, not as the registry {name}:{port}; \
                 add the repository: {name}:{port}/REPOSITORY"
            ),
            Self::HostAsRepository { name } => write!(
                formatter,
                "this reads as the repository {DOCKER_HUB}/library/{name}, not as the registry {name}; \
                 add the repository: {name}/REPOSITORY"
            ),
            Self::PathAsHost { name } => write!(
                formatter,
                "`{name}` reads as the name of a registry because of its upper-case letters; \
                 repositories are lower-case"
            ),
            Self::HashAsTag => formatter.write_str(
                "the tag is a whole SHA-256 value; if a digest is meant, write @sha256: in front of it",
            ),
        }
    }
}
