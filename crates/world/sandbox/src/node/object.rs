//! The Node object that a kubelet keeps: labels, capacity, condition, list of images; and the collection of
//! images when the disk fills up.

use scantling_api::ObjectKey;
use scantling_image::Digest;
use serde_json::{Map, Value, json};

use crate::node::{Node, NodeConfig, kubelet};
use crate::queue::Controller;
use crate::time::Time;
use crate::trace::What;
use crate::value::set_condition;
use crate::world::{Flavour, World};

/// How often a kubelet looks whether its node's status changed, in milliseconds.
const STATUS_MILLIS: u64 = 10_000;
/// How often it looks at the image disk.
const COLLECT_MILLIS: u64 = 300_000;
/// Above this share of the disk, in percent, images are collected.
const COLLECT_ABOVE: u64 = 85;
/// Down to this share.
const COLLECT_DOWN_TO: u64 = 80;
/// Images younger than this are not collected, in milliseconds.
const COLLECT_AGE_MILLIS: u64 = 120_000;

/// The labels that a node has from itself, and the configured ones.
pub(crate) fn labels(config: &NodeConfig, flavour: Flavour) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert("kubernetes.io/hostname".into(), config.name.as_str().into());
    labels.insert("kubernetes.io/os".into(), config.platform.os().into());
    labels.insert("kubernetes.io/arch".into(), config.platform.architecture().into());
    if flavour == Flavour::OpenShift {
        labels.insert("node-role.kubernetes.io/worker".into(), "".into());
        labels.insert("node.openshift.io/os_id".into(), "rhcos".into());
    }
    for (name, value) in &config.labels {
        labels.insert(name.clone(), value.as_str().into());
    }
    labels
}

/// The Node object as the kubelet registers it.
pub(crate) fn registration(node: &Node, flavour: Flavour) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.config.name, "labels": labels(&node.config, flavour)},
        "spec": {},
    })
}

/// The key of a node's object.
pub(crate) fn key(node: &Node) -> ObjectKey {
    ObjectKey::cluster("", "Node", &node.config.name)
}

/// The images of a node differ from before: its object is brought up to date at the kubelet's next look.
pub(crate) fn images_changed(world: &mut World, node: &Node) {
    let now = world.now().as_millis();
    let key = key(node);
    world.wake(Controller::NodeStatus, &key, Time::from_millis((now / STATUS_MILLIS + 1) * STATUS_MILLIS));
}

/// Brings the Node object up to date; collects images when it is time and the disk is full.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(mut node) = world.nodes.remove(&key.name) else { return };
    if node.up {
        if world.object(key).is_none() {
            // A kubelet registers its node again only when it starts; a deleted node stays away.
            world.nodes.insert(key.name.clone(), node);
            return;
        }
        collect(world, &mut node, key);
        publish(world, &node, key);
    }
    world.nodes.insert(key.name.clone(), node);
}

/// Writes the node's status.
pub(crate) fn publish(world: &mut World, node: &Node, key: &ObjectKey) {
    let stamp = world.stamp_now();
    let flavour = world.flavour();
    let actor = kubelet::actor(node);
    let full = is_above(node, COLLECT_ABOVE.max(95));
    world.change_status(&actor, key, |object| {
        let mut status = object.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        let images: Vec<Value> = node
            .images
            .listed()
            .into_iter()
            .map(|(names, size)| json!({"names": names, "sizeBytes": size}))
            .collect();
        status.insert("images".into(), Value::Array(images));
        let amounts: Map<String, Value> = node
            .config
            .allocatable
            .iter()
            .map(|(name, amount)| (name.clone(), Value::String(amount.clone())))
            .collect();
        status.insert("capacity".into(), Value::Object(amounts.clone()));
        status.insert("allocatable".into(), Value::Object(amounts));
        status.insert(
            "addresses".into(),
            json!([
                {"type": "InternalIP", "address": node.address()},
                {"type": "Hostname", "address": node.config.name},
            ]),
        );
        let (runtime, version, image) = match flavour {
            Flavour::Kubernetes => ("containerd://1.6.20", "v1.35.4", "Debian GNU/Linux 12 (bookworm)"),
            Flavour::OpenShift => ("cri-o://1.35.0", "v1.35.4", "Red Hat Enterprise Linux CoreOS"),
        };
        status.insert(
            "nodeInfo".into(),
            json!({
                "architecture": node.config.platform.architecture(),
                "operatingSystem": node.config.platform.os(),
                "containerRuntimeVersion": runtime,
                "kubeletVersion": version,
                "osImage": image,
            }),
        );
        let mut conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let ok = [("MemoryPressure", "Memory"), ("PIDPressure", "PID")];
        for (kind, what) in ok {
            let reason = format!("KubeletHasSufficient{what}");
            set_condition(&mut conditions, kind, "False", &reason, "", &stamp);
        }
        let (pressure, reason) =
            if full { ("True", "KubeletHasDiskPressure") } else { ("False", "KubeletHasNoDiskPressure") };
        set_condition(&mut conditions, "DiskPressure", pressure, reason, "", &stamp);
        let message = "kubelet is posting ready status";
        set_condition(&mut conditions, "Ready", "True", "KubeletReady", message, &stamp);
        status.insert("conditions".into(), Value::Array(conditions));
        if let Some(object) = object.as_object_mut() {
            object.insert("status".into(), Value::Object(status));
        }
    });
}

fn is_above(node: &Node, percent: u64) -> bool {
    node.images.disk_bytes().saturating_mul(100) > node.config.disk_bytes.saturating_mul(percent)
}

/// Removes images that no container uses, the longest unused first, when the disk is fuller than the
/// threshold; looks again in five minutes as long as it is.
fn collect(world: &mut World, node: &mut Node, key: &ObjectKey) {
    if !is_above(node, COLLECT_ABOVE) {
        return;
    }
    let now = world.now();
    if !now.as_millis().is_multiple_of(COLLECT_MILLIS) {
        let next = (now.as_millis() / COLLECT_MILLIS + 1) * COLLECT_MILLIS;
        world.wake(Controller::NodeStatus, key, Time::from_millis(next));
        return;
    }
    let mut unused: Vec<(Time, Digest)> = node
        .images
        .iter()
        .filter(|image| now.millis_since(image.last_used) >= COLLECT_AGE_MILLIS && !node.uses(&image.config))
        .map(|image| (image.last_used, image.config.clone()))
        .collect();
    unused.sort();
    let actor = kubelet::actor(node);
    for (_, config) in unused {
        if !is_above(node, COLLECT_DOWN_TO) {
            break;
        }
        if node.images.remove(&config).is_some() {
            let what = What::ImageRemoved { name: config.to_string(), reason: "disk" };
            world.note(&actor, what, Some(key.clone()));
        }
    }
    if is_above(node, COLLECT_ABOVE) {
        world.wake(Controller::NodeStatus, key, now.plus_millis(COLLECT_MILLIS));
    }
}
