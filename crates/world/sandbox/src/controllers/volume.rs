//! Claims of volumes: every claim gets a volume at once.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::value::{deleting, list, name, namespace, nonempty, set, text, uid};
use crate::world::World;

const ACTOR: &str = "persistentvolume-controller";
/// The class of volumes when a claim names none.
pub(crate) const DEFAULT_CLASS: &str = "standard";

/// Looks at one claim.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(claim) = world.object(key).cloned() else {
        release(world, key);
        return;
    };
    if deleting(&claim) {
        unprotect_claim(world, key, &claim);
        return;
    }
    if text(&claim, "/status/phase") == Some("Bound") {
        return;
    }
    let class = nonempty(&claim, "/spec/storageClassName").unwrap_or(DEFAULT_CLASS).to_owned();
    if world.object(&ObjectKey::cluster("storage.k8s.io", "StorageClass", &class)).is_none() {
        let message = format!("storageclass.storage.k8s.io \"{class}\" not found");
        world.event(ACTOR, &claim, "Warning", "ProvisioningFailed", &message);
        world.change_status(ACTOR, key, |object| set(object, &["status"], "phase", json!("Pending")));
        return;
    }
    let volume = nonempty(&claim, "/spec/volumeName")
        .map_or_else(|| format!("pvc-{}", uid(&claim)), ToOwned::to_owned);
    let modes = claim.pointer("/spec/accessModes").cloned().unwrap_or_else(|| json!(["ReadWriteOnce"]));
    let size = claim.pointer("/spec/resources/requests/storage").cloned().unwrap_or_else(|| json!("1Gi"));
    if world.object(&ObjectKey::cluster("", "PersistentVolume", &volume)).is_none() {
        let object = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": modes,
                "storageClassName": class,
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid(&claim),
                    "name": name(&claim), "namespace": namespace(&claim),
                },
                "csi": {"driver": "sandbox.scantling.dev", "volumeHandle": volume},
            },
        });
        if world.create(ACTOR, object).is_err() {
            return;
        }
    }
    let volume_key = ObjectKey::cluster("", "PersistentVolume", &volume);
    world.change_status(ACTOR, &volume_key, |object| set(object, &["status"], "phase", json!("Bound")));
    world.change(ACTOR, key, |object| {
        set(object, &["spec"], "volumeName", json!(volume));
        set(object, &["spec"], "storageClassName", json!(class));
    });
    world.change_status(ACTOR, key, |object| {
        set(object, &["status"], "phase", json!("Bound"));
        set(object, &["status"], "accessModes", modes);
        set(object, &["status"], "capacity", json!({"storage": size}));
    });
}

/// A claim that is being deleted goes when no pod uses it any more.
fn unprotect_claim(world: &mut World, key: &ObjectKey, claim: &Value) {
    let used = world.list("", "Pod", key.namespace.as_deref()).into_iter().any(|(_, pod)| {
        !matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"))
            && list(pod, "/spec/volumes")
                .iter()
                .any(|volume| text(volume, "/persistentVolumeClaim/claimName") == Some(key.name.as_str()))
    });
    if !used && !list(claim, "/metadata/finalizers").is_empty() {
        remove_finalizer(world, "pvc-protection-controller", key, "kubernetes.io/pvc-protection");
    }
}

fn remove_finalizer(world: &mut World, actor: &str, key: &ObjectKey, finalizer: &str) {
    world.change(actor, key, |object| {
        let mut finalizers = list(object, "/metadata/finalizers").to_vec();
        finalizers.retain(|entry| entry != finalizer);
        let finalizers = if finalizers.is_empty() { Value::Null } else { Value::Array(finalizers) };
        set(object, &["metadata"], "finalizers", finalizers);
    });
}

/// The claim is gone: its volume goes too.
fn release(world: &mut World, key: &ObjectKey) {
    let volumes: Vec<ObjectKey> = world
        .list("", "PersistentVolume", None)
        .into_iter()
        .filter(|(_, volume)| {
            text(volume, "/spec/claimRef/name") == Some(key.name.as_str())
                && text(volume, "/spec/claimRef/namespace") == key.namespace.as_deref()
                && text(volume, "/spec/persistentVolumeReclaimPolicy") == Some("Delete")
        })
        .map(|(key, _)| key)
        .collect();
    for volume in volumes {
        world.delete(ACTOR, &volume, None);
        remove_finalizer(world, "pv-protection-controller", &volume, "kubernetes.io/pv-protection");
    }
}
