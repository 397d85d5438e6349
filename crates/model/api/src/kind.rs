//! Names of kinds and identities of objects.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Group, version and kind, such as `apps`, `v1`, `Deployment`. The core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version within the group, such as `v1`.
    pub version: String,
    /// Kind in `CamelCase`, singular.
    pub kind: String,
}

impl GroupVersionKind {
    /// From the three names.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// From the two fields that every object carries: `apiVersion` (`v1` or `apps/v1`) and `kind`.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// What stands in an object's `apiVersion`: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

/// The identity of an object in a cluster. The version is not part of it: all versions of a group show the same object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind in `CamelCase`.
    pub kind: String,
    /// Namespace; none for objects of the cluster.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn namespaced(
        group: impl Into<String>,
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self { group: group.into(), kind: kind.into(), namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of an object of the cluster.
    pub fn cluster(group: impl Into<String>, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into(), namespace: None, name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    /// `ConfigMap ns/name`; the alternate form (`{:#}`) adds the group: `Deployment.apps ns/name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if f.alternate() && !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Why a value is not an object of the API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The value is no mapping.
    #[error("an object of the API is a mapping, this is {0}")]
    NotAMapping(&'static str),
    /// A field that every object has is missing or empty.
    #[error("the field `{0}` is missing or empty")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("the field `{field}` must be a string, it is {found}")]
    NotAString {
        /// Path of the field.
        field: &'static str,
        /// What it is instead.
        found: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_split_and_join() {
        for (api_version, group, version) in [
            ("v1", "", "v1"),
            ("apps/v1", "apps", "v1"),
            ("route.openshift.io/v1", "route.openshift.io", "v1"),
        ] {
            let gvk = GroupVersionKind::from_api_version(api_version, "X");
            assert_eq!((gvk.group.as_str(), gvk.version.as_str()), (group, version));
            assert_eq!(gvk.api_version(), api_version);
        }
    }

    #[test]
    fn keys_are_written_as_people_say_them() {
        let deployment = ObjectKey::namespaced("apps", "Deployment", "ns", "web");
        assert_eq!(deployment.to_string(), "Deployment ns/web");
        assert_eq!(format!("{deployment:#}"), "Deployment.apps ns/web");
        let node = ObjectKey::cluster("", "Node", "a");
        assert_eq!(format!("{node} {node:#}"), "Node a Node a");
    }
}
