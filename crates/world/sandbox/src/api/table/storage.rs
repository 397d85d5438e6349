//! Rows of volumes, claims, classes and quotas.

use scantling_api::object;
use serde_json::{Value, json};

use super::{AGE, Cells, Column, NAME, items, plain_text, since, text_or};

pub(super) fn columns(group: &str, kind: &str) -> Option<(&'static [Column], Cells)> {
    let found: (&'static [Column], Cells) = match (group, kind) {
        ("", "PersistentVolumeClaim") => (
            &[
                NAME,
                Column("Status", "string", 0),
                Column("Volume", "string", 0),
                Column("Capacity", "string", 0),
                Column("Access Modes", "string", 0),
                Column("StorageClass", "string", 0),
                Column("VolumeAttributesClass", "string", 0),
                AGE,
                Column("VolumeMode", "string", 1),
            ],
            claim,
        ),
        ("", "PersistentVolume") => (
            &[
                NAME,
                Column("Capacity", "string", 0),
                Column("Access Modes", "string", 0),
                Column("Reclaim Policy", "string", 0),
                Column("Status", "string", 0),
                Column("Claim", "string", 0),
                Column("StorageClass", "string", 0),
                Column("VolumeAttributesClass", "string", 0),
                Column("Reason", "string", 0),
                AGE,
                Column("VolumeMode", "string", 1),
            ],
            volume,
        ),
        ("storage.k8s.io", "StorageClass") => (
            &[
                NAME,
                Column("Provisioner", "string", 0),
                Column("ReclaimPolicy", "string", 0),
                Column("VolumeBindingMode", "string", 0),
                Column("AllowVolumeExpansion", "string", 0),
                AGE,
            ],
            class,
        ),
        ("", "ResourceQuota") => {
            (&[NAME, Column("Request", "string", 0), Column("Limit", "string", 0), AGE], quota)
        }
        _ => return None,
    };
    Some(found)
}

fn phase(object: &Value) -> &str {
    if object::text(object, "/metadata/deletionTimestamp").is_empty() {
        object::text(object, "/status/phase")
    } else {
        "Terminating"
    }
}

fn modes(object: &Value, pointer: &str) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| items(object, pointer).iter().any(|item| item == mode);
    short.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

fn quantity(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).map_or_else(|| "0".to_owned(), plain_text)
}

fn claim(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let bound = !object::text(object, "/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (quantity(object, "/status/capacity/storage"), modes(object, "/status/accessModes"))
    } else {
        (String::new(), String::new())
    };
    vec![
        json!(object::name(object)),
        json!(phase(object)),
        json!(object::text(object, "/spec/volumeName")),
        json!(capacity),
        json!(modes),
        json!(object::text(object, "/spec/storageClassName")),
        json!(text_or(object, "/spec/volumeAttributesClassName", "<unset>")),
        since(object, now),
        json!(text_or(object, "/spec/volumeMode", "<unset>")),
    ]
}

fn volume(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let claim = match object.pointer("/spec/claimRef") {
        Some(claim) => format!("{}/{}", object::text(claim, "/namespace"), object::text(claim, "/name")),
        None => String::new(),
    };
    vec![
        json!(object::name(object)),
        json!(quantity(object, "/spec/capacity/storage")),
        json!(modes(object, "/spec/accessModes")),
        json!(object::text(object, "/spec/persistentVolumeReclaimPolicy")),
        json!(phase(object)),
        json!(claim),
        json!(object::text(object, "/spec/storageClassName")),
        json!(text_or(object, "/spec/volumeAttributesClassName", "<unset>")),
        json!(object::text(object, "/status/reason")),
        since(object, now),
        json!(text_or(object, "/spec/volumeMode", "<unset>")),
    ]
}

fn class(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let default = object::annotation(object, "storageclass.kubernetes.io/is-default-class") == Some("true");
    let name = object::name(object);
    vec![
        json!(if default { format!("{name} (default)") } else { name.to_owned() }),
        json!(object::text(object, "/provisioner")),
        json!(text_or(object, "/reclaimPolicy", "Delete")),
        json!(text_or(object, "/volumeBindingMode", "Immediate")),
        json!(object.get("allowVolumeExpansion") == Some(&json!(true))),
        since(object, now),
    ]
}

fn quota(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let hard = object::mapping(object, "/status/hard").into_iter().flatten();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in hard {
        let used = object.pointer("/status/used").and_then(|used| used.get(resource));
        let text =
            format!("{resource}: {}/{}", used.map_or_else(|| "0".to_owned(), plain_text), plain_text(hard));
        if resource.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![
        json!(object::name(object)),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        since(object, now),
    ]
}
