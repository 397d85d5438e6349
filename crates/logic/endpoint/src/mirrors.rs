//! Mirror rules and registry policies of a cluster.

use std::collections::BTreeMap;

use scantling_image::{Reference, canonical_registry};
use serde_json::Value;

use crate::attempt::Selector;
use crate::order::merged;
use crate::scope::Scope;
use crate::toml::TomlError;
use crate::{containerd_hosts, endpoints_file, openshift, registries_conf};

/// Most rules of all kinds together; large disconnected clusters have some hundred.
const RULES_MAX: usize = 10_000;
/// Largest file of rules that is read, in bytes; `registries.conf` of a large cluster is below 100 KiB.
pub(crate) const FILE_MAX: usize = 1024 * 1024;

/// Everything that says where a cluster asks for images: mirror rules, blocked, allowed and insecure registries,
/// search registries for short names, and addresses.
///
/// Sources: OpenShift's `ImageDigestMirrorSet`, `ImageTagMirrorSet`, `ImageContentSourcePolicy` and the cluster's
/// `Image` configuration; `registries.conf` (version 2) of a node; containerd's `hosts.toml`; an endpoints file of addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors {
    pub(crate) rules: BTreeMap<Scope, Rule>,
    /// Scopes with their origin; unlike a rule's own flag they hold for everything nested in them.
    pub(crate) insecure: BTreeMap<Scope, String>,
    pub(crate) blocked: BTreeMap<Scope, String>,
    pub(crate) allowed: Option<(String, Vec<Scope>)>,
    pub(crate) search: Vec<String>,
    addresses: BTreeMap<String, Address>,
    /// containerd's rule for registries without one of their own.
    pub(crate) fallback: Option<Rule>,
}

/// Where a registry is really reached: an address that stands in for its name. The registry keeps its name; only the
/// connection goes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `host:port` to connect to.
    pub address: String,
    /// True if it speaks plain HTTP.
    pub insecure: bool,
}

/// One source and what stands in for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) origins: Vec<String>,
    /// Another place that the source itself is asked at (`location` of registries.conf).
    pub(crate) location: Option<String>,
    pub(crate) insecure: bool,
    pub(crate) blocked: bool,
    /// Mirrors of registries.conf, in order.
    pub(crate) listed: Vec<Mirror>,
    /// True for containerd, which sends the pod's credential to mirrors too, and tells them which registry is meant.
    pub(crate) is_containerd: bool,
    /// Lists of mirrors from OpenShift's objects, to be joined.
    pub(crate) for_digests: Vec<Vec<String>>,
    pub(crate) for_tags: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    pub(crate) location: String,
    pub(crate) insecure: bool,
    pub(crate) pull: PullFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullFrom {
    All,
    DigestOnly,
    TagOnly,
}

impl PullFrom {
    fn serves(self, selector: &Selector) -> bool {
        match self {
            Self::All => true,
            Self::DigestOnly => matches!(selector, Selector::Digest(_)),
            Self::TagOnly => matches!(selector, Selector::Tag(_)),
        }
    }
}

/// Why rules could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MirrorsError {
    /// A field of an object is missing or has the wrong form.
    #[error("{origin}: {field}: {problem}")]
    Field {
        /// The object or file.
        origin: String,
        /// The field's path.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// The file is no TOML that we read.
    #[error("{origin}: {error}")]
    Toml {
        /// The file.
        origin: String,
        /// Where and why.
        error: TomlError,
    },
    /// The file is no YAML that we read.
    #[error("{origin}: {problem}")]
    Yaml {
        /// The file.
        origin: String,
        /// Where and why.
        problem: String,
    },
    /// The file is larger than is read.
    #[error("{origin}: {size} bytes, at most {FILE_MAX} are read")]
    Size {
        /// The file.
        origin: String,
        /// Its size in bytes.
        size: usize,
    },
    /// There are too many rules.
    #[error("{origin}: more than {RULES_MAX} rules")]
    Count {
        /// The object or file with which there were too many.
        origin: String,
    },
}

impl Mirrors {
    /// No rules: every registry is asked itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the rules of an OpenShift object: `ImageDigestMirrorSet`, `ImageTagMirrorSet` and `Image`
    /// (config.openshift.io/v1), `ImageContentSourcePolicy` (operator.openshift.io/v1alpha1). Gives `false` for any
    /// other object. Give objects in the order of their names, as the cluster does.
    pub fn add_object(&mut self, object: &Value) -> Result<bool, MirrorsError> {
        let known = openshift::add(self, object)?;
        self.check_count(&openshift::origin(object))?;
        Ok(known)
    }

    /// Takes a `registries.conf` of version 2. A later file replaces the entries of an earlier one with the same
    /// prefix, as drop-in files do.
    pub fn add_registries_conf(&mut self, origin: &str, text: &str) -> Result<(), MirrorsError> {
        check_size(origin, text.len())?;
        registries_conf::add(self, origin, text)?;
        self.check_count(origin)
    }

    /// Takes a containerd `hosts.toml`. The registry is the name of its folder below `certs.d`: `docker.io`,
    /// `registry.example.com:5000`, or `_default` for all registries without a folder.
    pub fn add_containerd_hosts(
        &mut self,
        origin: &str,
        registry: &str,
        text: &str,
    ) -> Result<(), MirrorsError> {
        check_size(origin, text.len())?;
        containerd_hosts::add(self, origin, registry, text)?;
        self.check_count(origin)
    }

    /// Takes an endpoints file: `{version: 1, endpoints: [{registry: quay.io, address: 127.0.0.1:5000, insecure:
    /// true}]}`. It sends connections for a registry to an address; the registry keeps its name.
    pub fn add_endpoints(&mut self, origin: &str, yaml: &[u8]) -> Result<(), MirrorsError> {
        check_size(origin, yaml.len())?;
        endpoints_file::add(self, origin, yaml)?;
        self.check_count(origin)
    }

    /// Sends connections for a registry to an address.
    pub fn set_address(&mut self, registry: &str, address: Address) {
        self.addresses.insert(canonical_registry(registry), address);
    }

    /// The address that stands in for a registry's name.
    pub fn address(&self, registry: &str) -> Option<&Address> {
        self.addresses.get(&canonical_registry(registry))
    }

    /// The registries with an address of their own, in order.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, &Address)> {
        self.addresses.iter().map(|(registry, address)| (registry.as_str(), address))
    }

    /// Why the reference's own registry must not be asked, if a rule forbids it. Mirrors may still serve it, unless
    /// the registry is not among the allowed ones.
    pub fn refusal(&self, reference: &Reference) -> Option<String> {
        self.not_allowed(&reference.name()).or_else(|| self.blocked(&reference.name()))
    }

    pub(crate) fn not_allowed(&self, name: &str) -> Option<String> {
        let (origin, scopes) = self.allowed.as_ref()?;
        let allowed = scopes.iter().any(|scope| scope.covers(name).is_some());
        (!allowed).then(|| format!("{origin} does not allow {name}"))
    }

    pub(crate) fn blocked(&self, name: &str) -> Option<String> {
        if let Some((scope, origin)) = self.blocked.iter().find(|(scope, _)| scope.covers(name).is_some()) {
            return Some(format!("{origin} blocks {}", scope.as_str()));
        }
        let (scope, rule) = self.rule(name)?;
        rule.blocked.then(|| format!("{} says never to contact {}", rule.origin(), scope.as_str()))
    }

    pub(crate) fn is_insecure(&self, name: &str) -> bool {
        let registry = name.split('/').next().unwrap_or(name);
        self.insecure.keys().any(|scope| scope.covers(name).is_some())
            || self.rule(name).is_some_and(|(scope, rule)| rule.insecure && rule.is_source(scope))
            || self.address(registry).is_some_and(|address| address.insecure)
    }

    /// The rule with the longest scope that covers the name. Only that one counts, even if it has no mirror for this
    /// kind of reference: that is how container runtimes on OpenShift decide.
    pub(crate) fn rule(&self, name: &str) -> Option<(&Scope, &Rule)> {
        self.rules
            .iter()
            .filter(|(scope, _)| scope.covers(name).is_some())
            .max_by_key(|(scope, _)| scope.as_str().len())
    }

    pub(crate) fn entry(&mut self, scope: Scope, origin: &str) -> &mut Rule {
        let rule = self.rules.entry(scope).or_default();
        if !rule.origins.iter().any(|known| known == origin) {
            rule.origins.push(origin.to_owned());
        }
        rule
    }

    fn check_count(&self, origin: &str) -> Result<(), MirrorsError> {
        let mirrors = |rule: &Rule| {
            rule.listed.len()
                + rule.for_digests.iter().chain(&rule.for_tags).map(|list| list.len() + 1).sum::<usize>()
        };
        let count = self.rules.values().chain(&self.fallback).map(|rule| 1 + mirrors(rule)).sum::<usize>()
            + self.insecure.len()
            + self.blocked.len()
            + self.allowed.as_ref().map_or(0, |(_, scopes)| scopes.len())
            + self.addresses.len();
        if count > RULES_MAX { Err(MirrorsError::Count { origin: origin.to_owned() }) } else { Ok(()) }
    }
}

impl Rule {
    pub(crate) fn origin(&self) -> String {
        self.origins.join(", ")
    }

    /// True if what the rule says of the source is about the scope itself, not about another place.
    fn is_source(&self, scope: &Scope) -> bool {
        self.location.as_ref().is_none_or(|location| location == scope.as_str())
    }

    /// Locations of mirrors that serve the selector, in order, with whether the rule itself calls them insecure.
    pub(crate) fn mirrors(&self, selector: &Selector) -> Vec<(&str, bool)> {
        let mut found: Vec<(&str, bool)> = self
            .listed
            .iter()
            .filter(|mirror| mirror.pull.serves(selector))
            .map(|mirror| (mirror.location.as_str(), mirror.insecure))
            .collect();
        let lists = match selector {
            Selector::Digest(_) => &self.for_digests,
            Selector::Tag(_) => &self.for_tags,
        };
        let lists: Vec<&[String]> = lists.iter().map(Vec::as_slice).collect();
        found.extend(merged(&lists).into_iter().map(|location| (location, false)));
        found
    }
}

fn check_size(origin: &str, size: usize) -> Result<(), MirrorsError> {
    if size > FILE_MAX { Err(MirrorsError::Size { origin: origin.to_owned(), size }) } else { Ok(()) }
}
