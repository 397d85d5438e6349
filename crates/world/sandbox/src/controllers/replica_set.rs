//! Replica sets: as many pods as wanted.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::controllers::pods;
use crate::queue::Controller;
use crate::value::{deleting, int, nonempty, pod_ready, set, text};
use crate::world::World;

const ACTOR: &str = "replicaset-controller";
/// Most pods that one round creates or deletes.
const BURST: usize = 500;

/// Looks at one replica set.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(set_object) = world.object(key).cloned() else { return };
    let wanted = usize::try_from(int(&set_object, "/spec/replicas").unwrap_or(1)).unwrap_or(0);
    let mut owned = pods::owned(world, &set_object, ("", "Pod"));
    owned.retain(|(_, pod)| pods::is_active(pod));
    if !deleting(&set_object) {
        if owned.len() < wanted {
            for _ in 0..(wanted - owned.len()).min(BURST) {
                let mut pod = pods::from_template(&set_object, &[]);
                set(&mut pod, &["metadata"], "generateName", json!(format!("{}-", key.name)));
                let Ok(pod) = pods::create(world, ACTOR, &set_object, pod) else {
                    let at = world.now().plus_millis(10_000);
                    world.wake(Controller::ReplicaSet, key, at);
                    break;
                };
                if let Ok(pod_key) = scantling_api::object::key(&pod) {
                    owned.push((pod_key, pod));
                }
            }
        } else if owned.len() > wanted {
            // What runs least goes first: without a node, not ready, then the youngest.
            owned.sort_by_key(|(_, pod)| rank(pod));
            let surplus = (owned.len() - wanted).min(BURST);
            for (pod_key, _) in owned.drain(..surplus).collect::<Vec<_>>() {
                pods::delete(world, ACTOR, &set_object, &pod_key);
            }
        }
    }
    let min_ready = int(&set_object, "/spec/minReadySeconds").unwrap_or(0);
    let mut available = 0;
    let mut soonest: Option<u64> = None;
    for (_, pod) in &owned {
        match pods::available(world, pod, min_ready) {
            Ok(()) => available += 1,
            Err(Some(left)) => soonest = Some(soonest.map_or(left, |soonest| soonest.min(left))),
            Err(None) => {}
        }
    }
    if let Some(left) = soonest {
        let at = world.now().plus_millis(left);
        world.wake(Controller::ReplicaSet, key, at);
    }
    let ready = owned.iter().filter(|(_, pod)| pod_ready(pod)).count();
    let replicas = owned.len();
    world.change_status(ACTOR, key, |object| {
        let generation = int(object, "/metadata/generation");
        set(object, &["status"], "replicas", json!(replicas));
        set(object, &["status"], "fullyLabeledReplicas", json!(replicas));
        set(object, &["status"], "readyReplicas", json!(ready));
        set(object, &["status"], "availableReplicas", json!(available));
        set(object, &["status"], "observedGeneration", generation.map_or(Value::Null, Value::from));
    });
}

/// The order in which surplus pods go.
fn rank(pod: &Value) -> (bool, bool, std::cmp::Reverse<String>, String) {
    (
        nonempty(pod, "/spec/nodeName").is_some(),
        pod_ready(pod),
        std::cmp::Reverse(text(pod, "/metadata/creationTimestamp").unwrap_or_default().to_owned()),
        crate::value::name(pod).to_owned(),
    )
}
