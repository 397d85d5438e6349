//! Objects that every API server refuses, whatever the cluster has: names that their kinds do not allow, and objects that
//! cannot be stored. An upgrade would find them in its middle.
//!
//! Source: the validation of each kind (`k8s.io/apimachinery/pkg/api/validation`, `pkg/apis/*/validation` of Kubernetes 1.35),
//! and the limits of what is stored.

use scantling_api::object;
use scantling_finding::{Finding, codes};
use serde_json::Value;

use crate::faults::is_name;
use crate::object::ReleaseObject;

/// Bytes of an object as JSON: etcd takes no request of more than 1.5 MiB.
const MAX_OBJECT: usize = 3 << 19;
/// Bytes of the values of a `ConfigMap` or Secret.
const MAX_DATA: usize = 1 << 20;
/// Characters of a DNS subdomain.
const MAX_SUBDOMAIN: usize = 253;

/// What is wrong with an object in the eyes of every API server.
pub(crate) fn faults(of: &ReleaseObject) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut bad = |message: String, field: &str, cause: String| {
        let place = of.place.clone().with_field(field);
        findings.push(Finding::new(codes::release::NOT_ACCEPTED, message, place).with_cause(cause));
    };
    let kind = &of.key.kind;
    let name = object::name(&of.value);
    if let Some(rule) = broken_rule(&of.key.group, kind, name) {
        bad(format!("{name:?} is no name of a {kind}"), ".metadata.name", rule.to_owned());
    }
    if let Some(namespace) = object::namespace(&of.value)
        && !is_name(namespace)
    {
        bad(format!("{namespace:?} is no name of a namespace"), ".metadata.namespace", LABEL.to_owned());
    }
    let data = match (of.key.group.as_str(), kind.as_str()) {
        ("", "ConfigMap") => size(&of.value, "data", false) + size(&of.value, "binaryData", true),
        ("", "Secret") => size(&of.value, "data", true) + size(&of.value, "stringData", false),
        _ => 0,
    };
    let whole = serde_json::to_vec(&of.value).map_or(0, |text| text.len());
    if data > MAX_DATA {
        let cause = format!("all values of a {kind} together may have {MAX_DATA} bytes");
        bad(format!("the values have {data} bytes"), ".data", cause);
    } else if whole > MAX_OBJECT {
        let cause = format!("a cluster stores no object of more than {MAX_OBJECT} bytes");
        bad(format!("the object has {whole} bytes"), ".metadata", cause);
    }
    findings
}

const LABEL: &str =
    "it must be 1 to 63 lower-case letters, digits and -, and begin and end with a letter or digit";
const SUBDOMAIN: &str = "it must be 1 to 253 lower-case letters, digits, - and ., and begin and end with a letter or digit, before and after each . too";
const SEGMENT: &str = "it must not be . or .., and have no / and %";

/// The rule that a name breaks, if any: most names are DNS subdomains, some kinds are stricter, some freer.
fn broken_rule(group: &str, kind: &str, name: &str) -> Option<&'static str> {
    let (fits, rule) = match (group, kind) {
        ("", "Namespace" | "Service") | ("project.openshift.io", _) => (is_name(name), LABEL),
        ("rbac.authorization.k8s.io" | "certificates.k8s.io" | "apiregistration.k8s.io", _) => {
            (is_segment(name), SEGMENT)
        }
        // OpenShift's own API servers: users, roles and streams have names of other forms.
        _ if group.ends_with(".openshift.io") => (is_segment(name), SEGMENT),
        _ => (is_subdomain(name), SUBDOMAIN),
    };
    (!fits).then_some(rule)
}

fn is_segment(name: &str) -> bool {
    name != "." && name != ".." && !name.contains(['/', '%'])
}

fn is_subdomain(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.len() <= MAX_SUBDOMAIN && name.split('.').all(is_part)
}

/// Bytes of the values under a field; of base64 what it stands for, padding not counted.
fn size(value: &Value, field: &str, is_base64: bool) -> usize {
    let values = value.get(field).and_then(Value::as_object).into_iter().flatten();
    let lengths = values
        .filter_map(|(_, value)| value.as_str())
        .map(|text| if is_base64 { text.trim_end_matches('=').len() / 4 * 3 } else { text.len() });
    lengths.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_held_against_their_kinds() {
        let long = ["a", &"b".repeat(MAX_SUBDOMAIN)].concat();
        for (group, kind, name, fits) in [
            ("", "ConfigMap", "a.b-c.1", true),
            ("", "ConfigMap", "X_Y", false),
            ("", "ConfigMap", "../../evil", false),
            ("", "ConfigMap", "a\u{202e}b", false),
            ("", "ConfigMap", "a..b", false),
            ("", "ConfigMap", &long, false),
            ("example.com", "Thing", "Big", false),
            ("", "Service", "a.b", false),
            ("", "Namespace", "a.b", false),
            ("rbac.authorization.k8s.io", "ClusterRole", "system:Node", true),
            ("rbac.authorization.k8s.io", "ClusterRole", "a/b", false),
            ("user.openshift.io", "User", "kube:admin", true),
        ] {
            assert_eq!(broken_rule(group, kind, name).is_none(), fits, "{kind} {name}");
        }
    }
}
