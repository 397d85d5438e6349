//! Rights as the objects that grant them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use scantling_plan::PolicyRule;
use serde_json::{Value, json};

/// Somebody who is given rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A user by name.
    User(String),
    /// A group by name.
    Group(String),
    /// A service account by namespace and name.
    ServiceAccount(String, String),
}

impl Subject {
    fn object(&self) -> Value {
        const GROUP: &str = "rbac.authorization.k8s.io";
        match self {
            Self::User(name) => json!({"kind": "User", "apiGroup": GROUP, "name": name}),
            Self::Group(name) => json!({"kind": "Group", "apiGroup": GROUP, "name": name}),
            Self::ServiceAccount(namespace, name) => {
                json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
            }
        }
    }
}

/// Roles, one for the whole cluster and one for each namespace, and their bindings if somebody is given them.
fn roles(rules: &[PolicyRule], name: &str, subject: Option<&Subject>) -> Vec<Value> {
    let mut by_namespace: BTreeMap<Option<&str>, Vec<&PolicyRule>> = BTreeMap::new();
    for rule in rules {
        by_namespace.entry(rule.namespace.as_deref()).or_default().push(rule);
    }
    let mut objects = Vec::new();
    for (namespace, rules) in by_namespace {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        let metadata = match namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": name}),
        };
        objects.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules,
        }));
        if let Some(subject) = subject {
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [subject.object()],
            }));
        }
    }
    objects
}

/// The objects as YAML, a document each and a rule a line, with a comment that says what they are for.
pub fn yaml(rules: &[PolicyRule], about: &str, name: &str, subject: Option<&Subject>) -> String {
    let mut text = format!("# {about}\n");
    for (number, object) in roles(rules, name, subject).iter().enumerate() {
        if number > 0 {
            text.push_str("---\n");
        }
        for (field, value) in object.as_object().into_iter().flatten() {
            // Writing to a string cannot fail. JSON is YAML too.
            let _ = match value.as_array() {
                Some(items) => writeln!(text, "{field}:")
                    .and_then(|()| items.iter().try_for_each(|item| writeln!(text, "- {item}"))),
                None => match value.as_str() {
                    Some(plain) => writeln!(text, "{field}: {plain}"),
                    None => writeln!(text, "{field}: {value}"),
                },
            };
        }
    }
    text
}

/// The objects as a list.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn list(rules: &[PolicyRule], name: &str, subject: Option<&Subject>) -> serde_json::Result<String> {
    serde_json::to_string_pretty(
        &json!({"apiVersion": "v1", "kind": "List", "items": roles(rules, name, subject)}),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_role_for_each_scope_with_its_binding() {
        let rule = |namespace: Option<&str>, resource: &str| PolicyRule {
            namespace: namespace.map(ToOwned::to_owned),
            api_groups: vec![String::new()],
            resources: vec![resource.to_owned()],
            resource_names: Vec::new(),
            verbs: vec!["list".to_owned()],
        };
        let rules = [rule(None, "nodes"), rule(Some("a"), "pods"), rule(Some("a"), "services")];
        let subject = Subject::ServiceAccount("ci".to_owned(), "bringer".to_owned());
        let text = yaml(&rules, "what for", "runner", Some(&subject));
        let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
        assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"], "{text}");
        assert!(
            text.starts_with("# what for\n")
                && text.contains(r#"- {"apiGroups":[""],"resources":["pods"],"verbs":["list"]}"#)
        );
        assert!(text.contains(r#"- {"kind":"ServiceAccount","name":"bringer","namespace":"ci"}"#), "{text}");
        let list: Value = serde_json::from_str(&list(&rules, "runner", None).unwrap()).unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
        assert_eq!(list["items"][1]["rules"].as_array().unwrap().len(), 2);
    }
}
