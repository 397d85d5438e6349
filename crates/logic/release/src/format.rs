//! What `release.yaml` says, as written: the types that it is decoded into. Unknown fields are refused.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Requirement, Version};

/// The only accepted `apiVersion`.
pub const API_VERSION: &str = "scantling.dev/v1alpha1";
/// The only accepted `kind`.
pub(crate) const KIND: &str = "Release";
/// The name of the release file.
pub const RELEASE_FILE: &str = "release.yaml";

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReleaseFile {
    #[expect(dead_code, reason = "checked before decoding; declared so that it is a known field")]
    /// Always `scantling.dev/v1alpha1`.
    api_version: String,
    #[expect(dead_code, reason = "checked before decoding; declared so that it is a known field")]
    /// Always `Release`.
    kind: String,
    /// The platform's name; releases of one platform have the same.
    pub(crate) name: String,
    /// The release's version.
    pub(crate) version: Version,
    /// The versions that it may be an upgrade from; without any it can only be installed on an empty cluster.
    #[serde(default)]
    pub(crate) follows: Vec<Version>,
    /// The versions of Scantling that may bring it, as `>=0.1.0` or `>=0.1.0, <0.3.0`.
    pub(crate) requires: Option<Requirement>,
    /// The namespace of objects that name none.
    pub(crate) namespace: Option<String>,
    /// Files and folders, relative to this file, whose documents are applied; each is a path alone, or a path with the
    /// component that it belongs to. Of several that cover a file the longest path decides.
    #[serde(deserialize_with = "manifests")]
    pub(crate) manifests: Vec<ManifestEntry>,
    /// Files and folders of code and settings that are not applied but searched for references.
    #[serde(default)]
    pub(crate) sources: Vec<String>,
    /// Where the release's images live, if that is for the admin to say.
    pub(crate) registry: Option<RegistryPlaceholder>,
    /// Parts that an admin can leave out or ask for; what belongs to none of them is always there.
    #[serde(default)]
    pub(crate) components: Vec<Component>,
    /// The workload that is applied and waited for before every other one.
    pub(crate) operator: Option<Operator>,
    /// What people choose notebooks from.
    pub(crate) catalogue: Option<Catalogue>,
    /// Code that uses an image of its own choice when something is missing.
    #[serde(default)]
    pub(crate) fallbacks: Vec<Fallback>,
    /// Secrets that are made once per cluster and then kept.
    #[serde(default)]
    pub(crate) generated: Vec<Generated>,
    /// Who wins when somebody changed a field that the release brings.
    #[serde(default)]
    pub(crate) ownership: Vec<OwnershipRule>,
    /// Placeholders in manifests and what fills them.
    #[serde(default)]
    pub(crate) substitutions: Vec<Substitution>,
    /// The sets of clusters that the release is for, each with the registries that it may pull from.
    #[serde(default)]
    pub(crate) environments: Vec<Environment>,
}

impl ReleaseFile {
    /// What stands for the file in a plain folder: everything is a manifest, and there are no rules.
    pub(crate) fn anonymous() -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            name: "unnamed".to_owned(),
            version: Version::zero(),
            follows: Vec::new(),
            requires: None,
            namespace: None,
            manifests: vec![ManifestEntry { path: ".".to_owned(), component: None }],
            sources: Vec::new(),
            registry: None,
            components: Vec::new(),
            operator: None,
            catalogue: None,
            fallbacks: Vec::new(),
            generated: Vec::new(),
            ownership: Vec::new(),
            substitutions: Vec::new(),
            environments: Vec::new(),
        }
    }
}

/// A file or folder whose documents are applied.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ManifestEntry {
    /// The path, relative to this file.
    pub(crate) path: String,
    /// The component that it belongs to; without one it is always applied.
    pub(crate) component: Option<String>,
}

/// Reads the list of manifests: a text stands for an entry without a component.
fn manifests<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ManifestEntry>, D::Error> {
    struct Written(ManifestEntry);

    impl<'de> Deserialize<'de> for Written {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Either;

            impl<'de> Visitor<'de> for Either {
                type Value = Written;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a path, or a mapping with `path` and `component`")
                }

                fn visit_str<E>(self, path: &str) -> Result<Written, E> {
                    Ok(Written(ManifestEntry { path: path.to_owned(), component: None }))
                }

                fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
                    ManifestEntry::deserialize(MapAccessDeserializer::new(map)).map(Written)
                }
            }

            deserializer.deserialize_any(Either)
        }
    }

    let written = Vec::<Written>::deserialize(deserializer)?;
    Ok(written.into_iter().map(|Written(entry)| entry).collect())
}

/// The text that stands for the registry in manifests.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RegistryPlaceholder {
    /// The text, such as `${REGISTRY}` in `${REGISTRY}/minimal:2026.1`; `--registry` or the environment says what it stands for.
    pub(crate) placeholder: String,
}

/// A part of a release that an admin can leave out or ask for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Component {
    /// Its name, as `--with` and `--without` take it.
    pub name: String,
    /// What it brings, in a sentence.
    pub about: Option<String>,
    /// Whether it is there unless it is left out.
    #[serde(default)]
    pub default: bool,
    /// The resource of nodes that it is made for, such as `nvidia.com/gpu`: a plan says when nodes offer it and the component was not asked for.
    pub offered_for: Option<String>,
}

/// The workload that continues a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Operator {
    /// Its kind, such as `Deployment`.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// Its namespace; needed only if several of the release's objects have this kind and name.
    pub(crate) namespace: Option<String>,
}

/// What people choose notebooks from: image streams with a label, or images that are listed. It is one of both.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalogue {
    /// The label that offers an image stream of the release, as `key=value`.
    pub image_stream_label: Option<String>,
    /// Images that are offered, each with its tags.
    #[serde(default)]
    pub images: Vec<CatalogueImage>,
}

/// An image that people choose, with its tags.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogueImage {
    /// Its name: of the image stream where there are any, and the first half of what people choose (`datascience:2026.1`).
    pub name: String,
    /// What screens call it.
    pub title: String,
    /// What it is for, in a sentence.
    pub about: Option<String>,
    /// The component that it belongs to; without one it is always offered.
    pub component: Option<String>,
    /// The resource that a notebook of it needs, such as `nvidia.com/gpu`.
    pub accelerator: Option<String>,
    /// Its tags, the newest first.
    pub tags: Vec<CatalogueTag>,
}

/// A tag of an image that people choose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogueTag {
    /// Its name: lower-case letters, digits, `.` and `-`.
    pub name: String,
    /// The image reference.
    pub image: String,
    /// The packages whose versions are shown; the versions themselves are read from the image.
    #[serde(default)]
    pub shows: Vec<String>,
    /// Whether it is what people get unless they choose another; one tag of an image at most.
    #[serde(default)]
    pub recommended: bool,
    /// Whether it is retired: it stays for the notebooks that use it, and is not offered to others.
    #[serde(default)]
    pub outdated: bool,
}

/// A code path that may make references live.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fallback {
    /// The source file that holds the references.
    pub file: String,
    /// When they are used.
    pub live_when: LiveWhen,
}

/// When a fallback is used: an object is absent, or present without a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LiveWhen {
    /// Kind of the object that the code reads.
    pub kind: String,
    /// Its namespace; the release's own if not given.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The key under `data` whose absence makes the fallback live; without it, the object's absence does.
    pub missing_key: Option<String>,
}

impl std::fmt::Display for LiveWhen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        match &self.missing_key {
            Some(key) => write!(f, "{} is absent or has no key `{key}`", self.name),
            None => write!(f, "{} is absent", self.name),
        }
    }
}

/// A value of a Secret that is made once per cluster and then kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Generated {
    /// `Secret`.
    pub kind: String,
    /// The Secret's namespace; the release's own if not given.
    pub namespace: Option<String>,
    /// The Secret's name.
    pub name: String,
    /// The key under `data`.
    pub key: String,
    /// How many characters are generated.
    pub length: Option<usize>,
    /// The place inside the key's value, which is JSON then (RFC 6901).
    pub json_pointer: Option<String>,
    /// `NAME/KEY` of the generated value that this one repeats.
    pub same_as: Option<String>,
}

/// What happens to a field that is not as the last release left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The run stops and names the field.
    #[default]
    Stop,
    /// The release's value is written.
    Take,
    /// The value in the cluster stays.
    Keep,
}

/// A rule about the fields under one path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnershipRule {
    /// Kind of the objects.
    pub kind: String,
    /// Name of the object, or `*` for all of the kind.
    pub name: String,
    /// The path, such as `.data["override-config"]` or `.spec.ports[port=80]`; it covers everything below it.
    pub field: String,
    /// What happens.
    pub rule: Rule,
}

/// A placeholder and what fills it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Substitution {
    /// The text to replace, wherever it stands in a string of a manifest.
    pub placeholder: String,
    /// What it is replaced by.
    pub value: String,
}

/// A set of clusters that the release is for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Environment {
    /// Its name.
    pub name: String,
    /// Registries, or registries with the beginning of a repository, that may be pulled from, beside `registry`.
    #[serde(default)]
    pub registries: Vec<String>,
    /// Where the release's images live there, as `HOST[/PREFIX]`; `--registry` goes before it.
    pub registry: Option<String>,
}
