//! The admission plugins that every server runs, as far as they matter here: service accounts, priorities, default
//! tolerations, default storage classes, and namespaces that may not be deleted.
//!
//! From `plugin/pkg/admission` of `k8s.io/kubernetes` v1.35.4. Webhooks and admission policies are stored and not called.
//! The projected volume with the token of a pod's service account is left out, since nothing here reads it.

use scantling_api::{KindFacts, ObjectKey, object};
use serde_json::{Value, json};

use super::meta::{as_mapping, metadata};
use super::{ApiServer, Status};

/// Built-in priority classes and their values.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// Seconds that a pod stays on a node that is gone.
const TOLERATION_SECONDS: i64 = 300;

/// Changes a new object as the plugins do, or refuses it.
pub(super) fn admit(
    server: &ApiServer,
    facts: &KindFacts,
    key: &ObjectKey,
    object: &mut Value,
) -> Result<(), Status> {
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "Pod") => {
            service_account(server, facts, key, object)?;
            priority(server, facts, key, object)?;
            tolerations(object);
            Ok(())
        }
        ("", "PersistentVolumeClaim") => {
            storage_class(server, object);
            protect(object, "kubernetes.io/pvc-protection");
            Ok(())
        }
        ("", "PersistentVolume") => {
            protect(object, "kubernetes.io/pv-protection");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The account's name, and its pull secrets if the pod has none of its own. A pod of an account that does not exist is
/// refused; only `default` may be missing, since a real server waits for it.
fn service_account(
    server: &ApiServer,
    facts: &KindFacts,
    key: &ObjectKey,
    pod: &mut Value,
) -> Result<(), Status> {
    const DEFAULT: &str = "default";
    if object::annotation(pod, "kubernetes.io/config.mirror").is_some() {
        return Ok(());
    }
    let spec = as_mapping(as_mapping(pod).entry("spec").or_insert(Value::Null));
    let name = match spec.get("serviceAccountName").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => DEFAULT.to_owned(),
    };
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let account = server.store.get(&ObjectKey::namespaced("", "ServiceAccount", namespace, name.as_str()));
    if account.is_none() && name != DEFAULT {
        let detail = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        return Err(Status::forbidden(facts, &key.name, &detail));
    }
    spec.insert("serviceAccountName".into(), json!(name));
    spec.insert("serviceAccount".into(), json!(name));
    let has_own = spec.get("imagePullSecrets").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let secrets = account.and_then(|account| account.get("imagePullSecrets")).and_then(Value::as_array);
    if let Some(secrets) = secrets.filter(|secrets| !has_own && !secrets.is_empty()) {
        spec.insert("imagePullSecrets".into(), json!(secrets));
    }
    Ok(())
}

fn priority(server: &ApiServer, facts: &KindFacts, key: &ObjectKey, pod: &mut Value) -> Result<(), Status> {
    let name = object::text(pod, "/spec/priorityClassName").to_owned();
    let classes = || server.store.list("scheduling.k8s.io", "PriorityClass", None).map(|(_, class)| class);
    let class = if name.is_empty() {
        classes()
            .filter(|class| class.get("globalDefault") == Some(&json!(true)))
            .min_by_key(|class| class.get("value").and_then(Value::as_i64))
    } else {
        classes().find(|class| object::name(class) == name)
    };
    let system = SYSTEM_CLASSES.iter().find(|(system, _)| *system == name).map(|(_, value)| *value);
    let value = match (class, system) {
        (Some(class), _) => class.get("value").and_then(Value::as_i64).unwrap_or(0),
        (None, Some(value)) => value,
        (None, None) if name.is_empty() => 0,
        (None, None) => {
            let detail = format!("no PriorityClass with name {name} was found");
            return Err(Status::forbidden(facts, &key.name, &detail));
        }
    };
    let preemption =
        class.map(|class| object::text(class, "/preemptionPolicy")).filter(|policy| !policy.is_empty());
    let preemption = preemption.unwrap_or("PreemptLowerPriority").to_owned();
    let class = class.map(|class| object::name(class).to_owned());
    let spec = as_mapping(as_mapping(pod).entry("spec").or_insert(Value::Null));
    if let Some(class) = class {
        spec.insert("priorityClassName".into(), json!(class));
    }
    spec.insert("priority".into(), json!(value));
    spec.entry("preemptionPolicy").or_insert_with(|| json!(preemption));
    Ok(())
}

fn tolerations(pod: &mut Value) {
    let spec = as_mapping(as_mapping(pod).entry("spec").or_insert(Value::Null));
    let list = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list.iter().any(|toleration| {
            let key = object::text(toleration, "/key");
            let effect = object::text(toleration, "/effect");
            (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            list.push(json!({
                "key": taint,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// A claim that names no class gets the default one: the newest that says it is.
fn storage_class(server: &ApiServer, claim: &mut Value) {
    if claim.pointer("/spec/storageClassName").is_some_and(|name| !name.is_null()) {
        return;
    }
    let classes = server.store.list("storage.k8s.io", "StorageClass", None).map(|(_, class)| class);
    let default = classes
        .filter(|class| {
            object::annotation(class, "storageclass.kubernetes.io/is-default-class") == Some("true")
        })
        .max_by_key(|class| object::text(class, "/metadata/creationTimestamp"));
    if let Some(name) = default.map(|class| object::name(class).to_owned()) {
        let spec = as_mapping(as_mapping(claim).entry("spec").or_insert(Value::Null));
        spec.insert("storageClassName".into(), json!(name));
    }
}

fn protect(object: &mut Value, finalizer: &str) {
    let list = metadata(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.iter().any(|name| name == finalizer)
    {
        list.push(json!(finalizer));
    }
}

/// Namespaces that the lifecycle plugin does not let go.
pub(super) fn is_protected_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty()
        && key.kind == "Namespace"
        && matches!(key.name.as_str(), "default" | "kube-system" | "kube-public")
}
