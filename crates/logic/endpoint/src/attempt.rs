//! The attempts to get an image, in order.

use std::fmt;

use scantling_image::{Digest, Reference};

use crate::credential::CredentialId;
use crate::keyring::Keyring;
use crate::mirrors::Mirrors;
use crate::scope::host_and_path;

/// What is asked for within a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    /// A tag, which may move.
    Tag(String),
    /// A digest.
    Digest(Digest),
}

impl Selector {
    /// What a runtime asks for: the digest if there is one, whatever the tag; else the tag, `latest` if none is
    /// written.
    pub fn of(reference: &Reference) -> Self {
        match reference.digest() {
            Some(digest) => Self::Digest(digest.clone()),
            None => Self::Tag(reference.effective_tag().unwrap_or("latest").to_owned()),
        }
    }

    /// The text for the registry's interface.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tag(tag) => tag,
            Self::Digest(digest) => digest.as_str(),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// One place to ask, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The registry's name, `host[:port]`. Docker Hub is `docker.io` here; who connects maps names to addresses.
    pub host: String,
    /// The repository's path there.
    pub repository: String,
    /// What to ask for.
    pub selector: Selector,
    /// With which credential; `None` is anonymously.
    pub credential: Option<CredentialId>,
    /// True if the registry may be asked over plain HTTP.
    pub insecure: bool,
    /// The registry that is meant, where the place asked serves several and is told so (containerd's `ns` parameter).
    pub namespace: Option<String>,
    /// The rule that led here; `None` is the registry that the reference names.
    pub via: Option<String>,
}

impl Attempt {
    /// What is asked for, as a reference: `host/repository:tag` or `host/repository@digest`.
    pub fn name(&self) -> String {
        let sign = match self.selector {
            Selector::Tag(_) => ':',
            Selector::Digest(_) => '@',
        };
        format!("{}/{}{sign}{}", self.host, self.repository, self.selector)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

/// The attempts that a node makes for a reference, in order: the mirrors of the longest rule that fits the kind of
/// reference, then the source, each with every credential that fits. None if rules forbid the source and give no
/// mirror; [`Mirrors::refusal`] says which.
///
/// A reference with both tag and digest is a pull by digest. A reference without a registry is looked up at the search
/// registries where the configuration names some, else at Docker Hub.
pub fn attempts(reference: &Reference, mirrors: &Mirrors, keyring: &Keyring) -> Vec<Attempt> {
    let selector = Selector::of(reference);
    let mut found = Vec::new();
    for name in names(reference, mirrors) {
        if mirrors.not_allowed(&name).is_none() {
            of_name(&name, &selector, mirrors, keyring, &mut found);
        }
    }
    found
}

/// The registry that the reference names, whatever the mirror rules say: where an image is written to.
pub fn source(reference: &Reference, mirrors: &Mirrors, keyring: &Keyring) -> Attempt {
    let name = reference.name();
    Attempt {
        host: reference.registry().to_owned(),
        repository: reference.repository().to_owned(),
        selector: Selector::of(reference),
        credential: keyring.candidates(&name).first().copied(),
        insecure: mirrors.is_insecure(&name),
        namespace: None,
        via: None,
    }
}

/// Full names of the repositories that the reference may mean.
fn names(reference: &Reference, mirrors: &Mirrors) -> Vec<String> {
    if reference.domain().is_some() || mirrors.search.is_empty() {
        return vec![reference.name()];
    }
    let searched: Vec<String> = mirrors
        .search
        .iter()
        .filter_map(|registry| Reference::parse(&format!("{registry}/{}", reference.written())).ok())
        .map(|reference| reference.name())
        .collect();
    if searched.is_empty() { vec![reference.name()] } else { searched }
}

fn of_name(name: &str, selector: &Selector, mirrors: &Mirrors, keyring: &Keyring, found: &mut Vec<Attempt>) {
    let (host, _) = split(name);
    let ruled = match (mirrors.rule(name), &mirrors.fallback) {
        (Some((scope, rule)), _) => {
            let rest = scope.covers(name).and_then(|covered| name.get(covered..)).unwrap_or_default();
            Some((scope.as_str(), rest, rule))
        }
        (None, Some(rule)) => Some((host, name.get(host.len()..).unwrap_or_default(), rule)),
        (None, None) => None,
    };
    let mut places = Places { name, selector, mirrors, keyring, found, is_containerd: false };
    let Some((scope, rest, rule)) = ruled else {
        places.add(name, false, None);
        return;
    };
    places.is_containerd = rule.is_containerd;
    let through = |location: &str| {
        // Hosts compare without case, so a rule's location is brought to the form of a name.
        let normal = match host_and_path(location) {
            Ok((host, path)) if path.is_empty() => host,
            Ok((host, path)) => format!("{host}/{path}"),
            Err(_) => location.to_owned(),
        };
        (format!("{normal}{rest}"), format!("{}: {scope} → {location}", rule.origin()))
    };
    for (location, insecure) in rule.mirrors(selector) {
        let (place, via) = through(location);
        places.add(&place, insecure, Some(via));
    }
    match &rule.location {
        Some(location) if location != scope => {
            let (place, via) = through(location);
            if !rule.blocked {
                places.add(&place, rule.insecure, Some(via));
            }
        }
        _ => places.add(name, rule.insecure, None),
    }
}

/// Collects the places for one name.
struct Places<'a> {
    name: &'a str,
    selector: &'a Selector,
    mirrors: &'a Mirrors,
    keyring: &'a Keyring,
    found: &'a mut Vec<Attempt>,
    is_containerd: bool,
}

impl Places<'_> {
    fn add(&mut self, location: &str, insecure: bool, via: Option<String>) {
        if self.mirrors.blocked(location).is_some() {
            return;
        }
        let ((host, _), (there, path)) = (split(self.name), split(location));
        let credentials = if there == host || self.is_containerd {
            // The kubelet chooses by the image's own name, before any rewriting.
            self.keyring.candidates(self.name)
        } else {
            self.keyring.for_mirror(location).into_iter().collect()
        };
        let namespace = (self.is_containerd && there != host).then(|| host.to_owned());
        let attempt = Attempt {
            host: there.to_owned(),
            repository: path.to_owned(),
            selector: self.selector.clone(),
            credential: None,
            insecure: insecure || self.mirrors.is_insecure(location),
            namespace,
            via,
        };
        if credentials.is_empty() {
            self.push(attempt);
        } else {
            for credential in credentials {
                self.push(Attempt { credential: Some(credential), ..attempt.clone() });
            }
        }
    }

    /// A list of mirrors may repeat the source.
    fn push(&mut self, attempt: Attempt) {
        let same = |other: &Attempt| {
            (&other.host, &other.repository, other.credential)
                == (&attempt.host, &attempt.repository, attempt.credential)
        };
        if !self.found.iter().any(same) {
            self.found.push(attempt);
        }
    }
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((name, ""))
}

#[cfg(test)]
mod cases;
