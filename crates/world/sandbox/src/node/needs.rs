//! What a pod needs from the API before it can start: config maps, secrets and claims.

use scantling_api::ObjectKey;
use serde_json::Value;

use crate::value::{flag, list, namespace, nonempty, text};
use crate::world::World;

/// The message about the first volume whose source is missing.
pub(crate) fn missing_volume(world: &World, pod: &Value) -> Option<String> {
    let namespace = namespace(pod);
    let exists =
        |kind: &str, name: &str| world.object(&ObjectKey::namespaced("", kind, namespace, name)).is_some();
    for volume in list(pod, "/spec/volumes") {
        let volume_name = text(volume, "/name").unwrap_or_default();
        let mut sources: Vec<(&str, &Value)> = Vec::new();
        if let Some(source) = volume.get("configMap") {
            sources.push(("ConfigMap", source));
        }
        if let Some(source) = volume.get("secret") {
            sources.push(("Secret", source));
        }
        for projected in list(volume, "/projected/sources") {
            if let Some(source) = projected.get("configMap") {
                sources.push(("ConfigMap", source));
            }
            if let Some(source) = projected.get("secret") {
                sources.push(("Secret", source));
            }
        }
        for (kind, source) in sources {
            let Some(name) = nonempty(source, "/name").or_else(|| nonempty(source, "/secretName")) else {
                continue;
            };
            if !flag(source, "/optional") && !exists(kind, name) {
                let resource = kind.to_lowercase();
                return Some(format!(
                    "MountVolume.SetUp failed for volume \"{volume_name}\" : {resource} \"{name}\" not found"
                ));
            }
        }
        if let Some(claim) = nonempty(volume, "/persistentVolumeClaim/claimName") {
            let bound = world
                .object(&ObjectKey::namespaced("", "PersistentVolumeClaim", namespace, claim))
                .is_some_and(|claim| text(claim, "/status/phase") == Some("Bound"));
            if !bound {
                return Some(format!(
                    "Unable to attach or mount volumes: unmounted volumes=[{volume_name}]: persistentvolumeclaim \"{claim}\" is not bound"
                ));
            }
        }
    }
    None
}

/// The message about the first config map or secret, or key of one, that the container's environment
/// refers to and that is missing.
pub(crate) fn missing_environment(world: &World, pod: &Value, container: &Value) -> Option<String> {
    let namespace = namespace(pod);
    let find = |kind: &str, name: &str| world.object(&ObjectKey::namespaced("", kind, namespace, name));
    let kinds = [("ConfigMap", "configmap"), ("Secret", "secret")];
    for source in list(container, "/envFrom") {
        for ((kind, word), field) in kinds.iter().zip(["/configMapRef", "/secretRef"]) {
            let Some(reference) = source.pointer(field) else { continue };
            let Some(name) = nonempty(reference, "/name") else { continue };
            if !flag(reference, "/optional") && find(kind, name).is_none() {
                return Some(format!("{word} \"{name}\" not found"));
            }
        }
    }
    for variable in list(container, "/env") {
        for ((kind, word), field) in
            kinds.iter().zip(["/valueFrom/configMapKeyRef", "/valueFrom/secretKeyRef"])
        {
            let Some(reference) = variable.pointer(field) else { continue };
            let Some(name) = nonempty(reference, "/name") else { continue };
            if flag(reference, "/optional") {
                continue;
            }
            let Some(object) = find(kind, name) else { return Some(format!("{word} \"{name}\" not found")) };
            let key = text(reference, "/key").unwrap_or_default();
            let has = ["data", "binaryData", "stringData"]
                .iter()
                .any(|field| object.get(field).and_then(|data| data.get(key)).is_some());
            if !has {
                let kind = if *kind == "Secret" { "Secret" } else { "ConfigMap" };
                return Some(format!("couldn't find key {key} in {kind} {namespace}/{name}"));
            }
        }
    }
    None
}
