//! Who gets answers of the pods that people's objects make.

use scantling_api::object;
use serde_json::{Value, json};

use crate::applied::sealed;

/// On a notebook or a model: other namespaces whose pods get answers, separated by commas; `*` means all.
pub(crate) const ALLOW_NAMESPACES: &str = "scantling.dev/allow-namespaces";
/// Most namespaces that one annotation may name: a policy is evaluated for every connection.
const MAX_NAMESPACES: usize = 50;
/// Longest name of a namespace, as the API has it.
const MAX_NAME: usize = 63;

/// Other namespaces whose pods get answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// All.
    All,
    /// These, besides the own one.
    These(Vec<String>),
}

impl Allowed {
    /// What the annotation of an object says.
    ///
    /// # Errors
    /// A sentence about a name that no namespace can have.
    pub(crate) fn of(object: &Value) -> Result<Self, String> {
        let text = object::annotation(object, ALLOW_NAMESPACES).unwrap_or_default();
        if text.trim() == "*" {
            return Ok(Self::All);
        }
        let mut names: Vec<String> =
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() > MAX_NAMESPACES {
            return Err(format!(
                "annotation {ALLOW_NAMESPACES} names {} namespaces; at most {MAX_NAMESPACES} can be: write * for all",
                names.len()
            ));
        }
        let is_name = |name: &&String| {
            name.len() <= MAX_NAME
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                && !name.starts_with('-')
                && !name.ends_with('-')
        };
        match names.iter().find(|name| !is_name(name)) {
            Some(name) => Err(format!("annotation {ALLOW_NAMESPACES}: {name:?} is no name of a namespace")),
            None => Ok(Self::These(names)),
        }
    }
}

/// A policy, sealed: the pods that `selector` selects get connections from pods of their own namespace, of the allowed ones and of
/// `always`, and from no others. What they connect to is left open.
pub(crate) fn policy(metadata: Value, selector: &Value, allowed: &Allowed, always: &[&str]) -> Value {
    let mut from = vec![json!({"podSelector": {}})];
    match allowed {
        Allowed::All => from.push(json!({"namespaceSelector": {}})),
        Allowed::These(names) => {
            let mut names: Vec<&str> =
                names.iter().map(String::as_str).chain(always.iter().copied()).collect();
            names.sort_unstable();
            names.dedup();
            if !names.is_empty() {
                from.push(json!({"namespaceSelector": {"matchExpressions": [{
                    "key": "kubernetes.io/metadata.name", "operator": "In", "values": names,
                }]}}));
            }
        }
    }
    sealed(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": [{"from": from}]},
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn only_named_namespaces_get_answers() {
        let with = |text: &str| json!({"metadata": {"annotations": {ALLOW_NAMESPACES: text}}});
        let from = |text: &str| {
            let policy =
                policy(json!({"name": "a"}), &json!({}), &Allowed::of(&with(text)).unwrap(), &["system"]);
            policy["spec"]["ingress"][0]["from"].clone()
        };
        let these = |names: &[&str]| {
            json!([{"podSelector": {}}, {"namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names},
            ]}}])
        };
        assert_eq!(from(""), these(&["system"]));
        assert_eq!(from("b, a,,b"), these(&["a", "b", "system"]));
        assert_eq!(from("*"), json!([{"podSelector": {}}, {"namespaceSelector": {}}]));
        for bad in ["A", "a b", "-a", "*,a", &"x".repeat(64)] {
            assert!(Allowed::of(&with(bad)).is_err(), "{bad}");
        }
        let many: Vec<String> = (0..51).map(|i| format!("n{i}")).collect();
        assert!(Allowed::of(&with(&many.join(","))).is_err());
    }
}
