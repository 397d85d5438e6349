//! Where a cluster asks for images, read from the cluster: its mirror rules and its pull secrets.

use scantling_api::GroupVersionKind;
use scantling_cluster::{Cluster, ClusterError, Served};
use scantling_endpoint::{Keyring, KeyringError, Mirrors, MirrorsError};
use serde_json::Value;

/// The kinds that hold OpenShift's rules about registries: group, version, kind. Whoever reads the rules must be allowed to list them.
pub const REGISTRY_RULES: [(&str, &str, &str); 4] = [
    ("config.openshift.io", "v1", "ImageDigestMirrorSet"),
    ("config.openshift.io", "v1", "ImageTagMirrorSet"),
    ("config.openshift.io", "v1", "Image"),
    ("operator.openshift.io", "v1alpha1", "ImageContentSourcePolicy"),
];
/// OpenShift's pull secret of all nodes.
const NODE_SECRET: (&str, &str) = ("openshift-config", "pull-secret");

/// Why a cluster's rules cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The cluster cannot be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A mirror rule is not one.
    #[error(transparent)]
    Mirrors(#[from] MirrorsError),
    /// A pull secret is not one.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

/// Adds a cluster's mirror rules to `mirrors`, and its pull secrets to `keyring`: those of the nodes, and those that
/// the default service account of `namespace` brings. On a cluster without OpenShift's kinds the nodes' own rules are
/// in files of the nodes, which only the nodes know.
///
/// Gives what nobody allowed to read, in words: what nodes would do differently because of it is not known.
pub async fn read_registry_rules(
    cluster: &Cluster,
    namespace: Option<&str>,
    mirrors: &mut Mirrors,
    keyring: &mut Keyring,
) -> Result<Vec<String>, RulesError> {
    let mut unread = Vec::new();
    let served = cluster.served().await?;
    for (group, version, kind) in REGISTRY_RULES {
        let gvk = GroupVersionKind::new(group, version, kind);
        if let Some(resource) = served.by_gvk(&gvk) {
            let rules = allowed(cluster.list(resource, None, None).await, &mut unread, || {
                format!("{} ({group})", resource.plural)
            })?;
            for rule in rules.unwrap_or_default() {
                mirrors.add_object(&rule)?;
            }
        }
    }
    let Some(secrets) = served.by_kind("", "Secret") else { return Ok(unread) };
    if served.by_kind("config.openshift.io", "Image").is_some() {
        let (at, name) = NODE_SECRET;
        let secret = allowed(cluster.get(secrets, Some(at), name).await, &mut unread, || {
            format!("secret {name} of {at}")
        })?;
        secret.flatten().map(|secret| keyring.add_secret(&secret)).transpose()?;
    }
    for secret in pull_secrets(cluster, &served, namespace, &mut unread).await? {
        keyring.add_secret(&secret)?;
    }
    Ok(unread)
}

/// What was read; none, and a note, if that is forbidden.
fn allowed<T>(
    read: Result<T, ClusterError>,
    unread: &mut Vec<String>,
    what: impl FnOnce() -> String,
) -> Result<Option<T>, ClusterError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ClusterError::Forbidden { .. }) => {
            unread.push(format!("{}: reading it is not allowed", what()));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The pull secrets that the default service account of a namespace brings, as they are now; what may not be read is noted.
pub(crate) async fn pull_secrets(
    cluster: &Cluster,
    served: &Served,
    namespace: Option<&str>,
    unread: &mut Vec<String>,
) -> Result<Vec<Value>, ClusterError> {
    let kinds = (served.by_kind("", "Secret"), served.by_kind("", "ServiceAccount"));
    let ((Some(secrets), Some(accounts)), Some(namespace)) = (kinds, namespace) else {
        return Ok(Vec::new());
    };
    let account = allowed(cluster.get(accounts, Some(namespace), "default").await, unread, || {
        format!("service account default of {namespace}")
    })?;
    let Some(account) = account.flatten() else { return Ok(Vec::new()) };
    let names = account.get("imagePullSecrets").and_then(Value::as_array);
    let mut found = Vec::new();
    for name in names.into_iter().flatten().filter_map(|n| n.get("name")?.as_str()) {
        let secret = allowed(cluster.get(secrets, Some(namespace), name).await, unread, || {
            format!("secret {name} of {namespace}")
        })?;
        found.extend(secret.flatten());
    }
    Ok(found)
}
