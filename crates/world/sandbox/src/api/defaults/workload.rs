//! Defaults of workloads.

use scantling_api::object;
use serde_json::{Value, json};

use super::{at, fill, fill_in, fill_text, pod};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const TEMPLATE: [&str; 3] = ["spec", "template", "spec"];

pub(super) fn apply(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") => {
            fill(object, &["spec"], "replicas", json!(1));
            pod::spec(object, &TEMPLATE);
        }
        ("", "ReplicationController") => {
            fill(object, &["spec"], "replicas", json!(1));
            if let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned() {
                fill(object, &["metadata"], "labels", labels.clone());
                fill(object, &["spec"], "selector", labels);
            }
            pod::spec(object, &TEMPLATE);
        }
        ("batch", "Job") => job(object, &["spec"]),
        ("batch", "CronJob") => {
            let spec = at(object, &["spec"]);
            fill_text(spec, "concurrencyPolicy", "Allow");
            fill_in(spec, "suspend", json!(false));
            fill_in(spec, "successfulJobsHistoryLimit", json!(3));
            fill_in(spec, "failedJobsHistoryLimit", json!(1));
            pod::spec(object, &["spec", "jobTemplate", "spec", "template", "spec"]);
        }
        ("", "PodTemplate") => pod::spec(object, &["template", "spec"]),
        _ => {}
    }
}

fn deployment(object: &mut Value) {
    let spec = at(object, &["spec"]);
    fill_in(spec, "replicas", json!(1));
    fill_in(spec, "revisionHistoryLimit", json!(10));
    fill_in(spec, "progressDeadlineSeconds", json!(600));
    let strategy = at(object, &["spec", "strategy"]);
    fill_text(strategy, "type", "RollingUpdate");
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let rolling = at(object, &["spec", "strategy", "rollingUpdate"]);
        fill_in(rolling, "maxUnavailable", json!("25%"));
        fill_in(rolling, "maxSurge", json!("25%"));
    }
    pod::spec(object, &TEMPLATE);
}

fn stateful_set(object: &mut Value) {
    let spec = at(object, &["spec"]);
    fill_in(spec, "replicas", json!(1));
    fill_in(spec, "revisionHistoryLimit", json!(10));
    fill_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = at(object, &["spec", "updateStrategy"]);
    fill_text(strategy, "type", "RollingUpdate");
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        fill(object, &["spec", "updateStrategy", "rollingUpdate"], "partition", json!(0));
    }
    let retention = at(object, &["spec", "persistentVolumeClaimRetentionPolicy"]);
    fill_text(retention, "whenDeleted", "Retain");
    fill_text(retention, "whenScaled", "Retain");
    let templates = object.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten().filter(|template| template.is_object()) {
        fill(template, &[], "apiVersion", json!("v1"));
        fill(template, &[], "kind", json!("PersistentVolumeClaim"));
        pod::claim(template);
        fill(template, &["status"], "phase", json!("Pending"));
    }
    pod::spec(object, &TEMPLATE);
}

fn daemon_set(object: &mut Value) {
    // The generation of the template was a field once and is kept as an annotation.
    fill(object, &["metadata", "annotations"], TEMPLATE_GENERATION, json!("1"));
    fill(object, &["spec"], "revisionHistoryLimit", json!(10));
    let strategy = at(object, &["spec", "updateStrategy"]);
    fill_text(strategy, "type", "RollingUpdate");
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let rolling = at(object, &["spec", "updateStrategy", "rollingUpdate"]);
        fill_in(rolling, "maxUnavailable", json!(1));
        fill_in(rolling, "maxSurge", json!(0));
    }
    pod::spec(object, &TEMPLATE);
}

fn job(object: &mut Value, path: &[&str]) {
    let spec = at(object, path);
    let missing = |field: &str| spec.get(field).is_none_or(Value::is_null);
    if missing("completions") && missing("parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    fill_in(spec, "parallelism", json!(1));
    fill_in(spec, "backoffLimit", json!(6));
    fill_text(spec, "completionMode", "NonIndexed");
    fill_in(spec, "suspend", json!(false));
    fill_in(spec, "manualSelector", json!(false));
    fill_in(spec, "podReplacementPolicy", json!("TerminatingOrFailed"));
    pod::spec(object, &TEMPLATE);
}

/// A job that does not choose its own selector gets one made of its uid.
pub(super) fn job_selector(object: &mut Value) {
    if object.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let (uid, name) = (object::uid(object).to_owned(), object::name(object).to_owned());
    let labels = at(object, &["spec", "template", "metadata", "labels"]);
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("job-name", &name),
    ] {
        fill_in(labels, label, json!(value));
    }
    fill(object, &["spec", "selector", "matchLabels"], "batch.kubernetes.io/controller-uid", json!(uid));
    let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    fill(object, &["metadata"], "labels", labels);
}

/// A daemon set's template has a number that grows when the template changes.
pub(super) fn keep_daemon_set(live: &Value, new: &mut Value) {
    let of = |object: &Value| {
        object::annotation(object, TEMPLATE_GENERATION).and_then(|text| text.parse::<i64>().ok())
    };
    let before = of(live).unwrap_or(1);
    let mut defaulted = new.clone();
    daemon_set(&mut defaulted);
    let changed = live.pointer("/spec/template") != defaulted.pointer("/spec/template");
    let number = if changed { before + 1 } else { before };
    at(new, &["metadata", "annotations"]).insert(TEMPLATE_GENERATION.into(), json!(number.to_string()));
}

/// The selector and the labels that the server made stay when an update leaves them out.
pub(super) fn keep_job(live: &Value, new: &mut Value) {
    if let Some(selector) = live.pointer("/spec/selector") {
        fill(new, &["spec"], "selector", selector.clone());
    }
    let labels = object::mapping(live, "/spec/template/metadata/labels").cloned().unwrap_or_default();
    let kept = at(new, &["spec", "template", "metadata", "labels"]);
    for (label, value) in labels {
        if label.starts_with("batch.kubernetes.io/") || label == "controller-uid" || label == "job-name" {
            fill_in(kept, &label, value);
        }
    }
    // Nothing was filled in and nothing was there: leave no empty mapping behind.
    if kept.is_empty() {
        at(new, &["spec", "template", "metadata"]).remove("labels");
    }
}
