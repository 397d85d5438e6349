//! Validation: what a server refuses to store.
//!
//! The basics of `pkg/apis/*/validation` in `k8s.io/kubernetes` v1.35.4, typed by hand for the kinds that matter here:
//! names, labels, required fields, selectors that match their templates, ranges of ports, known words. Not everything
//! that a real server refuses is refused here.

mod pod;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::{KindFacts, object};
use serde_json::{Value, json};

use super::Cause;
use super::names;

/// Longest annotations of one object, all together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;
/// Largest config map or secret, in bytes of its values.
const MAX_DATA: usize = 1024 * 1024;

/// What is wrong with a new object.
pub(super) fn created(facts: &KindFacts, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object::name(object);
    if let Some(rule) = name_rule(facts, name) {
        causes.push(Cause::invalid("metadata.name", &json!(name), rule));
    }
    common(facts, object, &mut causes);
    causes
}

/// What is wrong with a changed object.
pub(super) fn updated(facts: &KindFacts, _live: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    common(facts, new, &mut causes);
    causes
}

/// The rule that a name breaks, if any: most names are DNS subdomains, some kinds are stricter, some freer.
fn name_rule(facts: &KindFacts, name: &str) -> Option<&'static str> {
    const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    const SEGMENT: &str = "may not be '.' or '..' and may not contain '/' or '%'";
    let (fits, rule) = match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "Namespace") => (names::is_dns_label(name), LABEL),
        ("", "Service") => (names::is_dns_1035_label(name), LABEL_1035),
        ("rbac.authorization.k8s.io" | "image.openshift.io", _) => (names::is_path_segment(name), SEGMENT),
        _ => (names::is_dns_subdomain(name), SUBDOMAIN),
    };
    (!fits).then_some(rule)
}

fn common(facts: &KindFacts, object: &Value, causes: &mut Vec<Cause>) {
    metadata(object, causes);
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "Pod") => pod::spec(object.pointer("/spec"), "spec", causes),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workload(facts, object, causes);
        }
        ("batch", "Job") => {
            pod::template(object.pointer("/spec/template"), "spec.template", &["OnFailure", "Never"], causes);
        }
        ("batch", "CronJob") => {
            required_text(object, "spec.schedule", causes);
            let template = object.pointer("/spec/jobTemplate/spec/template");
            pod::template(template, "spec.jobTemplate.spec.template", &["OnFailure", "Never"], causes);
        }
        ("", "Service") => service(object, causes),
        ("", "ConfigMap") => data(object, &["data", "binaryData"], causes),
        ("", "Secret") => {
            data(object, &["data"], causes);
            secret_type(object, causes);
        }
        ("", "PersistentVolumeClaim") => {
            if list(object, "/spec/accessModes").is_empty() {
                causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
            }
            if object.pointer("/spec/resources/requests/storage").is_none() {
                causes.push(Cause::required("spec.resources[storage]", ""));
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            let kinds: &[&str] =
                if facts.gvk.kind == "RoleBinding" { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
            let kind = object::text(object, "/roleRef/kind");
            if !kinds.contains(&kind) {
                causes.push(Cause::unsupported("roleRef.kind", &json!(kind), kinds));
            }
            required_text(object, "roleRef.name", causes);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            causes.extend(super::custom::validate_definition(object));
        }
        ("networking.k8s.io", "Ingress") => ingress(object, causes),
        ("policy", "PodDisruptionBudget")
            if object.pointer("/spec/minAvailable").is_some()
                && object.pointer("/spec/maxUnavailable").is_some() =>
        {
            let spec = object.get("spec").unwrap_or(&Value::Null);
            causes.push(Cause::invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
        }
        ("route.openshift.io", "Route") => required_text(object, "spec.to.name", causes),
        ("storage.k8s.io", "StorageClass") => required_text(object, "provisioner", causes),
        _ => {}
    }
}

fn metadata(object: &Value, causes: &mut Vec<Cause>) {
    for (name, value) in object::mapping(object, "/metadata/labels").into_iter().flatten() {
        label("metadata.labels", name, value, causes);
    }
    let mut size = 0;
    for (name, value) in object::mapping(object, "/metadata/annotations").into_iter().flatten() {
        if !names::is_qualified_name(&name.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &json!(name), "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"));
        }
        size += name.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
    for (index, owner) in list(object, "/metadata/ownerReferences").iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if object::text(owner, &format!("/{field}")).is_empty() {
                let at = format!("metadata.ownerReferences[{index}].{field}");
                causes.push(Cause::invalid(at, &json!(""), "must not be empty"));
            }
        }
    }
    let controllers = list(object, "/metadata/ownerReferences")
        .iter()
        .filter(|owner| owner.get("controller") == Some(&json!(true)));
    if controllers.count() > 1 {
        let owners = object.pointer("/metadata/ownerReferences").unwrap_or(&Value::Null);
        causes.push(Cause::invalid(
            "metadata.ownerReferences",
            owners,
            "Only one reference can have Controller set to true",
        ));
    }
    for name in list(object, "/metadata/finalizers") {
        if !names::is_qualified_name(name.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid("metadata.finalizers", name, "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"));
        }
    }
}

fn label(field: &str, name: &str, value: &Value, causes: &mut Vec<Cause>) {
    if !names::is_qualified_name(name) {
        causes.push(Cause::invalid(field, &json!(name), "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"));
    }
    if !names::is_label_value(value.as_str().unwrap_or_default()) {
        causes.push(Cause::invalid(field, value, "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"));
    }
}

fn workload(facts: &KindFacts, object: &Value, causes: &mut Vec<Cause>) {
    if object.pointer("/spec/replicas").and_then(Value::as_i64).is_some_and(|replicas| replicas < 0) {
        let replicas = object.pointer("/spec/replicas").unwrap_or(&Value::Null);
        causes.push(Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    let selector = object.pointer("/spec/selector").filter(|selector| !selector.is_null());
    match selector {
        None => {
            causes.push(Cause::required("spec.selector", ""));
            mismatch(object, causes);
        }
        Some(selector) => {
            let empty = object::mapping(selector, "/matchLabels").is_none_or(serde_json::Map::is_empty)
                && list(selector, "/matchExpressions").is_empty();
            if empty {
                let detail = format!("empty selector is invalid for {}", facts.gvk.kind.to_lowercase());
                causes.push(Cause::invalid("spec.selector", selector, detail));
            } else if !selects(selector, object.pointer("/spec/template/metadata/labels")) {
                mismatch(object, causes);
            }
        }
    }
    pod::template(object.pointer("/spec/template"), "spec.template", &["Always"], causes);
    let strategy = if facts.gvk.kind == "Deployment" { "strategy" } else { "updateStrategy" };
    let known: &[&str] = match facts.gvk.kind.as_str() {
        "Deployment" => &["Recreate", "RollingUpdate"],
        "ReplicaSet" => return,
        _ => &["OnDelete", "RollingUpdate"],
    };
    let kind = object.pointer(&format!("/spec/{strategy}/type")).unwrap_or(&Value::Null);
    if !known.iter().any(|known| kind == known) {
        causes.push(Cause::unsupported(format!("spec.{strategy}.type"), kind, known));
    } else if kind == "Recreate"
        && object.pointer("/spec/strategy/rollingUpdate").is_some_and(|value| !value.is_null())
    {
        causes.push(Cause::forbidden(
            "spec.strategy.rollingUpdate",
            "may not be specified when strategy `type` is 'Recreate'",
        ));
    }
}

fn mismatch(object: &Value, causes: &mut Vec<Cause>) {
    let labels = object.pointer("/spec/template/metadata/labels").unwrap_or(&Value::Null);
    let detail = "`selector` does not match template `labels`";
    causes.push(Cause::invalid("spec.template.metadata.labels", labels, detail));
}

/// Whether a label selector selects labels.
pub(super) fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
    let mut equal = object::mapping(selector, "/matchLabels").into_iter().flatten();
    equal.all(|(name, value)| label(name).is_some() && label(name) == value.as_str())
        && list(selector, "/matchExpressions").iter().all(|expression| {
            let found = label(object::text(expression, "/key"));
            let among = || list(expression, "/values").iter().any(|value| value.as_str() == found);
            match object::text(expression, "/operator") {
                "In" => found.is_some() && among(),
                "NotIn" => found.is_none() || !among(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

fn service(object: &Value, causes: &mut Vec<Cause>) {
    let kind = object::text(object, "/spec/type");
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let ports = list(object, "/spec/ports");
    let headless = object::text(object, "/spec/clusterIP") == "None";
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if kind == "ExternalName" {
        required_text(object, "spec.externalName", causes);
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        port_number(port.get("port"), &format!("{at}.port"), causes);
        let name = object::text(port, "/name");
        if name.is_empty() && ports.len() > 1 {
            causes.push(Cause::required(format!("{at}.name"), ""));
        } else if !name.is_empty() && !names::is_dns_label(name) {
            causes.push(Cause::invalid(format!("{at}.name"), &json!(name), "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"));
        }
        if !name.is_empty() && !seen.insert(name) {
            causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
        }
        match port.get("targetPort") {
            Some(Value::String(name)) if !names::is_port_name(name) => {
                causes.push(Cause::invalid(
                    format!("{at}.targetPort"),
                    &json!(name),
                    "must contain only alphanumeric characters (a-z, 0-9), and hyphens",
                ));
            }
            Some(number @ Value::Number(_)) => port_number(Some(number), &format!("{at}.targetPort"), causes),
            _ => {}
        }
        protocol(port, &at, causes);
    }
    if !types.contains(&kind) {
        causes.push(Cause::unsupported("spec.type", &json!(kind), &types));
    }
}

fn protocol(port: &Value, at: &str, causes: &mut Vec<Cause>) {
    let known = ["SCTP", "TCP", "UDP"];
    let protocol = object::text(port, "/protocol");
    if !known.contains(&protocol) {
        causes.push(Cause::unsupported(format!("{at}.protocol"), &json!(protocol), &known));
    }
}

fn port_number(number: Option<&Value>, field: &str, causes: &mut Vec<Cause>) {
    if !number.and_then(Value::as_i64).is_some_and(|number| (1..=65_535).contains(&number)) {
        let found = number.unwrap_or(&Value::Null);
        causes.push(Cause::invalid(field, found, "must be between 1 and 65535, inclusive"));
    }
}

fn data(object: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    let mut size = 0;
    for field in fields {
        for (name, value) in object::mapping(object, &format!("/{field}")).into_iter().flatten() {
            if !names::is_config_key(name) {
                causes.push(Cause::invalid(format!("{field}[{name}]"), &json!(name), "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"));
            }
            size += value.as_str().map_or(0, str::len);
        }
    }
    if size > MAX_DATA {
        causes.push(Cause::too_long("", MAX_DATA));
    }
}

/// Secrets of some types must have some keys. The values never stand in a message.
fn secret_type(object: &Value, causes: &mut Vec<Cause>) {
    let key = match object::text(object, "/type") {
        "kubernetes.io/dockerconfigjson" => ".dockerconfigjson",
        "kubernetes.io/dockercfg" => ".dockercfg",
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if object.get("data").and_then(|data| data.get(key)).is_none() {
                    causes.push(Cause::required(format!("data[{key}]"), ""));
                }
            }
            return;
        }
        _ => return,
    };
    match object.get("data").and_then(|data| data.get(key)).and_then(Value::as_str) {
        None => causes.push(Cause::required(format!("data[{key}]"), "")),
        Some(encoded) => {
            let decoded = STANDARD.decode(encoded).unwrap_or_default();
            if let Err(error) = serde_json::from_slice::<Value>(&decoded) {
                // The position in the text is told, the text is not.
                let hidden = json!("<secret contents redacted>");
                causes.push(Cause::invalid(
                    format!("data[{key}]"),
                    &hidden,
                    format!("no JSON at column {}", error.column()),
                ));
            }
        }
    }
}

fn ingress(object: &Value, causes: &mut Vec<Cause>) {
    for (rule_index, rule) in list(object, "/spec/rules").iter().enumerate() {
        for (index, path) in list(rule, "/http/paths").iter().enumerate() {
            let at = format!("spec.rules[{rule_index}].http.paths[{index}].pathType");
            match object::text(path, "/pathType") {
                "" => causes.push(Cause::required(at, "pathType must be specified")),
                "Exact" | "ImplementationSpecific" | "Prefix" => {}
                other => causes.push(Cause::unsupported(
                    at,
                    &json!(other),
                    &["Exact", "ImplementationSpecific", "Prefix"],
                )),
            }
        }
    }
}

fn required_text(object: &Value, field: &str, causes: &mut Vec<Cause>) {
    if object::text(object, &format!("/{}", field.replace('.', "/"))).is_empty() {
        causes.push(Cause::required(field, ""));
    }
}

fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use scantling_api::Kinds;

    use super::*;

    fn fields(group: &str, kind: &str, object: &Value) -> Vec<String> {
        let facts = Kinds::kubernetes().by_kind(group, kind).unwrap();
        created(facts, object).into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn names_and_labels() {
        for (group, kind, name, valid) in [
            ("", "ConfigMap", "a.b-c", true),
            ("", "ConfigMap", "A", false),
            ("", "Namespace", "a.b", false),
            ("rbac.authorization.k8s.io", "Role", "system:a", true),
            ("rbac.authorization.k8s.io", "Role", "a/b", false),
        ] {
            let wrong = fields(group, kind, &json!({"metadata": {"name": name}}));
            assert_eq!(wrong.is_empty(), valid, "{kind} {name}");
        }
        let object = json!({"metadata": {"name": "a", "labels": {"-": "x", "ok": "-"}, "annotations": {"A/b": "", "example.com/B": ""}}});
        assert_eq!(fields("", "ConfigMap", &object), ["metadata.labels", "metadata.labels"]);
    }

    #[test]
    fn workloads() {
        let valid = json!({"metadata": {"name": "a"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
                "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}]}}}});
        assert_eq!(fields("apps", "Deployment", &valid), [""; 0]);
        for (pointer, value, wrong) in [
            ("/spec/replicas", json!(-1), &["spec.replicas"][..]),
            ("/spec/selector", json!(null), &["spec.selector", "spec.template.metadata.labels"][..]),
            ("/spec/selector/matchLabels", json!({}), &["spec.selector"][..]),
            ("/spec/template/metadata/labels", json!({"a": "c"}), &["spec.template.metadata.labels"][..]),
            (
                "/spec/strategy",
                json!({"type": "Recreate", "rollingUpdate": {}}),
                &["spec.strategy.rollingUpdate"],
            ),
            ("/spec/strategy/type", json!("Other"), &["spec.strategy.type"][..]),
            ("/spec/template/spec/restartPolicy", json!("Never"), &["spec.template.spec.restartPolicy"][..]),
            ("/spec/template/spec/containers", json!([]), &["spec.template.spec.containers"][..]),
        ] {
            let mut object = valid.clone();
            object["spec"]["replicas"] = json!(1);
            *object.pointer_mut(pointer).unwrap() = value;
            assert_eq!(fields("apps", "Deployment", &object), wrong, "{pointer}");
        }
    }

    #[test]
    fn services_data_and_secrets() {
        for (group, kind, body, wrong) in [
            (
                "",
                "Service",
                json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}]}}),
                vec![],
            ),
            ("", "Service", json!({"spec": {"type": "ClusterIP"}}), vec!["spec.ports"]),
            ("", "Service", json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}}), vec![]),
            (
                "",
                "Service",
                json!({"spec": {"type": "X", "ports": [{"port": 0, "protocol": "Y"}]}}),
                vec!["spec.ports[0].port", "spec.ports[0].protocol", "spec.type"],
            ),
            ("", "ConfigMap", json!({"data": {"a/b": ""}}), vec!["data[a/b]"]),
            (
                "",
                "Secret",
                json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}),
                vec!["data[tls.key]"],
            ),
        ] {
            let mut object = body;
            object["metadata"] = json!({"name": "a"});
            assert_eq!(fields(group, kind, &object), wrong, "{object}");
        }
    }
}
