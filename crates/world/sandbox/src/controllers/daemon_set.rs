//! Daemon sets: one pod on every node that fits.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::controllers::{pods, scheduler_fit};
use crate::value::{deleting, int, list, nonempty, object_mut, pod_ready, set, text};
use crate::world::World;

const ACTOR: &str = "daemonset-controller";
const HASH_LABEL: &str = "controller-revision-hash";

/// Looks at one daemon set.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(set_object) = world.object(key).cloned() else { return };
    let template = set_object.pointer("/spec/template").cloned().unwrap_or_default();
    let hash = pods::template_hash(&template);
    let owned = pods::owned(world, &set_object, ("", "Pod"));
    let nodes: Vec<(String, bool)> = world
        .list("", "Node", None)
        .into_iter()
        .map(|(node, object)| (node.name, should_run(&set_object, object)))
        .collect();
    let mut by_node: BTreeMap<String, Vec<&(ObjectKey, Value)>> = BTreeMap::new();
    for entry in &owned {
        if let Some(node) = target(&entry.1) {
            by_node.entry(node).or_default().push(entry);
        }
    }
    if !deleting(&set_object) {
        act(world, key, &set_object, &nodes, &by_node, &hash);
    }
    status(world, key, &set_object, &nodes, &hash);
}

/// The node that a daemon pod is for: its own, or the one that its affinity names.
fn target(pod: &Value) -> Option<String> {
    if let Some(node) = nonempty(pod, "/spec/nodeName") {
        return Some(node.to_owned());
    }
    pod.pointer("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0")
        .and_then(Value::as_str)
        .map(ToOwned::to_owned)
}

fn should_run(set_object: &Value, node: &Value) -> bool {
    let mut pod = pods::from_template(set_object, &[]);
    tolerate(&mut pod);
    scheduler_fit::placement(&pod, node).is_none()
}

/// What every daemon pod tolerates.
fn tolerate(pod: &mut Value) {
    let mut tolerations = list(pod, "/spec/tolerations").to_vec();
    for (key, effect) in [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ] {
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
    }
    set(pod, &["spec"], "tolerations", Value::Array(tolerations));
}

fn act(
    world: &mut World,
    key: &ObjectKey,
    set_object: &Value,
    nodes: &[(String, bool)],
    by_node: &BTreeMap<String, Vec<&(ObjectKey, Value)>>,
    hash: &str,
) {
    let rolling = text(set_object, "/spec/updateStrategy/type") != Some("OnDelete");
    let wanted = i64::try_from(nodes.iter().filter(|(_, run)| *run).count()).unwrap_or(i64::MAX);
    let limit = pods::int_or_percent(
        set_object.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable"),
        "1",
        wanted,
        true,
    )
    .max(1);
    let mut unavailable = 0;
    let mut outdated = Vec::new();
    for (node, run) in nodes {
        let entries = by_node.get(node).map_or(&[][..], Vec::as_slice);
        let live: Vec<_> = entries.iter().filter(|(_, pod)| pods::is_active(pod)).collect();
        for (pod_key, pod) in entries.iter().map(|entry| (&entry.0, &entry.1)) {
            if text(pod, "/status/phase") == Some("Failed") && !deleting(pod) {
                pods::delete(world, ACTOR, set_object, pod_key);
            }
        }
        match (run, live.as_slice()) {
            (true, []) if entries.iter().any(|(_, pod)| deleting(pod)) => unavailable += 1,
            (true, []) => {
                unavailable += 1;
                create(world, key, set_object, node, hash);
            }
            (true, [(pod_key, pod), surplus @ ..]) => {
                if !pod_ready(pod) {
                    unavailable += 1;
                }
                if pod.pointer(&format!("/metadata/labels/{HASH_LABEL}")).and_then(Value::as_str)
                    != Some(hash)
                {
                    outdated.push((pod_ready(pod), pod_key.clone()));
                }
                for (pod_key, _) in surplus {
                    pods::delete(world, ACTOR, set_object, pod_key);
                }
            }
            (false, live) => {
                for (pod_key, _) in live {
                    pods::delete(world, ACTOR, set_object, pod_key);
                }
            }
        }
    }
    // Pods on nodes that are gone.
    for (node, entries) in by_node {
        if !nodes.iter().any(|(name, _)| name == node) {
            for (pod_key, pod) in entries.iter().map(|entry| (&entry.0, &entry.1)) {
                if !deleting(pod) {
                    pods::delete(world, ACTOR, set_object, pod_key);
                }
            }
        }
    }
    if rolling {
        // What is not ready anyway goes without counting.
        for (ready, pod_key) in outdated {
            if !ready {
                pods::delete(world, ACTOR, set_object, &pod_key);
            } else if unavailable < limit {
                unavailable += 1;
                pods::delete(world, ACTOR, set_object, &pod_key);
            }
        }
    }
}

fn create(world: &mut World, key: &ObjectKey, set_object: &Value, node: &str, hash: &str) {
    let mut pod = pods::from_template(set_object, &[(HASH_LABEL, hash)]);
    set(&mut pod, &["metadata"], "generateName", json!(format!("{}-", key.name)));
    tolerate(&mut pod);
    let required = object_mut(
        &mut pod,
        &["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
    );
    required.insert(
        "nodeSelectorTerms".into(),
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]),
    );
    let _ = pods::create(world, ACTOR, set_object, pod);
}

fn status(world: &mut World, key: &ObjectKey, set_object: &Value, nodes: &[(String, bool)], hash: &str) {
    let owned = pods::owned(world, set_object, ("", "Pod"));
    let desired = nodes.iter().filter(|(_, run)| *run).count();
    let should = |pod: &Value| {
        target(pod).is_some_and(|target| nodes.iter().any(|(name, run)| *run && *name == target))
    };
    let live: Vec<&Value> =
        owned.iter().map(|(_, pod)| pod).filter(|pod| pods::is_active(pod) && should(pod)).collect();
    let current = live.len();
    let ready = live.iter().filter(|pod| pod_ready(pod)).count();
    let updated = live
        .iter()
        .filter(|pod| {
            pod.pointer("/metadata/labels").and_then(|labels| labels.get(HASH_LABEL)).and_then(Value::as_str)
                == Some(hash)
        })
        .count();
    let misscheduled = owned.iter().filter(|(_, pod)| pods::is_active(pod) && !should(pod)).count();
    world.change_status(ACTOR, key, |object| {
        let generation = int(object, "/metadata/generation");
        for (field, value) in [
            ("currentNumberScheduled", json!(current)),
            ("desiredNumberScheduled", json!(desired)),
            ("numberMisscheduled", json!(misscheduled)),
            ("numberReady", json!(ready)),
            ("numberAvailable", json!(ready)),
            ("updatedNumberScheduled", json!(updated)),
            ("observedGeneration", generation.map_or(Value::Null, Value::from)),
        ] {
            set(object, &["status"], field, value);
        }
        let unavailable = desired.saturating_sub(ready);
        let unavailable = if unavailable == 0 { Value::Null } else { json!(unavailable) };
        set(object, &["status"], "numberUnavailable", unavailable);
    });
}
