//! How a deployment goes from its old replica sets to the new one: the arithmetic, without any object.

use scantling_api::ObjectKey;
use serde_json::Value;

use crate::controllers::pods::int_or_percent;
use crate::value::{int, text};

/// Sizes of a deployment's replica sets.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    /// Pods that the deployment wants.
    pub(crate) wanted: i64,
    /// Pods that the new replica set wants.
    pub(crate) new: i64,
    /// Available pods of the new one.
    pub(crate) new_available: i64,
    /// The old ones: key, wanted, available.
    pub(crate) old: Vec<(ObjectKey, i64, i64)>,
}

/// How many pods there may be above the wanted number, and how many may be unavailable below it.
pub(crate) fn limits(deployment: &Value, wanted: i64) -> (i64, i64) {
    if text(deployment, "/spec/strategy/type") == Some("Recreate") {
        return (0, wanted);
    }
    let field = |name: &str| deployment.pointer(&format!("/spec/strategy/rollingUpdate/{name}"));
    let surge = int_or_percent(field("maxSurge"), "25%", wanted, true);
    let unavailable = int_or_percent(field("maxUnavailable"), "25%", wanted, false);
    // Both at zero would stand still.
    if surge == 0 && unavailable == 0 { (0, 1.min(wanted)) } else { (surge, unavailable.min(wanted)) }
}

/// The size with which a new replica set begins.
pub(crate) fn first_size(deployment: &Value, old: &[(ObjectKey, i64, i64)]) -> i64 {
    let wanted = int(deployment, "/spec/replicas").unwrap_or(1);
    let existing: i64 = old.iter().map(|(_, replicas, _)| replicas).sum();
    if existing == 0 {
        return wanted;
    }
    if text(deployment, "/spec/strategy/type") == Some("Recreate") {
        return 0;
    }
    let (surge, _) = limits(deployment, wanted);
    (wanted + surge - existing).clamp(0, wanted)
}

/// The replica sets that change their size now, and to what. `old_pods` counts the pods of old replica sets
/// that still exist.
pub(crate) fn next(
    deployment: &Value,
    now: &Scale,
    new_key: &ObjectKey,
    old_pods: i64,
) -> Vec<(ObjectKey, i64)> {
    let old_total: i64 = now.old.iter().map(|(_, replicas, _)| replicas).sum();
    let mut changes = Vec::new();
    if text(deployment, "/spec/strategy/type") == Some("Recreate") {
        for (key, replicas, _) in &now.old {
            if *replicas > 0 {
                changes.push((key.clone(), 0));
            }
        }
        if old_pods == 0 && old_total == 0 && now.new != now.wanted {
            changes.push((new_key.clone(), now.wanted));
        }
        return changes;
    }
    let (surge, unavailable) = limits(deployment, now.wanted);
    if now.new > now.wanted {
        changes.push((new_key.clone(), now.wanted));
        return changes;
    }
    if now.new < now.wanted {
        let room = now.wanted + surge - (now.new + old_total);
        let grown = now.new + room.clamp(0, now.wanted - now.new);
        if grown != now.new {
            changes.push((new_key.clone(), grown));
            return changes;
        }
    }
    if old_total == 0 {
        return changes;
    }
    // Old pods that are not available do no good; they go first, and what then is above the minimum follows.
    let minimum = now.wanted - unavailable;
    let new_unavailable = (now.new - now.new_available).max(0);
    let mut room = now.new + old_total - minimum - new_unavailable;
    if room <= 0 {
        return changes;
    }
    let mut left: Vec<(ObjectKey, i64, i64)> = now.old.clone();
    for (_, replicas, available) in &mut left {
        let broken = (*replicas - *available).clamp(0, room);
        *replicas -= broken;
        room -= broken;
    }
    let available: i64 = now.new_available + now.old.iter().map(|(_, _, available)| available).sum::<i64>();
    let mut spare = (available - minimum).max(0);
    for (_, replicas, _) in &mut left {
        let down = (*replicas).min(spare);
        *replicas -= down;
        spare -= down;
    }
    for ((key, before, _), (_, after, _)) in now.old.iter().zip(&left) {
        if before != after {
            changes.push((key.clone(), *after));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("apps", "ReplicaSet", "ns", name)
    }

    /// Plays a rollout in which every pod becomes available at once; gives the steps as (old, new).
    fn play(deployment: &Value, wanted: i64) -> Vec<(i64, i64)> {
        let (mut old, mut new) = (wanted, first_size(deployment, &[(key("old"), wanted, wanted)]));
        let mut steps = vec![(old, new)];
        for _ in 0..20 {
            let scale = Scale { wanted, new, new_available: new, old: vec![(key("old"), old, old)] };
            let changes = next(deployment, &scale, &key("new"), old);
            if changes.is_empty() {
                break;
            }
            for (changed, size) in changes {
                if changed.name == "new" { new = size } else { old = size }
            }
            steps.push((old, new));
        }
        steps
    }

    #[test]
    fn rolling_updates_stay_within_their_limits() {
        for (surge, unavailable, wanted) in [
            (json!(1), json!(0), 3),
            (json!(0), json!(1), 3),
            (json!("25%"), json!("25%"), 4),
            (json!(0), json!(0), 2),
            (json!(10), json!(0), 2),
        ] {
            let deployment = json!({"spec": {"replicas": wanted, "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}});
            let (most, fewest) = limits(&deployment, wanted);
            let steps = play(&deployment, wanted);
            assert_eq!(steps.last(), Some(&(0, wanted)), "{steps:?}");
            for (old, new) in steps {
                assert!(old + new <= wanted + most, "{old}+{new}");
                assert!(old + new >= wanted - fewest, "{old}+{new}");
            }
        }
    }

    #[test]
    fn pods_that_are_about_to_go_are_not_counted_twice() {
        // The old set was just scaled from 4 to 3; its status still says 4 available.
        let deployment = json!({"spec": {"replicas": 4, "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}});
        let scale = Scale { wanted: 4, new: 2, new_available: 0, old: vec![(key("old"), 3, 4)] };
        assert!(next(&deployment, &scale, &key("new"), 3).is_empty());
    }

    #[test]
    fn recreate_waits_until_the_old_pods_are_gone() {
        let deployment = json!({"spec": {"replicas": 2, "strategy": {"type": "Recreate"}}});
        let scale = Scale { wanted: 2, new: 0, new_available: 0, old: vec![(key("old"), 0, 0)] };
        assert!(next(&deployment, &scale, &key("new"), 2).is_empty());
        assert_eq!(next(&deployment, &scale, &key("new"), 0), [(key("new"), 2)]);
        assert_eq!(play(&deployment, 2), [(2, 0), (0, 0), (0, 2)]);
    }

    #[test]
    fn a_rollout_whose_new_pods_never_come_up_keeps_the_old_ones() {
        let deployment = json!({"spec": {"replicas": 4, "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}});
        let scale = Scale { wanted: 4, new: 1, new_available: 0, old: vec![(key("old"), 4, 4)] };
        assert!(next(&deployment, &scale, &key("new"), 4).is_empty());
    }
}
