//! Who gets an answer from what people run.
//!
//! A notebook runs its owner's code with the owner's rights, and a model answers with its owner's data, so neither answers pods of other
//! namespaces unless somebody has said so. The nodes themselves (probes) are always let in by Kubernetes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The namespace of the operator, which asks notebooks whether they are idle and models whether they are ready.
pub const SYSTEM_NAMESPACE: &str = "scantling-system";

/// A label of namespaces, with the value `true`: what runs there brings people to notebooks and models, as ingress controllers do.
pub const GATEWAY_LABEL: &str = "scantling.dev/gateway";

/// An annotation of notebooks and models: names of namespaces whose pods get an answer, separated by commas.
pub const ALLOW_FROM: &str = "scantling.dev/allow-from";

/// Most namespaces that one object allows; who needs more wants a gateway.
pub const MAX_ALLOWED: usize = 50;

/// Reads [`ALLOW_FROM`]. The error is what is wrong with it and how to put it right.
pub fn allowed_namespaces(written: Option<&str>) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for name in written.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !is_label(name) {
            return Err(format!(
                "the annotation {ALLOW_FROM} names {name:?}, which is no name of a namespace: write names of namespaces with commas between them"
            ));
        }
        names.insert(name.to_owned());
        if names.len() > MAX_ALLOWED {
            return Err(format!(
                "the annotation {ALLOW_FROM} names more than {MAX_ALLOWED} namespaces: label the namespace of a gateway with {GATEWAY_LABEL}=true instead"
            ));
        }
    }
    Ok(names)
}

/// Is this a DNS label, as names of namespaces are?
pub(crate) fn is_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= 63
        && name.chars().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The network policy of what one object runs.
///
/// Its pods (those with `pod_labels`) answer every pod of their own namespace on every port. On `ports` (numbers or names of
/// containers' ports) they also answer pods of the operator's and the platform's namespaces, of namespaces that an ingress controller or
/// a gateway is in, and of those in `allowed`. What pods ask of others is not restricted.
pub fn network_policy(
    metadata: &Value,
    pod_labels: &Value,
    ports: &[Value],
    platform_namespace: &str,
    allowed: &BTreeSet<String>,
) -> Value {
    let mut names: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
    names.extend([SYSTEM_NAMESPACE, platform_namespace]);
    names.remove("");
    let ports: Vec<Value> = ports.iter().map(|port| json!({"port": port, "protocol": "TCP"})).collect();
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": {"matchLabels": pod_labels},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [{"podSelector": {}}]},
                {
                    "from": [
                        {"namespaceSelector": {"matchExpressions": [
                            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names},
                        ]}},
                        {"namespaceSelector": {"matchLabels": {GATEWAY_LABEL: "true"}}},
                        // OpenShift's routers, whether they run on the nodes' network or on that of pods.
                        {"namespaceSelector": {"matchLabels": {"policy-group.network.openshift.io/ingress": ""}}},
                    ],
                    "ports": ports,
                },
            ],
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// Is a pod of a namespace with these labels let in on a port? Written after the rules of the API's documentation.
    fn lets_in(policy: &Value, own: bool, namespace: &[(&str, &str)], port: i64) -> bool {
        let has = |key: &str, value: &str| namespace.contains(&(key, value));
        policy["spec"]["ingress"].as_array().unwrap().iter().any(|rule| {
            let from = rule["from"].as_array().unwrap().iter().any(|peer| {
                let Some(selector) = peer.get("namespaceSelector") else { return own };
                let labels = selector["matchLabels"].as_object().into_iter().flatten();
                let labels = labels.into_iter().all(|(key, value)| has(key, value.as_str().unwrap()));
                let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
                let mut expressions = expressions.map(|e| {
                    let values = e["values"].as_array().unwrap();
                    values.iter().any(|value| has(e["key"].as_str().unwrap(), value.as_str().unwrap()))
                });
                labels && expressions.all(|holds| holds)
            });
            let ports = rule["ports"].as_array();
            from && ports.is_none_or(|ports| ports.iter().any(|p| p["port"].as_i64() == Some(port)))
        })
    }

    #[test]
    fn pods_of_other_namespaces_get_no_answer_unless_allowed() {
        let allowed = allowed_namespaces(Some("team-b, team-c")).unwrap();
        let policy = network_policy(
            &json!({"name": "nb", "namespace": "anna"}),
            &json!({"statefulset": "nb"}),
            &[json!(8888)],
            "scantling",
            &allowed,
        );
        let name = "kubernetes.io/metadata.name";
        for (what, own, labels, port, answered) in [
            ("its own namespace", true, &[(name, "anna")][..], 8888, true),
            ("its own namespace, another port", true, &[(name, "anna")], 4040, true),
            ("another namespace", false, &[(name, "berta")], 8888, false),
            ("a namespace that is allowed", false, &[(name, "team-b")], 8888, true),
            ("a namespace that is allowed, another port", false, &[(name, "team-b")], 4040, false),
            ("the operator's", false, &[(name, SYSTEM_NAMESPACE)], 8888, true),
            ("the platform's", false, &[(name, "scantling")], 8888, true),
            ("a gateway's", false, &[(name, "gw"), (GATEWAY_LABEL, "true")], 8888, true),
            ("one that is none", false, &[(name, "gw"), (GATEWAY_LABEL, "false")], 8888, false),
            (
                "OpenShift's routers'",
                false,
                &[(name, "r"), ("policy-group.network.openshift.io/ingress", "")],
                8888,
                true,
            ),
        ] {
            assert_eq!(lets_in(&policy, own, labels, port), answered, "{what}");
        }
    }

    #[test]
    fn what_is_no_name_of_a_namespace_is_refused() {
        assert!(allowed_namespaces(None).unwrap().is_empty());
        assert!(allowed_namespaces(Some(" , ")).unwrap().is_empty());
        for written in ["Team", "a b", "*", "-a", "a/b"] {
            assert!(allowed_namespaces(Some(written)).unwrap_err().contains(written), "{written}");
        }
        let many: Vec<String> = (0..=MAX_ALLOWED).map(|n| format!("n{n}")).collect();
        assert!(allowed_namespaces(Some(&many.join(","))).is_err());
    }
}
