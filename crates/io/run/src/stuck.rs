//! Pods that a `StatefulSet` will not replace by itself.
//!
//! A set that updates its pods in order waits for each to become ready, a broken one included: a corrected template does
//! not reach the pod that a wrong one broke. Kubernetes' own advice is to delete that pod.

use scantling_api::{ObjectKey, object};
use scantling_cluster::Write;
use scantling_observed::{Pod, View};
use serde_json::Value;

use crate::event::What;
use crate::report::Stop;
use crate::session::Session;

/// The label by which a pod tells the template that it was made from.
const REVISION: &str = "controller-revision-hash";

impl Session<'_> {
    /// Deletes the pod that keeps a set from its newest template, if there is one, and tells it.
    pub(crate) async fn replace_stuck_pod(&mut self, key: &ObjectKey, set: &Value) -> Result<(), Stop> {
        if !waits_for_each(set) {
            return Ok(());
        }
        let pods = self.list("", "Pod", key.namespace.as_deref()).await?;
        let Some((pod, why)) = stuck(set, &pods) else { return Ok(()) };
        let uid = Some(object::uid(pod).to_owned());
        let delete = Write::Delete { object: pod.clone(), uid, grace_seconds: None };
        // A pod that has become another one meanwhile is not the one that was seen.
        if self.try_write(delete).await?.is_ok() {
            self.tell(What::PodReplaced { pod: object::name(pod).to_owned(), of: key.to_string(), why });
        }
        Ok(())
    }
}

/// Whether a set brings its newest template to one pod after the other and has more than one template.
fn waits_for_each(set: &Value) -> bool {
    let status = |field: &str| set.pointer("/status").and_then(|status| status.get(field));
    let (current, update) = (status("currentRevision"), status("updateRevision"));
    object::text(set, "/kind") == "StatefulSet"
        && object::text(set, "/spec/podManagementPolicy") != "Parallel"
        && object::text(set, "/spec/updateStrategy/type") != "OnDelete"
        && set.pointer("/metadata/generation") == status("observedGeneration")
        && update.is_some()
        // After going back the newest template may be the one that the other pods have.
        && (current != update || status("updatedReplicas") != status("replicas"))
}

/// The highest pod of another template than the newest that does not run, and what keeps it from that.
fn stuck<'p>(set: &Value, pods: &'p [Value]) -> Option<(&'p Value, String)> {
    let newest = object::text(set, "/status/updateRevision");
    let number = |pointer: &str| set.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let first = number("/spec/ordinals/start") + number("/spec/updateStrategy/rollingUpdate/partition");
    let mut found: Option<(u64, &Value, String)> = None;
    for object in pods {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let owned = owners.into_iter().flatten().any(|owner| {
            owner.get("uid").and_then(Value::as_str) == Some(object::uid(set))
                && owner.get("controller").and_then(Value::as_bool) == Some(true)
        });
        let pod = Pod::of(object);
        let revision = object::mapping(object, "/metadata/labels").and_then(|labels| labels.get(REVISION));
        let ordinal = object::name(object).rsplit('-').next().and_then(|n| n.parse::<u64>().ok());
        let (Some(ordinal), Some(Value::String(revision))) = (ordinal, revision) else { continue };
        if !owned || revision == newest || ordinal < first || pod.is_being_deleted() || pod.is_ready() {
            continue;
        }
        let Some((reason, message)) = pod.trouble() else { continue };
        if found.as_ref().is_none_or(|(highest, ..)| ordinal > *highest) {
            found = Some((ordinal, object, format!("{reason}: {message}")));
        }
    }
    found.map(|(_, pod, why)| (pod, why))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn set(partition: u64) -> Value {
        json!({"kind": "StatefulSet", "metadata": {"name": "s", "uid": "u", "generation": 2},
            "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}},
            "status": {"observedGeneration": 2, "currentRevision": "s-1", "updateRevision": "s-2", "replicas": 3}})
    }

    fn pod(ordinal: u64, revision: &str, reason: &str) -> Value {
        let ready = if reason.is_empty() { "True" } else { "False" };
        let state = match reason {
            "" => json!({"running": {"startedAt": "2024-01-01T00:00:00Z"}}),
            reason => json!({"waiting": {"reason": reason, "message": "m"}}),
        };
        json!({"kind": "Pod", "metadata": {"name": format!("s-{ordinal}"), "uid": format!("p{ordinal}"),
                "labels": {REVISION: revision},
                "ownerReferences": [{"kind": "StatefulSet", "name": "s", "uid": "u", "controller": true}]},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"name": "c", "state": state}]}})
    }

    #[test]
    fn only_a_broken_pod_of_an_older_template_is_stuck() {
        let broken = "ImagePullBackOff";
        for (partition, pods, expected) in [
            (0, vec![pod(0, "s-1", ""), pod(1, "s-1", ""), pod(2, "s-0", broken)], Some("s-2")),
            // It is of the newest template: what is wrong there is not mended by another one.
            (0, vec![pod(2, "s-2", broken)], None),
            (0, vec![pod(2, "s-1", "ContainerCreating")], None),
            (0, vec![pod(2, "s-1", "")], None),
            (2, vec![pod(1, "s-1", broken)], None),
            (1, vec![pod(1, "s-1", "CrashLoopBackOff")], Some("s-1")),
            (0, vec![pod(1, "s-1", broken), pod(2, "s-1", broken)], Some("s-2")),
        ] {
            let found = stuck(&set(partition), &pods).map(|(pod, _)| object::name(pod).to_owned());
            assert_eq!(found.as_deref(), expected, "{partition} {pods:?}");
        }
        let mut theirs = pod(2, "s-1", broken);
        theirs["metadata"]["ownerReferences"][0]["uid"] = json!("other");
        assert!(stuck(&set(0), &[theirs]).is_none());
        let mut leaving = pod(2, "s-1", broken);
        leaving["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
        assert!(stuck(&set(0), &[leaving]).is_none());
    }

    #[test]
    fn sets_that_replace_their_pods_by_themselves_are_left_to_it() {
        assert!(waits_for_each(&set(0)));
        for (pointer, value) in [
            ("/spec/updateStrategy/type", json!("OnDelete")),
            ("/status/observedGeneration", json!(1)),
            ("/kind", json!("Deployment")),
        ] {
            let mut other = set(0);
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!waits_for_each(&other), "{pointer}");
        }
        let mut parallel = set(0);
        parallel["spec"]["podManagementPolicy"] = json!("Parallel");
        assert!(!waits_for_each(&parallel));
    }
}
