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
    let (host, repository) = split(name);
    let mut add = |location: &str, insecure: bool, via: Option<String>| {
        if mirrors.blocked(location).is_some() {
            return;
        }
        let (there, path) = split(location);
        let credentials = if there == host {
            // The kubelet chooses by the image's own name, before any rewriting.
            keyring.candidates(name)
        } else {
            keyring.for_mirror(location).into_iter().collect()
        };
        let attempt = Attempt {
            host: there.to_owned(),
            repository: path.to_owned(),
            selector: selector.clone(),
            credential: None,
            insecure: insecure || mirrors.is_insecure(location),
            via,
        };
        let mut push = |attempt: Attempt| {
            // A list of mirrors may repeat the source.
            let same = |other: &Attempt| {
                (&other.host, &other.repository, other.credential)
                    == (&attempt.host, &attempt.repository, attempt.credential)
            };
            if !found.iter().any(same) {
                found.push(attempt);
            }
        };
        if credentials.is_empty() {
            push(attempt);
        } else {
            for credential in credentials {
                push(Attempt { credential: Some(credential), ..attempt.clone() });
            }
        }
    };
    let Some((scope, rule)) = mirrors.rule(name) else {
        add(&format!("{host}/{repository}"), false, None);
        return;
    };
    let rest = scope.covers(name).and_then(|covered| name.get(covered..)).unwrap_or_default();
    let through = |location: &str| {
        // Hosts compare without case, so a rule's location is brought to the form of a name.
        let normal = match host_and_path(location) {
            Ok((host, path)) if path.is_empty() => host,
            Ok((host, path)) => format!("{host}/{path}"),
            Err(_) => location.to_owned(),
        };
        (format!("{normal}{rest}"), format!("{}: {} → {location}", rule.origin(), scope.as_str()))
    };
    for (location, insecure) in rule.mirrors(selector) {
        let (place, via) = through(location);
        add(&place, insecure, Some(via));
    }
    match &rule.location {
        Some(location) if location != scope.as_str() => {
            let (place, via) = through(location);
            if !rule.blocked {
                add(&place, rule.insecure, Some(via));
            }
        }
        _ => add(name, rule.insecure, None),
    }
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((name, ""))
}

#[cfg(test)]
mod cases;
