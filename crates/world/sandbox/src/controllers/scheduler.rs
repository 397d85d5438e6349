//! The scheduler: a node for each pod.
//!
//! Filters: readiness and cordons, node name, node selector and required affinity, taints, resources. Of the
//! nodes that fit, the one with the fewest pods is taken, then the first by name; image locality, preferred
//! affinity and preemption are not modelled.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::controllers::pods;
use crate::controllers::scheduler_fit::{self, Resources};
use crate::trace::What;
use crate::value::{deleting, list, nonempty, set, set_condition, text};
use crate::world::World;

const ACTOR: &str = "default-scheduler";

/// Looks for a node for one pod.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(pod) = world.object(key).cloned() else {
        world.unschedulable.remove(key);
        return;
    };
    let by_default =
        text(&pod, "/spec/schedulerName").is_none_or(|name| name == "default-scheduler" || name.is_empty());
    if nonempty(&pod, "/spec/nodeName").is_some() || deleting(&pod) || !by_default {
        world.unschedulable.remove(key);
        return;
    }
    if !list(&pod, "/spec/schedulingGates").is_empty() {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        condition(world, key, "False", "SchedulingGated", message);
        return;
    }
    match choose(world, &pod) {
        Ok(node) => bind(world, key, &pod, &node),
        Err(message) => {
            let before = text(&pod, "/status/conditions/0/message").map(str::to_owned);
            condition(world, key, "False", "Unschedulable", &message);
            if before.as_deref() != Some(message.as_str()) {
                world.event(ACTOR, &pod, "Warning", "FailedScheduling", &message);
                world.note(ACTOR, What::Unschedulable { message }, Some(key.clone()));
            }
            world.unschedulable.insert(key.clone());
        }
    }
}

/// The node, or the scheduler's message.
fn choose(world: &World, pod: &Value) -> Result<String, String> {
    let mut used: BTreeMap<String, (Resources, usize)> = BTreeMap::new();
    for (_, other) in world.list("", "Pod", None) {
        if let Some(node) = nonempty(other, "/spec/nodeName")
            && !matches!(text(other, "/status/phase"), Some("Succeeded" | "Failed"))
        {
            let entry = used.entry(node.to_owned()).or_default();
            entry.0.add(&Resources::of_pod(other));
            entry.1 += 1;
        }
    }
    let wanted = Resources::of_pod(pod);
    let nodes = world.list("", "Node", None);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(usize, String)> = None;
    for (node_key, node) in &nodes {
        let (taken, count) = used.get(&node_key.name).cloned().unwrap_or_default();
        let found = scheduler_fit::placement(pod, node).or_else(|| wanted.shortage(&taken, node));
        if let Some(reason) = found {
            *reasons.entry(reason).or_default() += 1;
            continue;
        }
        let candidate = (count, node_key.name.clone());
        if best.as_ref().is_none_or(|best| candidate < *best) {
            best = Some(candidate);
        }
    }
    if let Some((_, node)) = best {
        return Ok(node);
    }
    if nodes.is_empty() {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let mut parts: Vec<String> =
        reasons.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.sort();
    Err(format!(
        "0/{} nodes are available: {}. preemption: 0/{} nodes are available: {} Preemption is not helpful for scheduling.",
        nodes.len(),
        parts.join(", "),
        nodes.len(),
        nodes.len()
    ))
}

fn bind(world: &mut World, key: &ObjectKey, pod: &Value, node: &str) {
    world.unschedulable.remove(key);
    condition(world, key, "True", "", "");
    let images = crate::openshift::lookup::local_images(world, pod);
    let bound = world.change_through(ACTOR, key, "binding", |object| {
        set(object, &["spec"], "nodeName", json!(node));
        for (pointer, image) in images {
            if let Some(field) = object.pointer_mut(&pointer) {
                *field = json!(image);
            }
        }
    });
    if bound.is_none() {
        return;
    }
    let message = format!(
        "Successfully assigned {}/{} to {node}",
        key.namespace.as_deref().unwrap_or_default(),
        key.name
    );
    world.event(ACTOR, pod, "Normal", "Scheduled", &message);
    world.note(ACTOR, What::Scheduled { node: node.to_owned() }, Some(key.clone()));
}

fn condition(world: &mut World, key: &ObjectKey, status: &str, reason: &str, message: &str) {
    let stamp = world.stamp_now();
    world.change_status(ACTOR, key, |object| {
        let mut conditions = list(object, "/status/conditions").to_vec();
        set_condition(&mut conditions, "PodScheduled", status, reason, message, &stamp);
        set(object, &["status"], "conditions", Value::Array(conditions));
        if text(object, "/status/phase").is_none() {
            set(object, &["status"], "phase", json!("Pending"));
        }
    });
}

/// Pods of a node that count against it.
pub(crate) fn pods_of_node(world: &World, node: &str) -> Vec<(ObjectKey, Value)> {
    world
        .list("", "Pod", None)
        .into_iter()
        .filter(|(_, pod)| text(pod, "/spec/nodeName") == Some(node) && pods::is_active(pod))
        .map(|(key, pod)| (key, pod.clone()))
        .collect()
}
