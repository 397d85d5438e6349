//! Stateful sets: pods with names and claims of their own, in order.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::controllers::pods;
use crate::queue::Controller;
use crate::value::{deleting, int, list, name, namespace, object_mut, pod_ready, set, text};
use crate::world::World;

const ACTOR: &str = "statefulset-controller";
const REVISION_LABEL: &str = "controller-revision-hash";
/// Most pods of one set; more than any real one has.
const MAX_PODS: i64 = 10_000;

/// Looks at one stateful set.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(set_object) = world.object(key).cloned() else { return };
    let template = set_object.pointer("/spec/template").cloned().unwrap_or_default();
    let update = format!("{}-{}", key.name, pods::template_hash(&template));
    let current = text(&set_object, "/status/currentRevision").unwrap_or(&update).to_owned();
    let wanted = int(&set_object, "/spec/replicas").unwrap_or(1).clamp(0, MAX_PODS);
    let start = int(&set_object, "/spec/ordinals/start").unwrap_or(0);
    let owned: BTreeMap<String, (ObjectKey, Value)> = pods::owned(world, &set_object, ("", "Pod"))
        .into_iter()
        .map(|(pod_key, pod)| (pod_key.name.clone(), (pod_key, pod)))
        .collect();
    if !deleting(&set_object) {
        act(world, key, &set_object, &owned, (start, wanted), (&current, &update));
    }
    status(world, key, &set_object, wanted, (&current, &update));
}

fn act(
    world: &mut World,
    key: &ObjectKey,
    set_object: &Value,
    owned: &BTreeMap<String, (ObjectKey, Value)>,
    (start, wanted): (i64, i64),
    (current, update): (&str, &str),
) {
    let parallel = text(set_object, "/spec/podManagementPolicy") == Some("Parallel");
    let partition = int(set_object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    let min_ready = int(set_object, "/spec/minReadySeconds").unwrap_or(0);
    let mut healthy = true;
    for ordinal in start..start.saturating_add(wanted) {
        let pod_name = format!("{}-{ordinal}", key.name);
        match owned.get(&pod_name) {
            None => {
                // A pod below the partition is made from the template that the others have, if it is known.
                let revision = if ordinal < partition { current } else { update };
                create(world, key, set_object, ordinal, &pod_name, revision);
                if !parallel {
                    return;
                }
                healthy = false;
            }
            Some((pod_key, pod)) if matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed")) => {
                if !deleting(pod) {
                    pods::delete(world, ACTOR, set_object, pod_key);
                }
                if !parallel {
                    return;
                }
                healthy = false;
            }
            Some((_, pod)) => match pods::available(world, pod, min_ready) {
                Ok(()) if !deleting(pod) => {}
                other => {
                    if let Err(Some(left)) = other {
                        let at = world.now().plus_millis(left);
                        world.wake(Controller::StatefulSet, key, at);
                    }
                    if !parallel {
                        return;
                    }
                    healthy = false;
                }
            },
        }
    }
    // Surplus pods, the highest number first, one after the other.
    let mut surplus: Vec<(i64, &(ObjectKey, Value))> = owned
        .values()
        .filter_map(|entry| {
            let ordinal = entry.0.name.rsplit('-').next()?.parse::<i64>().ok()?;
            (ordinal < start || ordinal >= start + wanted).then_some((ordinal, entry))
        })
        .collect();
    surplus.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
    for (_, (pod_key, pod)) in surplus {
        if !deleting(pod) {
            pods::delete(world, ACTOR, set_object, pod_key);
        }
        if !parallel {
            return;
        }
    }
    if text(set_object, "/spec/updateStrategy/type") == Some("OnDelete") || !healthy {
        return;
    }
    for ordinal in (start.saturating_add(partition).max(start)..start.saturating_add(wanted)).rev() {
        let Some((pod_key, pod)) = owned.get(&format!("{}-{ordinal}", key.name)) else { continue };
        if revision_of(pod) == update {
            if !pod_ready(pod) {
                return;
            }
            continue;
        }
        if !deleting(pod) {
            pods::delete(world, ACTOR, set_object, pod_key);
        }
        return;
    }
}

fn revision_of(pod: &Value) -> &str {
    pod.pointer("/metadata/labels")
        .and_then(|labels| labels.get(REVISION_LABEL))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn create(
    world: &mut World,
    key: &ObjectKey,
    set_object: &Value,
    ordinal: i64,
    pod_name: &str,
    revision: &str,
) {
    let index = ordinal.to_string();
    let mut pod = pods::from_template(
        set_object,
        &[
            (REVISION_LABEL, revision),
            ("statefulset.kubernetes.io/pod-name", pod_name),
            ("apps.kubernetes.io/pod-index", &index),
        ],
    );
    set(&mut pod, &["metadata"], "name", json!(pod_name));
    set(&mut pod, &["spec"], "hostname", json!(pod_name));
    if let Some(service) = text(set_object, "/spec/serviceName").filter(|name| !name.is_empty()) {
        set(&mut pod, &["spec"], "subdomain", json!(service));
    }
    let mut volumes = list(&pod, "/spec/volumes").to_vec();
    for claim in list(set_object, "/spec/volumeClaimTemplates") {
        let claim_name = format!("{}-{pod_name}", name(claim));
        let claim_key =
            ObjectKey::namespaced("", "PersistentVolumeClaim", namespace(set_object), &claim_name);
        if world.object(&claim_key).is_none() {
            let mut object = claim.clone();
            set(&mut object, &[], "apiVersion", json!("v1"));
            set(&mut object, &[], "kind", json!("PersistentVolumeClaim"));
            set(&mut object, &["metadata"], "name", json!(claim_name));
            set(&mut object, &["metadata"], "namespace", json!(namespace(set_object)));
            object_mut(&mut object, &[]).remove("status");
            if world.create(ACTOR, object).is_ok() {
                let message =
                    format!("create Claim {claim_name} Pod {pod_name} in StatefulSet {} success", key.name);
                world.event(ACTOR, set_object, "Normal", "SuccessfulCreate", &message);
            }
        }
        volumes.retain(|volume| text(volume, "/name") != Some(name(claim)));
        volumes.push(json!({"name": name(claim), "persistentVolumeClaim": {"claimName": claim_name}}));
    }
    if !volumes.is_empty() {
        set(&mut pod, &["spec"], "volumes", Value::Array(volumes));
    }
    if let Err(status) = world.create(ACTOR, pod) {
        let message =
            format!("create Pod {pod_name} in StatefulSet {} failed error: {}", key.name, status.message);
        world.event(ACTOR, set_object, "Warning", "FailedCreate", &message);
        let at = world.now().plus_millis(10_000);
        world.wake(Controller::StatefulSet, key, at);
    } else {
        let message = format!("create Pod {pod_name} in StatefulSet {} successful", key.name);
        world.event(ACTOR, set_object, "Normal", "SuccessfulCreate", &message);
    }
}

fn status(
    world: &mut World,
    key: &ObjectKey,
    set_object: &Value,
    wanted: i64,
    (current, update): (&str, &str),
) {
    let owned = pods::owned(world, set_object, ("", "Pod"));
    let active: Vec<&Value> = owned.iter().map(|(_, pod)| pod).filter(|pod| pods::is_active(pod)).collect();
    let min_ready = int(set_object, "/spec/minReadySeconds").unwrap_or(0);
    let count = |test: &dyn Fn(&Value) -> bool| active.iter().filter(|pod| test(pod)).count();
    let replicas = active.len();
    let ready = count(&|pod| pod_ready(pod));
    let available = count(&|pod| pods::available(world, pod, min_ready).is_ok());
    let updated = count(&|pod| revision_of(pod) == update);
    let of_current = count(&|pod| revision_of(pod) == current);
    let all = usize::try_from(wanted)
        .is_ok_and(|wanted| updated == wanted && ready == wanted && replicas == wanted);
    let current = if all { update } else { current };
    let of_current = if all { updated } else { of_current };
    world.change_status(ACTOR, key, |object| {
        let generation = int(object, "/metadata/generation");
        for (field, value) in [
            ("replicas", json!(replicas)),
            ("readyReplicas", json!(ready)),
            ("availableReplicas", json!(available)),
            ("currentReplicas", json!(of_current)),
            ("updatedReplicas", json!(updated)),
            ("currentRevision", json!(current)),
            ("updateRevision", json!(update)),
            ("collisionCount", json!(0)),
            ("observedGeneration", generation.map_or(Value::Null, Value::from)),
        ] {
            set(object, &["status"], field, value);
        }
    });
}
