//! What every namespace has: the service account `default` and the cluster's certificate, on OpenShift also
//! the accounts `builder` and `deployer`.

use scantling_api::ObjectKey;
use serde_json::json;

use crate::value::deleting;
use crate::world::{Flavour, World};

const ACTOR: &str = "service-account-controller";

/// Looks at one namespace.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    if world.object(key).is_none_or(deleting) {
        return;
    }
    let accounts: &[&str] = match world.flavour() {
        Flavour::Kubernetes => &["default"],
        Flavour::OpenShift => &["default", "builder", "deployer"],
    };
    for account in accounts {
        let account_key = ObjectKey::namespaced("", "ServiceAccount", &key.name, *account);
        if world.object(&account_key).is_none() {
            let object = json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": account, "namespace": key.name},
            });
            let _ = world.create(ACTOR, object);
        }
    }
    let map_key = ObjectKey::namespaced("", "ConfigMap", &key.name, "kube-root-ca.crt");
    if world.object(&map_key).is_none() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kube-root-ca.crt", "namespace": key.name},
            "data": {"ca.crt": "-----BEGIN CERTIFICATE-----\nc2FuZGJveA==\n-----END CERTIFICATE-----\n"},
        });
        let _ = world.create("root-ca-cert-publisher", object);
    }
}
