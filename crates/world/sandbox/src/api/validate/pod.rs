//! Validation of pods and their templates.

use std::collections::BTreeSet;

use scantling_api::object::{self, ContainerKind};
use serde_json::{Value, json};

use super::super::Cause;
use super::super::names;
use super::{list, port_number, protocol};

/// A pod template: its labels, its spec, and the restart policies that its owner allows.
pub(super) fn template(template: Option<&Value>, at: &str, policies: &[&str], causes: &mut Vec<Cause>) {
    for (name, value) in
        template.and_then(|template| object::mapping(template, "/metadata/labels")).into_iter().flatten()
    {
        super::label(&format!("{at}.labels"), name, value, causes);
    }
    let pod = template.and_then(|template| template.get("spec"));
    spec(pod, &format!("{at}.spec"), causes);
    let policy = pod.map_or("", |pod| object::text(pod, "/restartPolicy"));
    if policy == "Always" && !policies.contains(&policy) {
        // `Always` is what a template gets that says nothing.
        let names: Vec<String> = policies.iter().map(|name| format!("\"{name}\"")).collect();
        let detail = format!("valid values: {}", names.join(", "));
        causes.push(Cause::required(format!("{at}.spec.restartPolicy"), &detail));
    } else if !policy.is_empty() && !policies.contains(&policy) {
        causes.push(Cause::unsupported(format!("{at}.spec.restartPolicy"), &json!(policy), policies));
    }
}

/// A pod's spec.
pub(super) fn spec(pod: Option<&Value>, at: &str, causes: &mut Vec<Cause>) {
    let nothing = Value::Null;
    let pod = pod.unwrap_or(&nothing);
    let volumes = volumes(pod, at, causes);
    if list(pod, "/containers").is_empty() {
        causes.push(Cause::required(format!("{at}.containers"), ""));
    }
    let mut seen = BTreeSet::new();
    for found in object::pod_containers(pod) {
        let place = format!("{at}.{}[{}]", found.kind.field(), found.index);
        container(found.value, found.kind, &place, &volumes, causes);
        if !found.name().is_empty() && !seen.insert(found.name()) {
            causes.push(Cause::duplicate(format!("{place}.name"), &json!(found.name())));
        }
    }
    word(pod, "restartPolicy", &["Always", "OnFailure", "Never"], at, causes);
    word(pod, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], at, causes);
    for (index, secret) in list(pod, "/imagePullSecrets").iter().enumerate() {
        let name = object::text(secret, "/name");
        if !name.is_empty() && !names::is_dns_subdomain(name) {
            let field = format!("{at}.imagePullSecrets[{index}].name");
            causes.push(Cause::invalid(field, &json!(name), "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"));
        }
    }
    for (name, value) in object::mapping(pod, "/nodeSelector").into_iter().flatten() {
        super::label(&format!("{at}.nodeSelector"), name, value, causes);
    }
}

fn volumes<'v>(pod: &'v Value, at: &str, causes: &mut Vec<Cause>) -> BTreeSet<&'v str> {
    let mut names_seen = BTreeSet::new();
    for (index, volume) in list(pod, "/volumes").iter().enumerate() {
        let field = format!("{at}.volumes[{index}]");
        let name = object::text(volume, "/name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        } else if !names::is_dns_label(name) {
            causes.push(Cause::invalid(
                format!("{field}.name"),
                &json!(name),
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
            ));
        } else if !names_seen.insert(name) {
            causes.push(Cause::duplicate(format!("{field}.name"), &json!(name)));
        }
        let sources =
            volume.as_object().map_or(0, |fields| fields.keys().filter(|name| *name != "name").count());
        if sources > 1 {
            causes.push(Cause::forbidden(field, "may not specify more than 1 volume type"));
        }
    }
    names_seen
}

fn container(
    value: &Value,
    kind: ContainerKind,
    at: &str,
    volumes: &BTreeSet<&str>,
    causes: &mut Vec<Cause>,
) {
    let name = object::text(value, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{at}.name"), ""));
    } else if !names::is_dns_label(name) {
        causes.push(Cause::invalid(format!("{at}.name"), &json!(name), "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"));
    }
    let image = object::text(value, "/image");
    if image.is_empty() {
        causes.push(Cause::required(format!("{at}.image"), ""));
    } else if image.trim() != image {
        causes.push(Cause::invalid(
            format!("{at}.image"),
            &json!(image),
            "must not have leading or trailing whitespace",
        ));
    }
    word(value, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], at, causes);
    word(value, "terminationMessagePolicy", &["FallbackToLogsOnError", "File"], at, causes);
    let mut port_names = BTreeSet::new();
    for (index, port) in list(value, "/ports").iter().enumerate() {
        let field = format!("{at}.ports[{index}]");
        port_number(port.get("containerPort"), &format!("{field}.containerPort"), causes);
        protocol(port, &field, causes);
        let name = object::text(port, "/name");
        if !name.is_empty() && !names::is_port_name(name) {
            causes.push(Cause::invalid(
                format!("{field}.name"),
                &json!(name),
                "must be no more than 15 characters",
            ));
        } else if !name.is_empty() && !port_names.insert(name) {
            causes.push(Cause::duplicate(format!("{field}.name"), &json!(name)));
        }
    }
    for (index, variable) in list(value, "/env").iter().enumerate() {
        environment(variable, &format!("{at}.env[{index}]"), causes);
    }
    for (index, mount) in list(value, "/volumeMounts").iter().enumerate() {
        let field = format!("{at}.volumeMounts[{index}]");
        let name = object::text(mount, "/name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        } else if !volumes.contains(name) {
            causes.push(Cause {
                reason: "FieldValueNotFound",
                field: format!("{field}.name"),
                message: format!("Not found: {}", json!(name)),
            });
        }
        if object::text(mount, "/mountPath").is_empty() {
            causes.push(Cause::required(format!("{field}.mountPath"), ""));
        }
    }
    let restart = object::text(value, "/restartPolicy");
    if !restart.is_empty() && kind == ContainerKind::Init && restart != "Always" {
        causes.push(Cause::unsupported(format!("{at}.restartPolicy"), &json!(restart), &["Always"]));
    }
}

fn environment(variable: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = object::text(variable, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{at}.name"), ""));
    } else if !names::is_environment_name(name) {
        causes.push(Cause::invalid(
            format!("{at}.name"),
            &json!(name),
            "environment variable names must be printable ASCII characters other than '='",
        ));
    }
    let Some(from) = variable.get("valueFrom").filter(|from| !from.is_null()) else { return };
    if !object::text(variable, "/value").is_empty() {
        // The value may be a secret and is not repeated.
        causes.push(Cause::invalid(
            format!("{at}.valueFrom"),
            &json!(""),
            "may not be specified when `value` is not empty",
        ));
    }
    if from.as_object().is_none_or(|sources| sources.len() != 1) {
        causes.push(Cause::invalid(format!("{at}.valueFrom"), &json!(""), "must specify exactly one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"));
    }
}

fn word(value: &Value, field: &str, known: &[&str], at: &str, causes: &mut Vec<Cause>) {
    match value.get(field).and_then(Value::as_str) {
        Some(text) if !text.is_empty() && !known.contains(&text) => {
            causes.push(Cause::unsupported(format!("{at}.{field}"), &json!(text), known));
        }
        _ => {}
    }
}
