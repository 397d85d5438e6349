//! Which credentials a pod brings to a pull, and the endpoints that follow from them and the mirrors.

use std::collections::BTreeSet;

use scantling_api::ObjectKey;
use scantling_endpoint::{Credential, Keyring, attempts};
use scantling_image::{Digest, Reference};
use serde_json::Value;

use crate::distribution::Login;
use crate::node::pull::Source;
use crate::value::{list, namespace, nonempty, text};
use crate::world::World;

/// The origin of credentials that the node has for every pod.
const NODE_ORIGIN: &str = "node";

/// What a node uses to pull for one pod.
#[derive(Debug, Clone)]
pub(crate) struct PodKeyring(Keyring);

impl PodKeyring {
    /// Hashes of the pod's own credentials for an image.
    pub(crate) fn hashes(&self, reference: &Reference) -> BTreeSet<Digest> {
        self.0
            .candidates(&reference.name())
            .into_iter()
            .filter_map(|id| self.0.credential(id))
            .filter(|credential| credential.origin != NODE_ORIGIN)
            .map(|credential| hash(&login(credential)))
            .collect()
    }
}

/// What identifies a credential without giving it away.
pub(crate) fn hash(login: &Login) -> Digest {
    Digest::of(format!("{}\u{0}{}", login.user, login.password).as_bytes())
}

fn login(credential: &Credential) -> Login {
    Login { user: credential.username.expose().to_owned(), password: credential.password.expose().to_owned() }
}

/// The keyring of a pod: its pull secrets, its service account's where it names none, the node's own.
pub(crate) fn of_pod(world: &World, pod: &Value) -> PodKeyring {
    let mut names: Vec<String> = secret_names(pod, "/spec/imagePullSecrets");
    if names.is_empty() {
        let account = nonempty(pod, "/spec/serviceAccountName").unwrap_or("default");
        let key = ObjectKey::namespaced("", "ServiceAccount", namespace(pod), account);
        if let Some(account) = world.object(&key) {
            names = secret_names(account, "/imagePullSecrets");
        }
    }
    of_secrets(world, namespace(pod), &names)
}

/// The node's keyring, without any pod's credentials.
pub(crate) fn of_node(world: &World) -> PodKeyring {
    of_secrets(world, "", &[])
}

/// A keyring of secrets of a namespace and the cluster's own. A secret that cannot be read is left out, as
/// the kubelet does.
pub(crate) fn of_secrets(world: &World, namespace: &str, names: &[String]) -> PodKeyring {
    let mut keyring = Keyring::new();
    for name in names {
        if let Some(secret) = world.object(&ObjectKey::namespaced("", "Secret", namespace, name)) {
            // A secret without credentials gives none.
            let _ = keyring.add_secret(secret);
        }
    }
    if let Some(config) = &world.config.node_pull_secret {
        let _ = keyring.add_node_config(NODE_ORIGIN, config.as_bytes());
    }
    PodKeyring(keyring)
}

fn secret_names(object: &Value, pointer: &str) -> Vec<String> {
    list(object, pointer).iter().filter_map(|entry| text(entry, "/name")).map(ToOwned::to_owned).collect()
}

/// The endpoints for a reference in order, each with its login.
pub(crate) fn sources(world: &World, reference: &Reference, keyring: &PodKeyring) -> Vec<Source> {
    attempts(reference, world.mirrors(), &keyring.0)
        .into_iter()
        .map(|attempt| {
            let credential = attempt.credential.and_then(|id| keyring.0.credential(id));
            let of_pod = credential.is_some_and(|credential| credential.origin != NODE_ORIGIN);
            Source { login: credential.map(login), of_pod, attempt }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_tell_credentials_apart() {
        let of = |user: &str, password: &str| {
            hash(&Login { user: user.to_owned(), password: password.to_owned() })
        };
        assert_eq!(of("a", "b"), of("a", "b"));
        assert_ne!(of("ab", ""), of("a", "b"));
    }
}
