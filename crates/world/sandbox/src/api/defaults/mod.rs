//! Defaults: what a server fills in.
//!
//! No schema says them. Typed by hand from `pkg/apis/*/v1/defaults.go` and the `PrepareForCreate` of the registries'
//! `strategy.go` in `k8s.io/kubernetes` v1.35.4, for the kinds that matter here; a recording of a real server can
//! replace them.

mod network;
mod openshift;
mod pod;
mod workload;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::{KindFacts, object};
use serde_json::{Map, Value, json};

use super::ApiServer;
use super::meta::as_mapping;

/// Fills in what an object of a built-in kind leaves out.
pub(super) fn apply(facts: &KindFacts, object: &mut Value) {
    let (group, kind) = (facts.gvk.group.as_str(), facts.gvk.kind.as_str());
    match (group, kind) {
        ("", "Pod") => pod::pod(object),
        ("", "Namespace") => namespace(object),
        ("", "Secret") => secret(object),
        ("", "Service") => network::service(object),
        ("", "PersistentVolumeClaim") => pod::claim(object),
        ("", "PersistentVolume") => {
            fill(object, &["spec"], "volumeMode", json!("Filesystem"));
            fill(object, &["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
            if let Some(path) = object.pointer_mut("/spec/hostPath").filter(|path| path.is_object()) {
                fill(path, &[], "type", json!(""));
            }
        }
        ("", "LimitRange") => limit_range(object),
        ("", "Endpoints") => network::endpoints(object),
        ("networking.k8s.io", "NetworkPolicy") => network::policy(object),
        ("discovery.k8s.io", "EndpointSlice") => network::endpoint_slice(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => role_binding(object),
        ("storage.k8s.io", "StorageClass") => {
            fill(object, &[], "reclaimPolicy", json!("Delete"));
            fill(object, &[], "volumeBindingMode", json!("Immediate"));
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            fill(object, &[], "preemptionPolicy", json!("PreemptLowerPriority"));
        }
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => {
            webhooks(object, kind);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => super::custom::default_definition(object),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            fill(object, &["spec"], "minReplicas", json!(1));
            let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
            fill(object, &["spec"], "metrics", json!([{"type": "Resource", "resource": cpu}]));
        }
        (group, _) if group.ends_with(".openshift.io") => openshift::apply(facts, object),
        _ => workload::apply(group, kind, object),
    }
}

/// What only a new object gets, with the state of the cluster: addresses, selectors made of its uid, first phases.
pub(super) fn of_created(facts: &KindFacts, object: &mut Value, server: &ApiServer) {
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "Pod") => {
            fill(object, &["status"], "phase", json!("Pending"));
            if object
                .pointer("/spec/schedulingGates")
                .and_then(Value::as_array)
                .is_some_and(|gates| !gates.is_empty())
            {
                let condition = json!({
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": null,
                    "lastTransitionTime": null,
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                });
                fill(object, &["status"], "conditions", json!([condition]));
            }
            let class = pod::quality_of_service(object);
            fill(object, &["status"], "qosClass", json!(class));
        }
        ("", "Namespace") => {
            fill(object, &["spec"], "finalizers", json!(["kubernetes"]));
            fill(object, &["status"], "phase", json!("Active"));
        }
        ("", "PersistentVolumeClaim") => fill(object, &["status"], "phase", json!("Pending")),
        ("", "PersistentVolume") => {
            let created = object.pointer("/metadata/creationTimestamp").cloned().unwrap_or_default();
            fill(object, &["status"], "phase", json!("Pending"));
            fill(object, &["status"], "lastPhaseTransitionTime", created);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => super::custom::status_of_created(object),
        ("", "Service") => {
            network::allocate(object, server);
            fill(object, &["status"], "loadBalancer", json!({}));
        }
        ("batch", "Job") => workload::job_selector(object),
        _ => {}
    }
}

/// What an update that leaves it out does not take away: values that the server allocated.
pub(super) fn keep(facts: &KindFacts, live: &Value, new: &mut Value, subresource: Option<&str>) {
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "Service") => network::keep(live, new),
        ("batch", "Job") => workload::keep_job(live, new),
        ("apps", "DaemonSet") if subresource.is_none() => workload::keep_daemon_set(live, new),
        ("", "PersistentVolumeClaim") => {
            for field in ["volumeName", "storageClassName"] {
                if let Some(value) = live.pointer("/spec").and_then(|spec| spec.get(field)) {
                    fill(new, &["spec"], field, value.clone());
                }
            }
        }
        // Only the `finalize` subresource changes them.
        ("", "Namespace") if subresource != Some("finalize") => {
            let finalizers = live.pointer("/spec/finalizers").cloned();
            let spec = at(new, &["spec"]);
            match finalizers {
                Some(finalizers) => spec.insert("finalizers".into(), finalizers),
                None => spec.remove("finalizers"),
            };
        }
        _ => {}
    }
}

/// The mapping below some fields, made where it is missing.
fn at<'v>(value: &'v mut Value, path: &[&str]) -> &'v mut Map<String, Value> {
    let mut current = value;
    for name in path {
        current = as_mapping(current).entry(*name).or_insert(Value::Null);
    }
    as_mapping(current)
}

/// Sets a field where it is missing or null.
fn fill(value: &mut Value, path: &[&str], field: &str, default: Value) {
    fill_in(at(value, path), field, default);
}

/// Sets a field of a mapping where it is missing or null.
fn fill_in(fields: &mut Map<String, Value>, field: &str, default: Value) {
    if fields.get(field).is_none_or(Value::is_null) {
        fields.insert(field.to_owned(), default);
    }
}

/// As `fill`, and an empty text counts as missing.
fn fill_text(fields: &mut Map<String, Value>, field: &str, default: &str) {
    if fields.get(field).is_none_or(|value| value.is_null() || value == "") {
        fields.insert(field.to_owned(), json!(default));
    }
}

/// The mappings in a list.
fn each<'v>(value: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Map<String, Value>> {
    let list = value.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn namespace(object: &mut Value) {
    let name = object::name(object).to_owned();
    if !name.is_empty() {
        let labels = at(object, &["metadata", "labels"]);
        labels.insert("kubernetes.io/metadata.name".into(), json!(name));
    }
}

fn secret(object: &mut Value) {
    let fields = as_mapping(object);
    fill_text(fields, "type", "Opaque");
    if let Some(Value::Object(texts)) = fields.remove("stringData")
        && !texts.is_empty()
    {
        let data = at(object, &["data"]);
        for (name, text) in texts {
            let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
            data.insert(name, json!(STANDARD.encode(text)));
        }
    }
}

/// Of containers, the largest is the default, and that the default request.
fn limit_range(object: &mut Value) {
    for item in each(object, "/spec/limits") {
        if item.get("type") != Some(&json!("Container")) {
            continue;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let Some(amounts) = item.get(from).and_then(Value::as_object).cloned() else { continue };
            let filled = as_mapping(item.entry(to).or_insert(Value::Null));
            for (resource, amount) in amounts {
                filled.entry(resource).or_insert(amount);
            }
        }
    }
}

fn role_binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    fill_text(at(object, &["roleRef"]), "apiGroup", GROUP);
    for subject in each(object, "/subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            fill_text(subject, "apiGroup", GROUP);
        }
    }
}

fn webhooks(object: &mut Value, kind: &str) {
    for hook in each(object, "/webhooks") {
        fill_in(hook, "failurePolicy", json!("Fail"));
        fill_in(hook, "matchPolicy", json!("Equivalent"));
        fill_in(hook, "namespaceSelector", json!({}));
        fill_in(hook, "objectSelector", json!({}));
        fill_in(hook, "timeoutSeconds", json!(10));
        if kind == "MutatingWebhookConfiguration" {
            fill_in(hook, "reinvocationPolicy", json!("Never"));
        }
        let rules = hook.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            fill_in(rule, "scope", json!("*"));
        }
        let service = hook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            fill_in(service, "port", json!(443));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use scantling_api::Kinds;

    use super::*;

    fn defaulted(group: &str, kind: &str, mut object: Value) -> Value {
        apply(Kinds::kubernetes().by_kind(group, kind).unwrap(), &mut object);
        object
    }

    #[test]
    fn defaults_fill_what_is_missing_and_nothing_else() {
        for (group, kind, object, pointer, expected) in [
            (
                "",
                "Secret",
                json!({"stringData": {"a": "b"}, "data": {"a": "eA==", "c": "eQ=="}}),
                "",
                json!({"type": "Opaque", "data": {"a": "Yg==", "c": "eQ=="}}),
            ),
            (
                "",
                "Namespace",
                json!({"metadata": {"name": "n"}}),
                "/metadata/labels",
                json!({"kubernetes.io/metadata.name": "n"}),
            ),
            (
                "",
                "Pod",
                json!({"spec": {"containers": [{"name": "a", "image": "x:1"}]}}),
                "/spec/containers/0/imagePullPolicy",
                json!("IfNotPresent"),
            ),
            (
                "",
                "Pod",
                json!({"spec": {"containers": [{"name": "a", "image": "x"}]}}),
                "/spec/containers/0/imagePullPolicy",
                json!("Always"),
            ),
            (
                "",
                "Pod",
                json!({"spec": {"containers": [{"name": "a", "image": "x", "imagePullPolicy": "Never"}]}}),
                "/spec/containers/0/imagePullPolicy",
                json!("Never"),
            ),
            (
                "",
                "Pod",
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "0.5"}}}]}}),
                "/spec/containers/0/resources/requests",
                json!({"cpu": "0.5", "memory": "1Gi"}),
            ),
            (
                "",
                "Pod",
                json!({"spec": {"volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]}}),
                "/spec/volumes",
                json!([{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}}]),
            ),
            (
                "apps",
                "Deployment",
                json!({"spec": {"strategy": {"type": "Recreate"}}}),
                "/spec/strategy",
                json!({"type": "Recreate"}),
            ),
            ("apps", "Deployment", json!({"spec": {"replicas": 0}}), "/spec/replicas", json!(0)),
            (
                "apps",
                "Deployment",
                json!({}),
                "/spec/strategy",
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}),
            ),
            (
                "apps",
                "StatefulSet",
                json!({}),
                "/spec/updateStrategy",
                json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
            ),
            ("batch", "Job", json!({"spec": {"parallelism": 3}}), "/spec/completions", Value::Null),
            ("batch", "CronJob", json!({}), "/spec/concurrencyPolicy", json!("Allow")),
            (
                "",
                "Service",
                json!({"spec": {"ports": [{"port": 80}]}}),
                "/spec/ports/0",
                json!({"port": 80, "protocol": "TCP", "targetPort": 80}),
            ),
            (
                "networking.k8s.io",
                "NetworkPolicy",
                json!({"spec": {"egress": [{}]}}),
                "/spec/policyTypes",
                json!(["Ingress", "Egress"]),
            ),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                json!({"subjects": [{"kind": "ServiceAccount"}, {"kind": "User"}]}),
                "/subjects",
                json!([{"kind": "ServiceAccount"}, {"kind": "User", "apiGroup": "rbac.authorization.k8s.io"}]),
            ),
        ] {
            let result = defaulted(group, kind, object.clone());
            assert_eq!(result.pointer(pointer).unwrap_or(&Value::Null), &expected, "{kind} {object}");
            assert_eq!(defaulted(group, kind, result.clone()), result, "{kind}: defaults are stable");
        }
    }

    #[test]
    fn odd_shapes_are_survived() {
        for facts in Kinds::kubernetes().iter().chain(Kinds::openshift().iter()) {
            for object in [
                json!(null),
                json!({"spec": []}),
                json!({"spec": {"template": 1, "ports": [3], "containers": {}}}),
            ] {
                let mut object = object;
                apply(facts, &mut object);
                assert!(object.is_object() || object.is_null());
            }
        }
    }
}
