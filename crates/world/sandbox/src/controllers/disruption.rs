//! Disruption budgets: how many pods may be evicted now.

use scantling_api::ObjectKey;
use serde_json::{Map, Value, json};

use crate::controllers::pods;
use crate::value::{
    controller_of, expression_matches, int, list, map, namespace, pod_ready, set, set_condition, text,
};
use crate::world::World;

const ACTOR: &str = "disruption-controller";

/// Looks at one budget.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(budget) = world.object(key).cloned() else { return };
    let Some(selector) = budget.pointer("/spec/selector") else { return };
    let pods: Vec<Value> = world
        .list("", "Pod", Some(namespace(&budget)))
        .into_iter()
        .filter(|(_, pod)| selects(selector, map(pod, "/metadata/labels")))
        .filter(|(_, pod)| !matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed")))
        .map(|(_, pod)| pod.clone())
        .collect();
    let expected = expected(world, &pods);
    let healthy = pods.iter().filter(|pod| pods::is_active(pod) && pod_ready(pod)).count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let desired = match (budget.pointer("/spec/minAvailable"), budget.pointer("/spec/maxUnavailable")) {
        (None, Some(unavailable)) => {
            (expected - pods::int_or_percent(Some(unavailable), "0", expected, true)).max(0)
        }
        (available, _) => pods::int_or_percent(available, "1", expected, true),
    };
    let allowed = (healthy - desired).max(0);
    let stamp = world.stamp_now();
    world.change_status(ACTOR, key, |object| {
        let generation = int(object, "/metadata/generation");
        let mut conditions = list(object, "/status/conditions").to_vec();
        let (status, reason) =
            if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
        set_condition(&mut conditions, "DisruptionAllowed", status, reason, "", &stamp);
        for condition in &mut conditions {
            set(condition, &[], "observedGeneration", generation.map_or(Value::Null, Value::from));
            let message = text(condition, "/message").unwrap_or_default().to_owned();
            set(condition, &[], "message", json!(message));
        }
        for (field, value) in [
            ("currentHealthy", json!(healthy)),
            ("desiredHealthy", json!(desired)),
            ("expectedPods", json!(expected)),
            ("disruptionsAllowed", json!(allowed)),
            ("observedGeneration", generation.map_or(Value::Null, Value::from)),
            ("conditions", Value::Array(conditions)),
        ] {
            set(object, &["status"], field, value);
        }
    });
}

/// How many pods there should be: what their controllers want, or as many as there are.
fn expected(world: &World, pods: &[Value]) -> i64 {
    let mut owners: Vec<ObjectKey> = Vec::new();
    let mut bare = 0;
    for pod in pods {
        match controller_of(pod) {
            Some((kind @ ("ReplicaSet" | "StatefulSet"), name, _)) => {
                let owner = ObjectKey::namespaced("apps", kind, namespace(pod), name);
                if !owners.contains(&owner) {
                    owners.push(owner);
                }
            }
            _ => bare += 1,
        }
    }
    let wanted = owners
        .iter()
        .filter_map(|owner| world.object(owner))
        .map(|owner| int(owner, "/spec/replicas").unwrap_or(1))
        .sum::<i64>();
    wanted + bare
}

/// Whether a budget's selector selects labels; an empty one selects all.
fn selects(selector: &Value, labels: Option<&Map<String, Value>>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    map(selector, "/matchLabels")
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| value.as_str() == label(key)))
        && list(selector, "/matchExpressions").iter().all(|expression| expression_matches(expression, &label))
}
