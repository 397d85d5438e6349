//! Why a workload does not become healthy: what its pods, the scheduler, the kubelets and the controllers say of it.
//!
//! What programs themselves wrote (their termination messages, the output of a probe's command) is left out: it may hold
//! anything.

use std::cmp::Reverse;

use scantling_api::object;
use scantling_cluster::{Cluster, Served};
use scantling_observed::{ContainerState, Pod, PodContainer, View};
use serde_json::Value;

use crate::verify::selector;

/// Characters of an explanation: a line or two, of which the beginning says what matters.
const CHARACTERS: usize = 300;
/// Events that explain why a pod is not there or not ready. `Unhealthy` is told without its message, which may be what a
/// probe's command wrote.
const EXPLAINING: [&str; 6] = [
    "FailedCreate",
    "FailedScheduling",
    "FailedMount",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "Unhealthy",
];

/// What is said of a workload as it is in the cluster; none if nobody says anything, or it may not be read.
pub(crate) async fn why_not_ready(cluster: &Cluster, served: &Served, workload: &Value) -> Option<String> {
    let namespace = object::namespace(workload)?;
    let selector = selector(workload.pointer("/spec/selector")?)?;
    let pods = cluster.list(served.by_kind("", "Pod")?, Some(namespace), Some(&selector)).await.ok()?;
    let mut pods: Vec<&Value> =
        pods.iter().filter(|pod| !Pod::of(pod).is_being_deleted() && !Pod::of(pod).is_ready()).collect();
    // What was made last is what is wanted now.
    pods.sort_by_key(|pod| Reverse((object::text(pod, "/metadata/creationTimestamp"), object::name(pod))));
    let said = pods.iter().find_map(|pod| Some((*pod, of_pod(pod)?)));
    let words = if let Some((pod, words)) = said {
        format!("pod {}: {words}", object::name(pod))
    } else {
        let events = match served.by_kind("", "Event") {
            Some(events) => cluster.list(events, Some(namespace), None).await.unwrap_or_default(),
            None => Vec::new(),
        };
        of_events(&events, workload, &pods).or_else(|| of_conditions(workload))?
    };
    Some(bounded(&words))
}

/// What a pod says of itself.
fn of_pod(pod: &Value) -> Option<String> {
    let view = Pod::of(pod);
    let containers = view.containers();
    let waiting = containers.iter().find_map(|container| match container.state() {
        ContainerState::Waiting { reason, message }
            if !matches!(reason, "" | "ContainerCreating" | "PodInitializing") =>
        {
            Some((container, reason, message))
        }
        _ => None,
    });
    if let Some((container, reason, message)) = waiting {
        let ended = last_end(pod, container).map(|ended| format!("; it ended {ended}")).unwrap_or_default();
        return Some(format!("container {}: {}{ended}", container.name, joined(reason, message)));
    }
    if let Some((reason, message)) = view.trouble() {
        return Some(joined(reason, message));
    }
    let ended = containers.iter().find_map(|container| {
        let code = exit_code(pod, container, "state")?;
        (code != 0).then(|| format!("container {} ended with code {code}", container.name))
    });
    ended.or_else(|| {
        (view.phase() == "Failed")
            .then(|| joined(object::text(pod, "/status/reason"), object::text(pod, "/status/message")))
    })
}

fn status<'v>(pod: &'v Value, container: &PodContainer<'_>) -> Option<&'v Value> {
    ["/status/containerStatuses", "/status/initContainerStatuses"]
        .iter()
        .filter_map(|list| pod.pointer(list)?.as_array())
        .flatten()
        .find(|status| object::text(status, "/name") == container.name)
}

fn exit_code(pod: &Value, container: &PodContainer<'_>, state: &str) -> Option<i64> {
    status(pod, container)?.pointer(&format!("/{state}/terminated/exitCode"))?.as_i64()
}

/// How a container ended the last time.
fn last_end(pod: &Value, container: &PodContainer<'_>) -> Option<String> {
    let code = exit_code(pod, container, "lastState")?;
    let reason = object::text(status(pod, container)?, "/lastState/terminated/reason");
    Some(if reason.is_empty() { format!("with code {code}") } else { format!("with code {code} ({reason})") })
}

/// What the newest event about the workload, its replica sets or its pods says.
fn of_events(events: &[Value], workload: &Value, pods: &[&Value]) -> Option<String> {
    let name = object::name(workload);
    let about = |event: &&Value| {
        let (kind, of) =
            (object::text(event, "/involvedObject/kind"), object::text(event, "/involvedObject/name"));
        match kind {
            "Pod" => pods.iter().any(|pod| object::name(pod) == of),
            "ReplicaSet" => of.rsplit_once('-').is_some_and(|(stem, _)| stem == name),
            _ => of == name && kind == object::text(workload, "/kind"),
        }
    };
    let at = |event: &Value| {
        let times = ["/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
        times.iter().map(|at| object::text(event, at).to_owned()).max().unwrap_or_default()
    };
    let newest = events
        .iter()
        .filter(|event| EXPLAINING.contains(&object::text(event, "/reason")))
        .filter(about)
        .max_by_key(|event| at(event))?;
    let (reason, message) = (object::text(newest, "/reason"), object::text(newest, "/message"));
    let of = object::text(newest, "/involvedObject/name");
    Some(if reason == "Unhealthy" {
        // "Readiness probe failed: …"
        let probe = message.split(':').next().unwrap_or(message);
        format!("pod {of}: {probe}")
    } else {
        format!("{of}: {}", joined(reason, message))
    })
}

/// What the controller of a workload says.
fn of_conditions(workload: &Value) -> Option<String> {
    let conditions = workload.pointer("/status/conditions")?.as_array()?;
    let failure = conditions.iter().find(|condition| {
        object::text(condition, "/type") == "ReplicaFailure" && object::text(condition, "/status") == "True"
    })?;
    Some(joined(object::text(failure, "/reason"), object::text(failure, "/message")))
}

fn joined(reason: &str, message: &str) -> String {
    match (reason, message) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// On one line, and not too long.
fn bounded(words: &str) -> String {
    let line: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= CHARACTERS {
        return line;
    }
    let cut: String = line.chars().take(CHARACTERS).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Value) -> Value {
        json!({
            "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "main", "image": "a"}], "initContainers": [{"name": "load", "image": "b"}]},
            "status": status,
        })
    }

    #[test]
    fn pods_say_why() {
        for (status, said) in [
            (
                json!({"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}}]}),
                Some("container main: ImagePullBackOff: Back-off pulling image"),
            ),
            (
                json!({"containerStatuses": [{
                    "name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
                    "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "token=secret"}},
                }]}),
                Some("container main: CrashLoopBackOff: back-off 5m0s; it ended with code 3 (Error)"),
            ),
            (
                json!({"initContainerStatuses": [{"name": "load", "state": {"waiting": {"reason": "ErrImagePull"}}}]}),
                Some("container load: ErrImagePull"),
            ),
            (
                json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]}),
                Some("Unschedulable: 0/3 nodes are available"),
            ),
            (
                json!({"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 2, "message": "password=x"}}}]}),
                Some("container main ended with code 2"),
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}),
                Some("Evicted: low on disk"),
            ),
            (
                json!({"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
                None,
            ),
            (json!({}), None),
        ] {
            assert_eq!(of_pod(&pod(&status)).as_deref(), said, "{status}");
        }
    }

    #[test]
    fn events_say_why_and_never_what_a_probe_wrote() {
        let workload = json!({"kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}});
        let event = |kind: &str, name: &str, reason: &str, message: &str, at: &str| {
            json!({
                "involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message,
                "lastTimestamp": at,
            })
        };
        let pod = pod(&json!({}));
        for (events, said) in [
            (
                vec![event("Pod", "p", "Unhealthy", "Readiness probe failed: token=secret", "2")],
                Some("pod p: Readiness probe failed"),
            ),
            (
                vec![
                    event("ReplicaSet", "d-5f7b", "FailedCreate", "exceeded quota: q", "3"),
                    event("Pod", "p", "Unhealthy", "Liveness probe failed: x", "2"),
                ],
                Some("d-5f7b: FailedCreate: exceeded quota: q"),
            ),
            (
                vec![event("Pod", "other", "FailedMount", "x", "1"), event("Pod", "p", "Pulled", "x", "1")],
                None,
            ),
        ] {
            assert_eq!(of_events(&events, &workload, &[&pod]).as_deref(), said, "{events:?}");
        }
        assert_eq!(bounded("a\n b"), "a b");
        assert_eq!(bounded(&"x".repeat(1000)).chars().count(), CHARACTERS + 1);
    }
}
