//! The row of a pod: what its many states amount to.

use scantling_api::object;
use serde_json::{Value, json};

use super::{ago, items, number, since, text_or};

pub(super) fn cells(pod: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match &summary.last_restart {
        Some(time) if summary.restarts != 0 => format!("{} ({} ago)", summary.restarts, ago(time, now)),
        _ => summary.restarts.to_string(),
    };
    let gates = items(pod, "/spec/readinessGates");
    let gates = if gates.is_empty() {
        "<none>".to_owned()
    } else {
        let met =
            gates.iter().filter(|gate| condition(pod, object::text(gate, "/conditionType")) == Some("True"));
        format!("{}/{}", met.count(), gates.len())
    };
    vec![
        json!(object::name(pod)),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        since(pod, now),
        json!(text_or(pod, "/status/podIPs/0/ip", text_or(pod, "/status/podIP", "<none>"))),
        json!(text_or(pod, "/spec/nodeName", "<none>")),
        json!(text_or(pod, "/status/nominatedNodeName", "<none>")),
        json!(gates),
    ]
}

/// The condition of the row of a pod that has ended.
pub(super) fn completed(object: &Value) -> Option<Value> {
    if object::text(object, "/kind") != "Pod" || object::text(object, "/apiVersion") != "v1" {
        return None;
    }
    let phase = object::text(object, "/status/phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!({"type": "Completed", "status": "True", "reason": phase, "message": message}))
}

struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// The latest end of a container before its restart.
    last_restart: Option<String>,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let phase = object::text(pod, "/status/phase");
        let mut summary = Self {
            reason: text_or(pod, "/status/reason", phase).to_owned(),
            ready: 0,
            total: items(pod, "/spec/containers").len(),
            restarts: 0,
            last_restart: None,
        };
        if items(pod, "/status/conditions").iter().any(|condition| {
            object::text(condition, "/type") == "PodScheduled"
                && object::text(condition, "/reason") == "SchedulingGated"
        }) {
            "SchedulingGated".clone_into(&mut summary.reason);
        }
        let (initializing, sidecars) = summary.init_containers(pod);
        if !initializing || condition(pod, "Initialized") == Some("True") {
            (summary.restarts, summary.last_restart) = sidecars;
            summary.regular_containers(pod);
        }
        if !object::text(pod, "/metadata/deletionTimestamp").is_empty() {
            if object::text(pod, "/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Whether initialisation is under way or failed, and the restarts of those init containers that stay.
    fn init_containers(&mut self, pod: &Value) -> (bool, (i64, Option<String>)) {
        let all = items(pod, "/spec/initContainers");
        let stays = |name: &str| {
            all.iter().any(|container| {
                object::text(container, "/name") == name
                    && object::text(container, "/restartPolicy") == "Always"
            })
        };
        self.total +=
            all.iter().filter(|container| object::text(container, "/restartPolicy") == "Always").count();
        let mut sidecars = (0, None);
        for (index, status) in items(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.restarts += number(status, "/restartCount");
            later(&mut self.last_restart, status);
            let sidecar = stays(object::text(status, "/name"));
            if sidecar {
                sidecars.0 += number(status, "/restartCount");
                later(&mut sidecars.1, status);
            }
            let terminated = status.pointer("/state/terminated");
            let waiting = object::text(status, "/state/waiting/reason");
            if terminated.is_some() && number(status, "/state/terminated/exitCode") == 0 {
                continue;
            }
            if sidecar && status.get("started") == Some(&json!(true)) {
                if status.get("ready") == Some(&json!(true)) {
                    self.ready += 1;
                }
                continue;
            }
            self.reason = if let Some(terminated) = terminated {
                format!("Init:{}", end_reason(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", all.len())
            };
            return (true, sidecars);
        }
        (false, sidecars)
    }

    fn regular_containers(&mut self, pod: &Value) {
        let (mut running, mut failure) = (false, None);
        for status in items(pod, "/status/containerStatuses").iter().rev() {
            self.restarts += number(status, "/restartCount");
            later(&mut self.last_restart, status);
            let waiting = object::text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = status.pointer("/state/terminated") {
                self.reason = end_reason(terminated);
                if number(terminated, "/exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status.get("ready") == Some(&json!(true)) && status.pointer("/state/running").is_some()
            {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && condition(pod, "Ready") == Some("True") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

fn end_reason(terminated: &Value) -> String {
    let reason = object::text(terminated, "/reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match number(terminated, "/signal") {
        0 => format!("ExitCode:{}", number(terminated, "/exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

/// Times in RFC 3339 of the same zone and precision are ordered as texts.
fn later(latest: &mut Option<String>, status: &Value) {
    let ended = object::text(status, "/lastState/terminated/finishedAt");
    if !ended.is_empty() && latest.as_deref().is_none_or(|latest| latest < ended) {
        *latest = Some(ended.to_owned());
    }
}

fn condition<'v>(pod: &'v Value, kind: &str) -> Option<&'v str> {
    let found = items(pod, "/status/conditions").iter().find(|entry| object::text(entry, "/type") == kind)?;
    found.get("status").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_amount_to_one_word() {
        let pod =
            |spec: Value, status: Value| json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
        let one = json!({"containers": [{"name": "c"}]});
        let with_init = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]});
        for (pod, ready, reason) in [
            (pod(one.clone(), json!({"phase": "Pending"})), "0/1", "Pending"),
            (
                pod(
                    one.clone(),
                    json!({"phase": "Running", "containerStatuses": [{"ready": true, "state": {"running": {}}}]}),
                ),
                "1/1",
                "Running",
            ),
            (
                pod(
                    one.clone(),
                    json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
                ),
                "0/1",
                "ImagePullBackOff",
            ),
            (
                pod(
                    one.clone(),
                    json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}),
                ),
                "0/1",
                "ExitCode:3",
            ),
            (
                pod(
                    with_init.clone(),
                    json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
                ),
                "0/2",
                "Init:0/2",
            ),
            (
                pod(
                    with_init.clone(),
                    json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}),
                ),
                "0/2",
                "Init:Error",
            ),
            (
                pod(
                    with_init,
                    json!({"phase": "Running",
                    "initContainerStatuses": [
                        {"name": "i", "state": {"terminated": {"exitCode": 0}}},
                        {"name": "s", "started": true, "ready": true, "state": {"running": {}}},
                    ],
                    "containerStatuses": [{"ready": true, "state": {"running": {}}}]}),
                ),
                "2/2",
                "Running",
            ),
            (
                json!({"metadata": {"name": "p", "deletionTimestamp": "2024-01-01T00:00:00Z"}, "spec": one, "status": {"phase": "Running"}}),
                "0/1",
                "Terminating",
            ),
        ] {
            let cells = cells(&pod, jiff::Timestamp::UNIX_EPOCH);
            assert_eq!(cells.get(1..3), Some(&[json!(ready), json!(reason)][..]), "{pod}");
        }
    }

    #[test]
    fn restarts_tell_when_the_last_one_was() {
        let pod = json!({"status": {"containerStatuses": [
            {"restartCount": 2, "lastState": {"terminated": {"finishedAt": "1969-12-31T23:59:00Z"}}},
            {"restartCount": 1, "lastState": {"terminated": {"finishedAt": "1969-12-31T23:58:00Z"}}},
        ]}});
        let cells = cells(&pod, jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(cells.get(3), Some(&json!("3 (60s ago)")));
    }
}
