//! What `release.yaml` says, as written: the types that it is decoded into. Unknown fields are refused.

use serde::{Deserialize, Serialize};

use crate::Version;

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
    /// The namespace of objects that name none.
    pub(crate) namespace: Option<String>,
    /// Files and folders, relative to this file, whose documents are applied.
    pub(crate) manifests: Vec<String>,
    /// Files and folders of code and settings that are not applied but searched for references.
    #[serde(default)]
    pub(crate) sources: Vec<String>,
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
            namespace: None,
            manifests: vec![".".to_owned()],
            sources: Vec::new(),
            catalogue: None,
            fallbacks: Vec::new(),
            generated: Vec::new(),
            ownership: Vec::new(),
            substitutions: Vec::new(),
            environments: Vec::new(),
        }
    }
}

/// Which image streams people choose notebooks from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalogue {
    /// The label that offers an image stream, as `key=value`.
    pub image_stream_label: String,
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
    /// The path, such as `.data["override-config"]`; it covers everything below it.
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
    /// Registries, or registries with the beginning of a repository, that may be pulled from.
    pub registries: Vec<String>,
}
