//! Rows of workloads, nodes, namespaces and what configures them.

use scantling_api::object;
use serde_json::{Value, json};

use super::{
    AGE, Cells, Column, NAME, ago, containers, count, human_duration, items, labels, number, plain_text, pod,
    selector, since, text_or,
};

const CONTAINERS: Column = Column("Containers", "string", 1);
const IMAGES: Column = Column("Images", "string", 1);
const SELECTOR: Column = Column("Selector", "string", 1);

#[allow(clippy::too_many_lines)] // A table: one entry for each kind.
pub(super) fn columns(group: &str, kind: &str) -> Option<(&'static [Column], Cells)> {
    let found: (&'static [Column], Cells) = match (group, kind) {
        ("", "Pod") => (
            &[
                NAME,
                Column("Ready", "string", 0),
                Column("Status", "string", 0),
                Column("Restarts", "string", 0),
                AGE,
                Column("IP", "string", 1),
                Column("Node", "string", 1),
                Column("Nominated Node", "string", 1),
                Column("Readiness Gates", "string", 1),
            ],
            pod::cells,
        ),
        ("apps", "Deployment") => (
            &[
                NAME,
                Column("Ready", "string", 0),
                Column("Up-to-date", "string", 0),
                Column("Available", "string", 0),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            deployment,
        ),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => (
            &[
                NAME,
                Column("Desired", "integer", 0),
                Column("Current", "integer", 0),
                Column("Ready", "integer", 0),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            replica_set,
        ),
        ("apps", "StatefulSet") => {
            (&[NAME, Column("Ready", "string", 0), AGE, CONTAINERS, IMAGES], stateful_set)
        }
        ("apps", "DaemonSet") => (
            &[
                NAME,
                Column("Desired", "integer", 0),
                Column("Current", "integer", 0),
                Column("Ready", "integer", 0),
                Column("Up-to-date", "integer", 0),
                Column("Available", "integer", 0),
                Column("Node Selector", "string", 0),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            daemon_set,
        ),
        ("batch", "Job") => (
            &[
                NAME,
                Column("Status", "string", 0),
                Column("Completions", "string", 0),
                Column("Duration", "string", 0),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            job,
        ),
        ("batch", "CronJob") => (
            &[
                NAME,
                Column("Schedule", "string", 0),
                Column("Timezone", "string", 0),
                Column("Suspend", "boolean", 0),
                Column("Active", "integer", 0),
                Column("Last Schedule", "string", 0),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            cron_job,
        ),
        ("apps", "ControllerRevision") => (
            &[NAME, Column("Controller", "string", 0), Column("Revision", "string", 0), AGE],
            controller_revision,
        ),
        ("autoscaling", "HorizontalPodAutoscaler") => (
            &[
                NAME,
                Column("Reference", "string", 0),
                Column("Targets", "string", 0),
                Column("MinPods", "string", 0),
                Column("MaxPods", "string", 0),
                Column("Replicas", "string", 0),
                AGE,
            ],
            autoscaler,
        ),
        ("policy", "PodDisruptionBudget") => (
            &[
                NAME,
                Column("Min Available", "string", 0),
                Column("Max Unavailable", "string", 0),
                Column("Allowed Disruptions", "integer", 0),
                AGE,
            ],
            disruption_budget,
        ),
        ("", "Node") => (
            &[
                NAME,
                Column("Status", "string", 0),
                Column("Roles", "string", 0),
                AGE,
                Column("Version", "string", 0),
                Column("Internal-IP", "string", 1),
                Column("External-IP", "string", 1),
                Column("OS-Image", "string", 1),
                Column("Kernel-Version", "string", 1),
                Column("Container-Runtime", "string", 1),
            ],
            node,
        ),
        ("", "Namespace") => (&[NAME, Column("Status", "string", 0), AGE], namespace),
        ("", "ConfigMap") => (&[NAME, Column("Data", "string", 0), AGE], config_map),
        ("", "Secret") => (&[NAME, Column("Type", "string", 0), Column("Data", "string", 0), AGE], secret),
        ("", "ServiceAccount") => {
            (&[NAME, AGE], |object, now| vec![json!(object::name(object)), since(object, now)])
        }
        ("" | "events.k8s.io", "Event") => (
            &[
                Column("Last Seen", "string", 0),
                Column("Type", "string", 0),
                Column("Reason", "string", 0),
                Column("Object", "string", 0),
                Column("Subobject", "string", 1),
                Column("Source", "string", 1),
                Column("Message", "string", 0),
                Column("First Seen", "string", 1),
                Column("Count", "string", 1),
                Column("Name", "string", 1),
            ],
            event,
        ),
        ("scheduling.k8s.io", "PriorityClass") => (
            &[
                NAME,
                Column("Value", "integer", 0),
                Column("Global-Default", "boolean", 0),
                AGE,
                Column("PreemptionPolicy", "string", 0),
            ],
            priority_class,
        ),
        ("coordination.k8s.io", "Lease") => (&[NAME, Column("Holder", "string", 0), AGE], |lease, now| {
            vec![
                json!(object::name(lease)),
                json!(object::text(lease, "/spec/holderIdentity")),
                since(lease, now),
            ]
        }),
        _ => return None,
    };
    Some(found)
}

fn template(workload: &Value) -> [Value; 2] {
    containers(workload.pointer("/spec/template/spec"))
}

fn deployment(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    let ready = format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    vec![
        json!(object::name(object)),
        json!(ready),
        json!(number(object, "/status/updatedReplicas")),
        json!(number(object, "/status/availableReplicas")),
        since(object, now),
        names,
        images,
        selector(object.pointer("/spec/selector")),
    ]
}

fn replica_set(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    let wanted = object.pointer("/spec/selector");
    let selector = if object::text(object, "/kind") == "ReplicationController" {
        labels(wanted)
    } else {
        selector(wanted)
    };
    vec![
        json!(object::name(object)),
        json!(number(object, "/spec/replicas")),
        json!(number(object, "/status/replicas")),
        json!(number(object, "/status/readyReplicas")),
        since(object, now),
        names,
        images,
        selector,
    ]
}

fn stateful_set(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    let ready = format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    vec![json!(object::name(object)), json!(ready), since(object, now), names, images]
}

fn daemon_set(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    let mut cells = vec![json!(object::name(object))];
    cells.extend(
        [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ]
        .map(|field| json!(number(object, &format!("/status/{field}")))),
    );
    cells.push(labels(object.pointer("/spec/template/spec/nodeSelector")));
    cells.extend([since(object, now), names, images, selector(object.pointer("/spec/selector"))]);
    cells
}

fn job(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    let succeeded = number(object, "/status/succeeded");
    let parallelism = number(object, "/spec/parallelism");
    let completions = match object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let time = |pointer: &str| object::text(object, pointer).parse::<jiff::Timestamp>().ok();
    let duration = match (time("/status/startTime"), time("/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => human_duration(end.unwrap_or(now).duration_since(start).as_secs()),
    };
    let has = |kind: &str| {
        items(object, "/status/conditions").iter().any(|condition| {
            object::text(condition, "/type") == kind && object::text(condition, "/status") == "True"
        })
    };
    let deleting = !object::text(object, "/metadata/deletionTimestamp").is_empty();
    let status = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if deleting {
        "Terminating"
    } else {
        let rest = [
            ("Suspended", "Suspended"),
            ("FailureTarget", "FailureTarget"),
            ("SuccessCriteriaMet", "SuccessCriteriaMet"),
        ];
        rest.into_iter().find(|(kind, _)| has(kind)).map_or("Running", |(_, status)| status)
    };
    vec![
        json!(object::name(object)),
        json!(status),
        json!(completions),
        json!(duration),
        since(object, now),
        names,
        images,
        selector(object.pointer("/spec/selector")),
    ]
}

fn cron_job(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let [names, images] = containers(object.pointer("/spec/jobTemplate/spec/template/spec"));
    let last = object::text(object, "/status/lastScheduleTime");
    let suspend = match object.pointer("/spec/suspend") {
        Some(Value::Bool(true)) => "True",
        Some(Value::Bool(false)) => "False",
        _ => "<unset>",
    };
    vec![
        json!(object::name(object)),
        json!(object::text(object, "/spec/schedule")),
        json!(text_or(object, "/spec/timeZone", "<none>")),
        json!(suspend),
        json!(items(object, "/status/active").len()),
        json!(if last.is_empty() { "<none>".to_owned() } else { ago(last, now) }),
        since(object, now),
        names,
        images,
        selector(object.pointer("/spec/jobTemplate/spec/selector")),
    ]
}

fn controller_revision(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let controller = match object::controller(object) {
        Some(owner) if owner.gvk.group.is_empty() => {
            format!("{}/{}", owner.gvk.kind.to_lowercase(), owner.name)
        }
        Some(owner) => format!("{}.{}/{}", owner.gvk.kind.to_lowercase(), owner.gvk.group, owner.name),
        None => "<none>".to_owned(),
    };
    vec![
        json!(object::name(object)),
        json!(controller),
        json!(number(object, "/revision")),
        since(object, now),
    ]
}

fn autoscaler(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    /// Metrics that are named before the rest is only counted.
    const MAX_METRICS: usize = 2;
    let mut targets: Vec<String> = items(object, "/spec/metrics")
        .iter()
        .map(|metric| match metric.pointer("/resource/target/averageUtilization") {
            // Nothing here measures, so what is found is never known.
            Some(percent) => format!("{}: <unknown>/{percent}%", object::text(metric, "/resource/name")),
            None => "<unknown>".to_owned(),
        })
        .collect();
    if let Some(percent) = object.pointer("/spec/targetCPUUtilizationPercentage") {
        targets.push(format!("cpu: <unknown>/{percent}%"));
    }
    let shown = match targets.get(..MAX_METRICS) {
        Some(first) if targets.len() > MAX_METRICS => {
            format!("{} + {} more...", first.join(", "), targets.len() - MAX_METRICS)
        }
        _ if targets.is_empty() => "<none>".to_owned(),
        _ => targets.join(", "),
    };
    let reference = object.pointer("/spec/scaleTargetRef").unwrap_or(&Value::Null);
    vec![
        json!(object::name(object)),
        json!(format!("{}/{}", object::text(reference, "/kind"), object::text(reference, "/name"))),
        json!(shown),
        json!(object.pointer("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), plain_text)),
        json!(number(object, "/spec/maxReplicas")),
        json!(number(object, "/status/currentReplicas")),
        since(object, now),
    ]
}

fn disruption_budget(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let limit = |pointer: &str| json!(object.pointer(pointer).map_or_else(|| "N/A".to_owned(), plain_text));
    vec![
        json!(object::name(object)),
        limit("/spec/minAvailable"),
        limit("/spec/maxUnavailable"),
        json!(number(object, "/status/disruptionsAllowed")),
        since(object, now),
    ]
}

fn node(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    /// Labels `node-role.kubernetes.io/ROLE` name the roles; so does the value of the older label.
    const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
    let ready =
        items(object, "/status/conditions").iter().find(|entry| object::text(entry, "/type") == "Ready");
    let mut status = match ready.map(|entry| object::text(entry, "/status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if object.pointer("/spec/unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = object::labels(object)
        .filter_map(|(name, value)| match name.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None => (name == "kubernetes.io/role").then_some(value),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let address = |kind: &str| {
        let found =
            items(object, "/status/addresses").iter().find(|entry| object::text(entry, "/type") == kind);
        json!(found.map_or("<none>", |entry| object::text(entry, "/address")))
    };
    vec![
        json!(object::name(object)),
        json!(status),
        json!(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }),
        since(object, now),
        json!(object::text(object, "/status/nodeInfo/kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(text_or(object, "/status/nodeInfo/osImage", "<unknown>")),
        json!(text_or(object, "/status/nodeInfo/kernelVersion", "<unknown>")),
        json!(text_or(object, "/status/nodeInfo/containerRuntimeVersion", "<unknown>")),
    ]
}

fn namespace(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    vec![json!(object::name(object)), json!(object::text(object, "/status/phase")), since(object, now)]
}

fn config_map(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let entries = count(object, "/data") + count(object, "/binaryData");
    vec![json!(object::name(object)), json!(entries), since(object, now)]
}

fn secret(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let entries = count(object, "/data");
    vec![
        json!(object::name(object)),
        json!(object::text(object, "/type")),
        json!(entries),
        since(object, now),
    ]
}

fn event(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    // The two groups have other names for the same fields.
    let either = |old: &str, new: &str| text_or(object, old, object::text(object, new)).to_owned();
    let first = text_or(
        object,
        "/firstTimestamp",
        text_or(object, "/deprecatedFirstTimestamp", object::text(object, "/eventTime")),
    );
    let mut last = text_or(object, "/lastTimestamp", text_or(object, "/deprecatedLastTimestamp", first));
    let mut times = number(object, "/count").max(number(object, "/deprecatedCount")).max(1);
    if object.get("series").is_some_and(Value::is_object) {
        last = object::text(object, "/series/lastObservedTime");
        times = number(object, "/series/count");
    }
    let kind = either("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let about = match either("/involvedObject/name", "/regarding/name").as_str() {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let reporting = either("/reportingComponent", "/reportingController");
    let component =
        text_or(object, "/source/component", text_or(object, "/deprecatedSource/component", &reporting));
    let source = match either("/source/host", "/reportingInstance").as_str() {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(ago(last, now)),
        json!(object::text(object, "/type")),
        json!(object::text(object, "/reason")),
        json!(about),
        json!(either("/involvedObject/fieldPath", "/regarding/fieldPath")),
        json!(source),
        json!(either("/message", "/note").trim()),
        json!(ago(first, now)),
        json!(times),
        json!(object::name(object)),
    ]
}

fn priority_class(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    vec![
        json!(object::name(object)),
        json!(number(object, "/value")),
        json!(object.get("globalDefault") == Some(&json!(true))),
        since(object, now),
        json!(object::text(object, "/preemptionPolicy")),
    ]
}
