//! What an update may not change.
//!
//! Typed by hand from the `Validate*Update` functions of `pkg/apis/*/validation` in `k8s.io/kubernetes` v1.35.4, for the
//! kinds that matter here; wording as there.

use scantling_api::{KindFacts, object};
use serde_json::{Value, json};

use super::Cause;

const IMMUTABLE: &str = "field is immutable";

/// The changes that are refused.
pub(super) fn violations(
    facts: &KindFacts,
    live: &Value,
    new: &Value,
    subresource: Option<&str>,
) -> Vec<Cause> {
    let mut check = Check { live, new, causes: Vec::new() };
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet") => check.same("spec.selector"),
        ("apps", "StatefulSet") => check.stateful_set(),
        ("batch", "Job") => {
            check.same("spec.completionMode");
            check.same("spec.selector");
            check.job_template();
            if check.live.pointer("/spec/completionMode") != Some(&json!("Indexed")) {
                check.same("spec.completions");
            }
        }
        ("", "ConfigMap") => check.immutable_data(&["data", "binaryData"]),
        ("", "Secret") => {
            check.same("type");
            check.immutable_data(&["data"]);
        }
        ("", "PersistentVolumeClaim") => check.claim(),
        ("", "Service") => check.service(),
        ("", "Pod") if subresource.is_none() => check.pod(),
        ("storage.k8s.io", "StorageClass") => {
            for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                check.same(field);
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => check.role_reference(),
        ("scheduling.k8s.io", "PriorityClass") => {
            check.same("value");
            check.same("preemptionPolicy");
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            for field in ["spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"] {
                check.same(field);
            }
        }
        _ => {}
    }
    check.causes
}

struct Check<'v> {
    live: &'v Value,
    new: &'v Value,
    causes: Vec<Cause>,
}

impl Check<'_> {
    fn same(&mut self, field: &str) {
        let pointer = format!("/{}", field.replace('.', "/"));
        let (live, new) = (self.live.pointer(&pointer), self.new.pointer(&pointer));
        if live != new {
            self.causes.push(Cause::invalid(field, new.unwrap_or(&Value::Null), IMMUTABLE));
        }
    }

    /// Only a few fields of a stateful set may change.
    fn stateful_set(&mut self) {
        const MUTABLE: [&str; 7] = [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ];
        let fixed = |object: &Value| {
            let mut spec = object.get("spec").cloned().unwrap_or_default();
            if let Some(fields) = spec.as_object_mut() {
                fields.retain(|name, _| !MUTABLE.contains(&name.as_str()));
            }
            spec
        };
        if fixed(self.live) != fixed(self.new) {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
            self.causes.push(Cause::forbidden("spec", detail));
        }
    }

    /// The template of a job is fixed, but for what the scheduling of a suspended one may change.
    fn job_template(&mut self) {
        let suspended = self.live.pointer("/spec/suspend") == Some(&json!(true));
        let fixed = |object: &Value| {
            let mut template = object.pointer("/spec/template").cloned().unwrap_or_default();
            if suspended {
                if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.retain(|name, _| {
                        !matches!(
                            name.as_str(),
                            "affinity" | "nodeSelector" | "tolerations" | "schedulingGates"
                        )
                    });
                }
                if let Some(fields) = template.as_object_mut() {
                    fields.remove("metadata");
                }
            }
            template
        };
        let new = fixed(self.new);
        if fixed(self.live) != new {
            self.causes.push(Cause::invalid("spec.template", &new, IMMUTABLE));
        }
    }

    fn immutable_data(&mut self, fields: &[&str]) {
        if self.live.get("immutable") != Some(&json!(true)) {
            return;
        }
        let detail = format!("{IMMUTABLE} when `immutable` is set");
        if self.new.get("immutable") != Some(&json!(true)) {
            self.causes.push(Cause::forbidden("immutable", &detail));
        }
        for field in fields {
            if self.live.get(*field) != self.new.get(*field) {
                self.causes.push(Cause::forbidden(*field, &detail));
            }
        }
    }

    /// A claim's wishes are fixed once it is made, but for more room in a bound one.
    fn claim(&mut self) {
        let fixed = |object: &Value| {
            let mut spec = object.get("spec").cloned().unwrap_or_default();
            if let Some(fields) = spec.as_object_mut() {
                fields.remove("resources");
                fields.remove("volumeAttributesClassName");
                if object::text(self.live, "/spec/volumeName").is_empty() {
                    fields.remove("volumeName");
                }
            }
            spec
        };
        let resources = |object: &Value| object.pointer("/spec/resources").cloned();
        let bound = object::text(self.live, "/status/phase") == "Bound";
        if fixed(self.live) != fixed(self.new) || !bound && resources(self.live) != resources(self.new) {
            let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
            self.causes.push(Cause::forbidden("spec", detail));
        }
    }

    fn service(&mut self) {
        let kind = |object: &Value| object::text(object, "/spec/type").to_owned();
        if kind(self.live) != "ExternalName" && kind(self.new) != "ExternalName" {
            let (live, new) = (self.live.pointer("/spec/clusterIP"), self.new.pointer("/spec/clusterIP"));
            let had = live.and_then(Value::as_str).is_some_and(|address| !address.is_empty());
            if had && live != new {
                self.causes.push(Cause::invalid(
                    "spec.clusterIPs[0]",
                    new.unwrap_or(&Value::Null),
                    "may not change once set",
                ));
            }
        }
    }

    /// Of a pod's spec only images, deadlines and additional tolerations may change.
    fn pod(&mut self) {
        let live = self.live.pointer("/spec").cloned().unwrap_or_default();
        let mut new = self.new.pointer("/spec").cloned().unwrap_or_default();
        for list in ["containers", "initContainers"] {
            let before = live.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
            let after = new.get_mut(list).and_then(Value::as_array_mut);
            for (container, before) in after.into_iter().flatten().zip(&before) {
                if object::text(container, "/image").is_empty() {
                    continue;
                }
                if let (Some(fields), Some(image)) = (container.as_object_mut(), before.get("image")) {
                    fields.insert("image".into(), image.clone());
                }
            }
        }
        let additions = {
            let list =
                |spec: &Value| spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
            let after = list(&new);
            list(&live).iter().all(|toleration| after.contains(toleration))
        };
        if let Some(fields) = new.as_object_mut() {
            for field in ["activeDeadlineSeconds", "terminationGracePeriodSeconds"]
                .into_iter()
                .chain(additions.then_some("tolerations"))
            {
                match live.get(field) {
                    Some(value) => fields.insert(field.into(), value.clone()),
                    None => fields.remove(field),
                };
            }
            if !live.get("schedulingGates").is_none_or(Value::is_null) {
                fields.insert("schedulingGates".into(), live["schedulingGates"].clone());
            }
        }
        if live != new {
            let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
            self.causes.push(Cause::forbidden("spec", detail));
        }
    }

    fn role_reference(&mut self) {
        let (live, new) = (self.live.get("roleRef"), self.new.get("roleRef"));
        if live != new {
            self.causes.push(Cause::invalid("roleRef", new.unwrap_or(&Value::Null), "cannot change roleRef"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use scantling_api::Kinds;

    use super::*;

    #[allow(clippy::too_many_lines)] // A table of cases.
    #[test]
    fn fixed_fields_are_fixed_and_others_are_not() {
        for (group, kind, live, new, fields) in [
            (
                "apps",
                "Deployment",
                json!({"spec": {"selector": {"a": 1}}}),
                json!({"spec": {"selector": {"a": 2}}}),
                vec!["spec.selector"],
            ),
            (
                "apps",
                "Deployment",
                json!({"spec": {"replicas": 1}}),
                json!({"spec": {"replicas": 2}}),
                vec![],
            ),
            (
                "apps",
                "StatefulSet",
                json!({"spec": {"serviceName": "a"}}),
                json!({"spec": {"serviceName": "b"}}),
                vec!["spec"],
            ),
            (
                "apps",
                "StatefulSet",
                json!({"spec": {"podManagementPolicy": "Parallel"}}),
                json!({"spec": {"podManagementPolicy": "OrderedReady"}}),
                vec!["spec"],
            ),
            (
                "apps",
                "StatefulSet",
                json!({"spec": {"template": 1}}),
                json!({"spec": {"template": 2}}),
                vec![],
            ),
            (
                "batch",
                "Job",
                json!({"spec": {"template": {"spec": 1}}}),
                json!({"spec": {"template": {"spec": 2}}}),
                vec!["spec.template"],
            ),
            (
                "batch",
                "Job",
                json!({"spec": {"parallelism": 1}}),
                json!({"spec": {"parallelism": 2}}),
                vec![],
            ),
            ("", "ConfigMap", json!({"data": {"a": "1"}}), json!({"data": {"a": "2"}}), vec![]),
            (
                "",
                "ConfigMap",
                json!({"immutable": true, "data": {"a": "1"}}),
                json!({"immutable": true, "data": {"a": "2"}}),
                vec!["data"],
            ),
            ("", "Secret", json!({"type": "Opaque"}), json!({"type": "x"}), vec!["type"]),
            (
                "",
                "PersistentVolumeClaim",
                json!({"spec": {"storageClassName": "a"}}),
                json!({"spec": {"storageClassName": "b"}}),
                vec!["spec"],
            ),
            ("", "PersistentVolumeClaim", json!({"spec": {}}), json!({"spec": {"volumeName": "v"}}), vec![]),
            (
                "",
                "PersistentVolumeClaim",
                json!({"spec": {"resources": 1}, "status": {"phase": "Bound"}}),
                json!({"spec": {"resources": 2}}),
                vec![],
            ),
            (
                "",
                "Service",
                json!({"spec": {"clusterIP": "10.96.0.2"}}),
                json!({"spec": {"clusterIP": "10.96.0.3"}}),
                vec!["spec.clusterIPs[0]"],
            ),
            (
                "",
                "Pod",
                json!({"spec": {"containers": [{"image": "a"}], "tolerations": [1]}}),
                json!({"spec": {"containers": [{"image": "b"}], "tolerations": [1, 2]}}),
                vec![],
            ),
            (
                "",
                "Pod",
                json!({"spec": {"containers": [{"image": "a", "env": 1}]}}),
                json!({"spec": {"containers": [{"image": "a", "env": 2}]}}),
                vec!["spec"],
            ),
            ("", "Pod", json!({"spec": {"nodeName": "a"}}), json!({"spec": {"nodeName": "b"}}), vec!["spec"]),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                json!({"roleRef": {"name": "a"}}),
                json!({"roleRef": {"name": "b"}}),
                vec!["roleRef"],
            ),
        ] {
            let facts = Kinds::kubernetes().by_kind(group, kind).unwrap();
            let found: Vec<String> =
                violations(facts, &live, &new, None).into_iter().map(|cause| cause.field).collect();
            assert_eq!(found, fields, "{kind} {live} {new}");
            assert_eq!(violations(facts, &live, &live, None), []);
        }
    }
}
