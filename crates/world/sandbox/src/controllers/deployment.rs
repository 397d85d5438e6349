//! Deployments: a replica set for each template, and the way from one to the next.

use scantling_api::ObjectKey;
use serde_json::{Map, Value, json};

use crate::controllers::deployment_rollout::{self, Scale};
use crate::controllers::pods;
use crate::queue::Controller;
use crate::value::{
    controller_reference, deleting, flag, int, list, map, name, namespace, object_mut, set, set_condition,
    text,
};
use crate::world::World;

/// The controller's field manager.
pub(crate) const ACTOR: &str = "deployment-controller";
/// The label that tells the replica sets of a deployment apart.
const HASH_LABEL: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const DEFAULT_HISTORY: i64 = 10;
const DEFAULT_DEADLINE_SECONDS: i64 = 600;

/// Looks at one deployment.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(deployment) = world.object(key).cloned() else { return };
    let mut sets = pods::owned(world, &deployment, ("apps", "ReplicaSet"));
    if deleting(&deployment) {
        status(world, key, &deployment, &sets, None);
        return;
    }
    let paused = flag(&deployment, "/spec/paused");
    let template = deployment.pointer("/spec/template").cloned().unwrap_or_default();
    let current = sets.iter().position(|(_, set)| same_template(set, &template));
    let current = match current {
        Some(index) => Some(sets.remove(index)),
        None if paused => None,
        None => create_set(world, key, &deployment, &template, &sets),
    };
    if let Some((current_key, _)) = &current {
        settle_revision(world, key, current_key, &sets);
    }
    let old: Vec<(ObjectKey, i64, i64)> = sets
        .iter()
        .map(|(key, set)| (key.clone(), replicas(set), int(set, "/status/availableReplicas").unwrap_or(0)))
        .collect();
    if !paused && let Some((current_key, set)) = &current {
        let now = Scale {
            wanted: replicas(&deployment),
            new: replicas(set),
            new_available: int(set, "/status/availableReplicas").unwrap_or(0),
            old: old.clone(),
        };
        let old_pods = sets.iter().map(|(_, set)| int(set, "/status/replicas").unwrap_or(0)).sum::<i64>()
            + waiting_pods(world, &sets);
        for (set_key, replicas) in deployment_rollout::next(&deployment, &now, current_key, old_pods) {
            scale(world, &deployment, &set_key, replicas);
        }
        trim_history(world, &deployment, &sets);
    }
    let mut all = pods::owned(world, &deployment, ("apps", "ReplicaSet"));
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    status(world, key, &deployment, &all, current.as_ref().map(|(key, _)| key));
}

fn replicas(object: &Value) -> i64 {
    int(object, "/spec/replicas").unwrap_or(1)
}

/// Pods of replica sets that are being deleted still count for a `Recreate`.
fn waiting_pods(world: &World, sets: &[(ObjectKey, Value)]) -> i64 {
    let count: usize = sets
        .iter()
        .map(|(_, set)| pods::owned(world, set, ("", "Pod")).iter().filter(|(_, pod)| deleting(pod)).count())
        .sum();
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Whether a replica set was made from this template.
fn same_template(set: &Value, template: &Value) -> bool {
    let mut theirs = set.pointer("/spec/template").cloned().unwrap_or_default();
    let mut ours = template.clone();
    for template in [&mut theirs, &mut ours] {
        object_mut(template, &["metadata", "labels"]).remove(HASH_LABEL);
        object_mut(template, &["metadata"]).remove("creationTimestamp");
    }
    theirs == ours
}

fn create_set(
    world: &mut World,
    key: &ObjectKey,
    deployment: &Value,
    template: &Value,
    others: &[(ObjectKey, Value)],
) -> Option<(ObjectKey, Value)> {
    let hash = pods::template_hash(template);
    let mut template = template.clone();
    object_mut(&mut template, &["metadata", "labels"]).insert(HASH_LABEL.into(), hash.as_str().into());
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_else(|| json!({}));
    object_mut(&mut selector, &["matchLabels"]).insert(HASH_LABEL.into(), hash.as_str().into());
    let mut labels: Map<String, Value> = map(&template, "/metadata/labels").cloned().unwrap_or_default();
    labels.insert(HASH_LABEL.into(), hash.as_str().into());
    let set_name = format!("{}-{hash}", key.name);
    let old: Vec<(ObjectKey, i64, i64)> =
        others.iter().map(|(key, set)| (key.clone(), replicas(set), 0)).collect();
    let set_key = ObjectKey::namespaced("apps", "ReplicaSet", namespace(deployment), &set_name);
    let first = deployment_rollout::first_size(deployment, &old);
    let set_object = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": set_name,
            "namespace": namespace(deployment),
            "labels": labels,
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": first,
            "minReadySeconds": int(deployment, "/spec/minReadySeconds").unwrap_or(0),
            "selector": selector,
            "template": template,
        },
    });
    match world.create(ACTOR, set_object) {
        Ok(created) => {
            if first > 0 {
                let message = format!("Scaled up replica set {set_name} from 0 to {first}");
                world.event(ACTOR, deployment, "Normal", "ScalingReplicaSet", &message);
            }
            Some((set_key, created))
        }
        Err(status) => {
            let message = format!("Failed to create new replica set \"{set_name}\": {}", status.message);
            world.event(ACTOR, deployment, "Warning", "ReplicaSetCreateError", &message);
            None
        }
    }
}

/// The newest replica set has the highest revision; the deployment shows it.
fn settle_revision(world: &mut World, key: &ObjectKey, current: &ObjectKey, others: &[(ObjectKey, Value)]) {
    let revision = |object: &Value| {
        map(object, "/metadata/annotations")
            .and_then(|annotations| annotations.get(REVISION))
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let highest = others.iter().map(|(_, set)| revision(set)).max().unwrap_or(0);
    let own = world.object(current).map_or(0, revision);
    let wanted = if own > highest { own } else { highest + 1 };
    for object_key in [current, key] {
        world.change(ACTOR, object_key, |object| {
            let annotations = object_mut(object, &["metadata", "annotations"]);
            annotations.insert(REVISION.into(), wanted.to_string().into());
        });
    }
}

fn scale(world: &mut World, deployment: &Value, set_key: &ObjectKey, wanted: i64) {
    let before = world.object(set_key).map_or(0, replicas);
    if before == wanted {
        return;
    }
    world.change(ACTOR, set_key, |set_object| set(set_object, &["spec"], "replicas", json!(wanted)));
    let direction = if wanted > before { "up" } else { "down" };
    let message = format!("Scaled {direction} replica set {} from {before} to {wanted}", set_key.name);
    world.event(ACTOR, deployment, "Normal", "ScalingReplicaSet", &message);
}

/// Deletes empty old replica sets beyond the history limit, oldest first.
fn trim_history(world: &mut World, deployment: &Value, old: &[(ObjectKey, Value)]) {
    let limit = int(deployment, "/spec/revisionHistoryLimit").unwrap_or(DEFAULT_HISTORY).max(0);
    let mut empty: Vec<&(ObjectKey, Value)> = old
        .iter()
        .filter(|(_, set)| replicas(set) == 0 && int(set, "/status/replicas").unwrap_or(0) == 0)
        .collect();
    empty.sort_by_key(|(key, set)| {
        (text(set, "/metadata/creationTimestamp").unwrap_or_default().to_owned(), key.clone())
    });
    let surplus = empty.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    for (key, _) in empty.into_iter().take(surplus) {
        world.delete(ACTOR, key, None);
    }
}

fn status(
    world: &mut World,
    key: &ObjectKey,
    deployment: &Value,
    sets: &[(ObjectKey, Value)],
    current: Option<&ObjectKey>,
) {
    let sum = |field: &str| -> i64 {
        sets.iter().map(|(_, set)| int(set, &format!("/status/{field}")).unwrap_or(0)).sum()
    };
    let wanted = replicas(deployment);
    let (all, ready, available) = (sum("replicas"), sum("readyReplicas"), sum("availableReplicas"));
    let of_current = |field: &str| {
        sets.iter()
            .find(|(set_key, _)| Some(set_key) == current)
            .map_or(0, |(_, set)| int(set, &format!("/status/{field}")).unwrap_or(0))
    };
    let updated = of_current("replicas");
    let (_, unavailable_most) = deployment_rollout::limits(deployment, wanted);
    let complete = current.is_some() && updated == wanted && all == wanted && available >= wanted;
    let stamp = world.stamp_now();
    let set_name = current.map_or_else(String::new, |key| key.name.clone());
    let progress_before = progress_of(deployment);
    let figures = (updated, ready, available, all);
    let moved = progress_before.figures != Some(figures);
    let deadline = int(deployment, "/spec/progressDeadlineSeconds").unwrap_or(DEFAULT_DEADLINE_SECONDS);
    let silent = progress_before
        .since
        .and_then(|since| since.parse::<jiff::Timestamp>().ok())
        .map_or(0, |since| world.timestamp().as_second() - since.as_second());
    let late = !complete && !moved && progress_before.since.is_some() && silent >= deadline;
    if !complete && !late && deadline < i64::from(i32::MAX) {
        let left = u64::try_from((deadline - if moved { 0 } else { silent }).max(1)).unwrap_or(1);
        let at = world.now().plus_millis(left.saturating_mul(1000));
        world.wake(Controller::Deployment, key, at);
    }
    let minimum_available = available >= wanted - unavailable_most;
    let generation = int(deployment, "/metadata/generation");
    world.change_status(ACTOR, key, |object| {
        let mut status = Map::new();
        for (field, value) in [
            ("replicas", all),
            ("updatedReplicas", updated),
            ("readyReplicas", ready),
            ("availableReplicas", available),
            ("unavailableReplicas", (wanted.max(all) - available).max(0)),
        ] {
            if value > 0 {
                status.insert(field.into(), value.into());
            }
        }
        if let Some(generation) = generation {
            status.insert("observedGeneration".into(), generation.into());
        }
        let mut conditions = list(object, "/status/conditions").to_vec();
        let (value, reason, message) = if minimum_available {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        set_condition(&mut conditions, "Available", value, reason, message, &stamp);
        let (value, reason, message) = if complete {
            (
                "True",
                "NewReplicaSetAvailable",
                format!("ReplicaSet \"{set_name}\" has successfully progressed."),
            )
        } else if late {
            (
                "False",
                "ProgressDeadlineExceeded",
                format!("ReplicaSet \"{set_name}\" has timed out progressing."),
            )
        } else {
            ("True", "ReplicaSetUpdated", format!("ReplicaSet \"{set_name}\" is progressing."))
        };
        let was_late = progress_before.late && !moved;
        if !was_late || complete {
            let updated = if moved || complete != progress_before.complete {
                Some(stamp.clone())
            } else {
                progress_before.since.map(ToOwned::to_owned)
            };
            set_condition(&mut conditions, "Progressing", value, reason, &message, &stamp);
            for condition in &mut conditions {
                let fresh = text(condition, "/type") != Some("Progressing");
                let time = if fresh {
                    condition.get("lastTransitionTime").cloned()
                } else {
                    updated.clone().map(Value::from)
                };
                set(condition, &[], "lastUpdateTime", time.unwrap_or_else(|| stamp.as_str().into()));
            }
        }
        status.insert("conditions".into(), Value::Array(conditions));
        if let Some(object) = object.as_object_mut() {
            object.insert("status".into(), Value::Object(status));
        }
    });
    if late && !progress_before.late {
        let message = format!("ReplicaSet \"{}\" has timed out progressing.", name(deployment));
        world.event(ACTOR, deployment, "Warning", "ProgressDeadlineExceeded", &message);
    }
}

/// What the status said about progress before.
struct Progress<'a> {
    figures: Option<(i64, i64, i64, i64)>,
    since: Option<&'a str>,
    late: bool,
    complete: bool,
}

fn progress_of(deployment: &Value) -> Progress<'_> {
    let condition = list(deployment, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some("Progressing"));
    let count = |field: &str| int(deployment, &format!("/status/{field}")).unwrap_or(0);
    Progress {
        figures: condition.map(|_| {
            (count("updatedReplicas"), count("readyReplicas"), count("availableReplicas"), count("replicas"))
        }),
        since: condition.and_then(|condition| text(condition, "/lastUpdateTime")),
        late: condition.and_then(|condition| text(condition, "/reason")) == Some("ProgressDeadlineExceeded"),
        complete: condition.and_then(|condition| text(condition, "/reason"))
            == Some("NewReplicaSetAvailable"),
    }
}
