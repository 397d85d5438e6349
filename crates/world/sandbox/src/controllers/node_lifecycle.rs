//! Nodes that do not answer: condition, taint, eviction.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::controllers::scheduler::pods_of_node;
use crate::controllers::scheduler_fit::tolerates;
use crate::queue::Controller;
use crate::value::{condition, int, list, set, set_condition, text};
use crate::world::World;

const ACTOR: &str = "node-controller";
/// How long a node may be silent, in milliseconds (`node-monitor-grace-period`).
pub(crate) const GRACE_MILLIS: u64 = 40_000;
/// How long pods stay on a silent node by default, in seconds (admission adds that toleration).
const EVICTION_SECONDS: i64 = 300;
const TAINT: &str = "node.kubernetes.io/unreachable";

/// Looks at one node.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(node) = world.object(key).cloned() else { return };
    let up = world.nodes.get(&key.name).is_none_or(|node| node.up);
    let stamp = world.stamp_now();
    if up {
        if list(&node, "/spec/taints").iter().any(|taint| text(taint, "/key") == Some(TAINT))
            && condition(&node, "Ready") == Some("True")
        {
            retaint(world, key, false, &stamp);
        }
        return;
    }
    if condition(&node, "Ready") != Some("Unknown") {
        let now = world.now();
        world.change_status(ACTOR, key, |object| {
            let mut conditions = list(object, "/status/conditions").to_vec();
            for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
                let message = "Kubelet stopped posting node status.";
                set_condition(&mut conditions, kind, "Unknown", "NodeStatusUnknown", message, &stamp);
            }
            set(object, &["status"], "conditions", Value::Array(conditions));
        });
        world.event(
            ACTOR,
            &node,
            "Normal",
            "NodeNotReady",
            &format!("Node {} status is now: NodeNotReady", key.name),
        );
        retaint(world, key, true, &stamp);
        for (pod_key, _) in pods_of_node(world, &key.name) {
            unready(world, &pod_key, &stamp);
        }
        world.wake(
            Controller::NodeLifecycle,
            key,
            now.plus_millis(u64::try_from(EVICTION_SECONDS).unwrap_or(300) * 1000),
        );
        return;
    }
    let since = list(&node, "/spec/taints")
        .iter()
        .find(|taint| text(taint, "/key") == Some(TAINT))
        .and_then(|taint| text(taint, "/timeAdded"))
        .and_then(|time| time.parse::<jiff::Timestamp>().ok());
    let Some(since) = since else { return };
    let silent = world.timestamp().as_second() - since.as_second();
    for (pod_key, pod) in pods_of_node(world, &key.name) {
        let own =
            list(&pod, "/spec/tolerations").iter().find(|toleration| text(toleration, "/key") == Some(TAINT));
        let stays = match own.and_then(|toleration| int(toleration, "/tolerationSeconds")) {
            Some(seconds) => silent < seconds,
            None if tolerates(&pod, TAINT, "", "NoExecute") => true,
            None => silent < EVICTION_SECONDS,
        };
        if !stays {
            world.event(
                "taint-eviction-controller",
                &pod,
                "Normal",
                "TaintManagerEviction",
                &format!(
                    "Marking for deletion Pod {}/{}",
                    pod_key.namespace.as_deref().unwrap_or_default(),
                    pod_key.name
                ),
            );
            world.delete("taint-eviction-controller", &pod_key, None);
        }
    }
}

fn retaint(world: &mut World, key: &ObjectKey, add: bool, stamp: &str) {
    world.change(ACTOR, key, |object| {
        let mut taints = list(object, "/spec/taints").to_vec();
        taints.retain(|taint| text(taint, "/key") != Some(TAINT));
        if add {
            for effect in ["NoSchedule", "NoExecute"] {
                taints.push(json!({"key": TAINT, "effect": effect, "timeAdded": stamp}));
            }
        }
        let taints = if taints.is_empty() { Value::Null } else { Value::Array(taints) };
        set(object, &["spec"], "taints", taints);
    });
}

fn unready(world: &mut World, pod: &ObjectKey, stamp: &str) {
    world.change_status(ACTOR, pod, |object| {
        let mut conditions = list(object, "/status/conditions").to_vec();
        set_condition(&mut conditions, "Ready", "False", "", "", stamp);
        set(object, &["status"], "conditions", Value::Array(conditions));
    });
}
