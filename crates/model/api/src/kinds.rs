//! The kinds that a server serves.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::kind::GroupVersionKind;

/// A resource below an object, such as `pods/status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Name in the path: `status`, `scale`, `eviction`.
    pub name: String,
    /// Kind that requests and answers carry: that of the parent for `status`, `autoscaling/v1 Scale` for `scale`.
    pub gvk: GroupVersionKind,
    /// Verbs, as discovery writes them.
    pub verbs: Vec<String>,
}

/// What is known about one kind in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindFacts {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Name in paths: `deployments`.
    pub plural: String,
    /// Name in commands: `deployment`.
    pub singular: String,
    /// Short names in commands: `deploy`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Verbs, as discovery writes them.
    pub verbs: Vec<String>,
    /// Resources below an object of this kind.
    pub subresources: Vec<Subresource>,
    /// Whether `status` is a subresource, so that the two halves of an object are written separately.
    pub status: bool,
    /// Name of the kind's type in the schema.
    pub type_name: String,
}

impl KindFacts {
    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
}

/// A group and its versions, the preferred one first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GroupFacts {
    /// Name, empty for the core group.
    pub name: String,
    /// Versions, the preferred one first.
    pub versions: Vec<String>,
}

/// Kinds by their various names, in the order in which a server's discovery lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    groups: Vec<GroupFacts>,
    facts: BTreeMap<GroupVersionKind, KindFacts>,
    /// (group, version, plural) to the kind.
    plurals: BTreeMap<(String, String, String), GroupVersionKind>,
}

/// Why a facts file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// It is not JSON of the expected shape.
    #[error("the facts about the API's kinds cannot be read: {0}")]
    Shape(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct File {
    groups: Vec<GroupFacts>,
    kinds: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    plural: String,
    #[serde(default)]
    singular: String,
    #[serde(default)]
    short: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    cluster: bool,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<SubresourceEntry>,
    #[serde(default, rename = "type")]
    type_name: String,
}

#[derive(Deserialize)]
struct SubresourceEntry {
    name: String,
    #[serde(default)]
    group: String,
    version: Option<String>,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
}

impl Kinds {
    /// Reads a facts file: `groups` and `kinds` (`group/version/Kind`, without the group for the core group). Entries
    /// without a plural name are kinds that only subresources speak; they are not served on their own.
    pub fn from_facts(text: &str) -> Result<Kinds, FactsError> {
        let file: File = serde_json::from_str(text)?;
        let mut kinds = Kinds { groups: file.groups, ..Kinds::default() };
        for (key, entry) in file.kinds {
            if entry.plural.is_empty() {
                continue;
            }
            let (api_version, kind) = key.rsplit_once('/').unwrap_or(("", &key));
            kinds.insert(entry.facts(GroupVersionKind::from_api_version(api_version, kind)));
        }
        Ok(kinds)
    }

    /// Adds a kind, or replaces what was known about it. A group or version not seen before is added at the end.
    pub fn insert(&mut self, facts: KindFacts) {
        let gvk = facts.gvk.clone();
        self.remove(&gvk);
        if !self.groups.iter().any(|group| group.name == gvk.group) {
            self.groups.push(GroupFacts { name: gvk.group.clone(), versions: Vec::new() });
        }
        for group in self.groups.iter_mut().filter(|group| group.name == gvk.group) {
            if !group.versions.contains(&gvk.version) {
                group.versions.push(gvk.version.clone());
                group.versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
            }
        }
        self.plurals.insert((gvk.group.clone(), gvk.version.clone(), facts.plural.clone()), gvk.clone());
        self.facts.insert(gvk, facts);
    }

    /// Takes a kind away, and its group and version with the last kind in them.
    pub fn remove(&mut self, gvk: &GroupVersionKind) -> Option<KindFacts> {
        let facts = self.facts.remove(gvk)?;
        self.plurals.remove(&(gvk.group.clone(), gvk.version.clone(), facts.plural.clone()));
        if !self.facts.keys().any(|other| other.group == gvk.group && other.version == gvk.version) {
            for group in self.groups.iter_mut().filter(|group| group.name == gvk.group) {
                group.versions.retain(|version| *version != gvk.version);
            }
            self.groups.retain(|group| !group.versions.is_empty());
        }
        Some(facts)
    }

    /// Adds all kinds of another set.
    pub fn extend(&mut self, other: &Kinds) {
        for facts in other.iter() {
            self.insert(facts.clone());
        }
    }

    /// The kind of exactly this group, version and name.
    pub fn by_gvk(&self, gvk: &GroupVersionKind) -> Option<&KindFacts> {
        self.facts.get(gvk)
    }

    /// The kind in the preferred version among those of the group that serve it.
    pub fn by_kind(&self, group: &str, kind: &str) -> Option<&KindFacts> {
        let versions = &self.groups.iter().find(|facts| facts.name == group)?.versions;
        versions.iter().find_map(|version| self.by_gvk(&GroupVersionKind::new(group, version.as_str(), kind)))
    }

    /// The kind by its name in paths.
    pub fn by_plural(&self, group: &str, version: &str, plural: &str) -> Option<&KindFacts> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.by_gvk(self.plurals.get(&key)?)
    }

    /// Groups in the order of discovery; the core group has the empty name.
    pub fn groups(&self) -> &[GroupFacts] {
        &self.groups
    }

    /// The kinds of one group and version, ordered by their plural names as discovery lists them.
    pub fn in_version<'a>(&'a self, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a KindFacts> {
        let first = (group.to_owned(), version.to_owned(), String::new());
        self.plurals
            .range(first..)
            .take_while(move |((g, v, _), _)| g == group && v == version)
            .filter_map(|(_, gvk)| self.by_gvk(gvk))
    }

    /// All kinds, ordered by group, version and kind.
    pub fn iter(&self) -> impl Iterator<Item = &KindFacts> {
        self.facts.values()
    }
}

impl Entry {
    fn facts(self, gvk: GroupVersionKind) -> KindFacts {
        let subresources: Vec<Subresource> = self
            .subresources
            .into_iter()
            .map(|sub| Subresource {
                gvk: match sub.version {
                    Some(version) => GroupVersionKind::new(sub.group, version, sub.kind),
                    None => GroupVersionKind::new(gvk.group.as_str(), gvk.version.as_str(), sub.kind),
                },
                name: sub.name,
                verbs: sub.verbs,
            })
            .collect();
        KindFacts {
            singular: if self.singular.is_empty() { gvk.kind.to_lowercase() } else { self.singular },
            plural: self.plural,
            short_names: self.short,
            categories: self.categories,
            namespaced: !self.cluster,
            verbs: self.verbs,
            status: subresources.iter().any(|sub| sub.name == "status"),
            subresources,
            type_name: self.type_name,
            gvk,
        }
    }
}

/// Order of versions by "version priority" of the custom resources' documentation: stable before beta before alpha,
/// then the higher numbers; whatever is no such version comes last.
fn version_priority(version: &str) -> (u8, u32, u32) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let (major, rest) = leading_number(rest);
    let (rank, minor) = match (major, rest) {
        (None, _) => return (0, 0, 0),
        (_, "") => (3, Some(0)),
        (_, rest) if rest.starts_with("beta") => (2, leading_number(&rest["beta".len()..]).0),
        (_, rest) if rest.starts_with("alpha") => (1, leading_number(&rest["alpha".len()..]).0),
        _ => return (0, 0, 0),
    };
    (rank, major.unwrap_or_default(), minor.unwrap_or_default())
}

fn leading_number(text: &str) -> (Option<u32>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.parse().ok(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_names_verbs_and_a_type() {
        for facts in Kinds::kubernetes().iter().chain(Kinds::openshift().iter()) {
            assert!(
                !facts.type_name.is_empty() && !facts.plural.is_empty() && !facts.singular.is_empty(),
                "{facts:?}"
            );
            assert!(!facts.verbs.is_empty(), "{facts:?}");
        }
    }

    #[test]
    fn kinds_are_found_by_all_their_names() {
        let kinds = Kinds::kubernetes();
        let deployment = kinds.by_kind("apps", "Deployment").unwrap();
        assert_eq!(deployment.gvk.to_string(), "apps/v1 Deployment");
        assert_eq!(deployment.short_names, ["deploy"]);
        assert_eq!(deployment.type_name, "io.k8s.api.apps.v1.Deployment");
        assert!(deployment.status && deployment.namespaced);
        assert_eq!(deployment.subresource("scale").unwrap().gvk.to_string(), "autoscaling/v1 Scale");
        assert_eq!(kinds.by_plural("apps", "v1", "deployments"), Some(deployment));
        assert_eq!(kinds.by_kind("autoscaling", "HorizontalPodAutoscaler").unwrap().gvk.version, "v2");
        assert!(!kinds.by_kind("", "Node").unwrap().namespaced);
        assert!(kinds.by_kind("policy", "Eviction").is_none());
        assert!(kinds.by_kind("", "NoSuch").is_none() && kinds.by_kind("no.such", "Pod").is_none());
    }

    #[test]
    fn versions_of_a_new_group_are_ordered_and_vanish_with_their_last_kind() {
        let mut kinds = Kinds::default();
        let template = Kinds::kubernetes().by_kind("", "ConfigMap").unwrap();
        let order = ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "odd"];
        for version in ["v1beta2", "odd", "v1", "v10", "v1alpha1", "v2beta1", "v2"] {
            kinds.insert(KindFacts {
                gvk: GroupVersionKind::new("example.com", version, "X"),
                ..template.clone()
            });
        }
        assert_eq!(kinds.groups()[0].versions, order);
        assert_eq!(kinds.by_kind("example.com", "X").unwrap().gvk.version, "v10");
        for version in order {
            assert!(kinds.remove(&GroupVersionKind::new("example.com", version, "X")).is_some());
        }
        assert_eq!(kinds, Kinds::default());
    }
}
