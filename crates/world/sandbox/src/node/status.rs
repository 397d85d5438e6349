//! A pod's status as the kubelet reports it.

use serde_json::{Map, Value, json};

use crate::node::container::{Container, Ended, PodRuntime, State};
use crate::node::process::container_name;
use crate::time::Time;
use crate::value::{list, set_condition, text};

/// How the runtime's container ids begin.
pub(crate) const CONTAINER_ID_PREFIX: &str = "containerd://";

/// Milliseconds as Go prints a duration: `101ms`, `1.5s`, `2m3s`.
pub(crate) fn go_duration(millis: u64) -> String {
    if millis < 1000 {
        return if millis == 0 { "0s".to_owned() } else { format!("{millis}ms") };
    }
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let mut seconds = format!("{}.{:03}", rest / 1000, rest % 1000);
    seconds.truncate(seconds.trim_end_matches('0').trim_end_matches('.').len());
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Writes times of the virtual clock into objects.
pub(crate) type Stamp<'a> = &'a dyn Fn(Time) -> String;

/// Whether an init container is a sidecar: it starts before the others and goes on beside them.
pub(crate) fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == Some("Always")
}

/// The phase that follows from the containers.
pub(crate) fn phase(pod: &Value, runtime: &PodRuntime) -> &'static str {
    let policy = text(pod, "/spec/restartPolicy").unwrap_or("Always");
    let state = |container: &Value| runtime.containers.get(container_name(container));
    for container in list(pod, "/spec/initContainers") {
        if is_sidecar(container) {
            continue;
        }
        match state(container).map(|container| &container.state) {
            Some(State::Ended(ended)) if ended.code == 0 => {}
            Some(State::Ended(_)) if policy == "Never" => return "Failed",
            _ => return "Pending",
        }
    }
    let mut started = 0;
    let mut ended = 0;
    let mut failed = false;
    let containers = list(pod, "/spec/containers");
    for container in containers {
        let Some(container) = state(container) else { continue };
        match &container.state {
            State::Running { .. } => started += 1,
            State::Ended(end) => {
                started += 1;
                let again = policy == "Always" || (policy == "OnFailure" && end.code != 0);
                if !again || runtime.stopping.is_some() {
                    ended += 1;
                    failed |= end.code != 0;
                }
            }
            State::Waiting { .. } if container.last.is_some() => started += 1,
            State::Waiting { .. } => {}
        }
    }
    if started < containers.len() {
        "Pending"
    } else if ended == containers.len() {
        if failed { "Failed" } else { "Succeeded" }
    } else {
        "Running"
    }
}

/// The whole status. `before` is the status that the object has; conditions keep their times.
pub(crate) fn pod_status(
    pod: &Value,
    runtime: &PodRuntime,
    host: &str,
    now: Time,
    stamp: Stamp<'_>,
) -> Map<String, Value> {
    let mut status = pod.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    let phase = phase(pod, runtime);
    let init = list(pod, "/spec/initContainers");
    let main = list(pod, "/spec/containers");
    let state = |container: &Value| runtime.containers.get(container_name(container));
    let initialized = init.iter().all(|container| {
        state(container).is_some_and(|state| {
            if is_sidecar(container) { state.is_running() } else { state.has_succeeded() }
        })
    });
    let done = matches!(phase, "Succeeded" | "Failed");
    let not_ready: Vec<&str> = main
        .iter()
        .chain(init.iter().filter(|container| is_sidecar(container)))
        .filter(|container| !state(container).is_some_and(|container| container.is_ready(now)))
        .map(container_name)
        .collect();
    let text_now = stamp(now);
    let mut conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let network = if runtime.address.is_some() && !done { "True" } else { "False" };
    set_condition(&mut conditions, "PodReadyToStartContainers", network, "", "", &text_now);
    if initialized {
        set_condition(&mut conditions, "Initialized", "True", "", "", &text_now);
    } else {
        let missing: Vec<&str> = init
            .iter()
            .filter(|container| !state(container).is_some_and(Container::has_succeeded))
            .map(container_name)
            .collect();
        let message = format!("containers with incomplete status: [{}]", missing.join(" "));
        set_condition(
            &mut conditions,
            "Initialized",
            "False",
            "ContainersNotInitialized",
            &message,
            &text_now,
        );
    }
    for kind in ["Ready", "ContainersReady"] {
        if phase == "Succeeded" {
            set_condition(&mut conditions, kind, "False", "PodCompleted", "", &text_now);
        } else if phase == "Failed" {
            set_condition(&mut conditions, kind, "False", "PodFailed", "", &text_now);
        } else if not_ready.is_empty() && initialized {
            set_condition(&mut conditions, kind, "True", "", "", &text_now);
        } else {
            let message = format!("containers with unready status: [{}]", not_ready.join(" "));
            set_condition(&mut conditions, kind, "False", "ContainersNotReady", &message, &text_now);
        }
    }
    if !conditions.iter().any(|condition| text(condition, "/type") == Some("PodScheduled")) {
        set_condition(&mut conditions, "PodScheduled", "True", "", "", &text_now);
    }
    status.insert("conditions".into(), Value::Array(conditions));
    status.insert("phase".into(), phase.into());
    status.insert("hostIP".into(), host.into());
    status.insert("hostIPs".into(), json!([{"ip": host}]));
    status.insert("startTime".into(), stamp(runtime.seen).into());
    if let Some(address) = &runtime.address {
        status.insert("podIP".into(), address.as_str().into());
        status.insert("podIPs".into(), json!([{"ip": address}]));
    }
    status.entry("qosClass").or_insert_with(|| quality(pod).into());
    let statuses = |containers: &[Value], init: bool| -> Value {
        containers.iter().map(|spec| container_status(spec, state(spec), init, now, stamp)).collect()
    };
    if !init.is_empty() {
        status.insert("initContainerStatuses".into(), statuses(init, true));
    }
    status.insert("containerStatuses".into(), statuses(main, false));
    status
}

/// The class of service: `Guaranteed` when every container limits processors and memory and asks for just
/// that, `BestEffort` when none asks for or limits anything.
fn quality(pod: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for container in list(pod, "/spec/initContainers").iter().chain(list(pod, "/spec/containers")) {
        for resource in ["cpu", "memory"] {
            let of = |kind: &str| container.pointer(&format!("/resources/{kind}/{resource}"));
            let (request, limit) = (of("requests"), of("limits"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn container_status(
    spec: &Value,
    container: Option<&Container>,
    init: bool,
    now: Time,
    stamp: Stamp<'_>,
) -> Value {
    let written = text(spec, "/image").unwrap_or_default();
    let Some(container) = container else {
        return json!({
            "name": container_name(spec), "image": written, "imageID": "", "ready": false, "started": false,
            "restartCount": 0, "lastState": {},
            "state": {"waiting": {"reason": "PodInitializing"}},
        });
    };
    let state = match &container.state {
        State::Waiting { reason, message } if message.is_empty() => json!({"waiting": {"reason": reason}}),
        State::Waiting { reason, message } => json!({"waiting": {"reason": reason, "message": message}}),
        State::Running { since, .. } => json!({"running": {"startedAt": stamp(*since)}}),
        State::Ended(ended) => json!({"terminated": terminated(ended, stamp)}),
    };
    let last = container.last.as_ref();
    let last = last.map_or_else(|| json!({}), |ended| json!({"terminated": terminated(ended, stamp)}));
    // An init container that has ended well is ready.
    let ready = container.is_ready(now) || (init && container.has_succeeded());
    let mut status = json!({
        "name": container_name(spec),
        "image": container.image,
        "imageID": container.image_id,
        "ready": ready,
        "started": container.is_running(),
        "restartCount": container.restarts,
        "state": state,
        "lastState": last,
    });
    if !container.id.is_empty()
        && let Some(map) = status.as_object_mut()
    {
        map.insert("containerID".into(), format!("{CONTAINER_ID_PREFIX}{}", container.id).into());
    }
    status
}

fn terminated(ended: &Ended, stamp: Stamp<'_>) -> Value {
    json!({
        "exitCode": ended.code,
        "reason": ended.reason,
        "startedAt": stamp(ended.since),
        "finishedAt": stamp(ended.at),
        "containerID": format!("{CONTAINER_ID_PREFIX}{}", ended.id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_service() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (resources, class) in [
            (json!({}), "BestEffort"),
            (json!({"limits": both}), "Guaranteed"),
            (json!({"limits": both, "requests": both}), "Guaranteed"),
            (json!({"requests": both}), "Burstable"),
            (json!({"limits": {"cpu": "1"}}), "Burstable"),
            (json!({"limits": both, "requests": {"cpu": "500m"}}), "Burstable"),
        ] {
            let pod = json!({"spec": {"containers": [{"name": "a", "resources": resources}]}});
            assert_eq!(quality(&pod), class, "{pod}");
        }
    }

    #[test]
    fn durations_as_go_prints_them() {
        for (millis, text) in [
            (0, "0s"),
            (101, "101ms"),
            (1000, "1s"),
            (1500, "1.5s"),
            (10_000, "10s"),
            (80_000, "1m20s"),
            (300_000, "5m0s"),
            (3_600_000, "1h0m0s"),
            (61_050, "1m1.05s"),
        ] {
            assert_eq!(go_duration(millis), text);
        }
    }
}
