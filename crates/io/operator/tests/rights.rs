//! The role that a release gives its operator covers what the operator does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;

use scantling_operator::rights;
use serde_json::Value;

/// The rules of the roles in a file: namespace and rule.
fn given(path: &Path) -> Vec<(Option<String>, Value)> {
    let text = std::fs::read(path).unwrap();
    let documents = scantling_yaml::parse(&text).unwrap();
    let roles = documents.iter().map(|document| document.root.to_json());
    roles
        .filter(|role| matches!(role["kind"].as_str(), Some("Role" | "ClusterRole")))
        .flat_map(|role| {
            let namespace = role["metadata"]["namespace"].as_str().map(str::to_owned);
            role["rules"]
                .as_array()
                .cloned()
                .unwrap_or_default()
                .into_iter()
                .map(move |rule| (namespace.clone(), rule))
        })
        .collect()
}

fn has(rule: &Value, list: &str, word: &str) -> bool {
    rule[list].as_array().is_some_and(|words| words.iter().any(|one| one == word))
}

#[test]
fn the_releases_allow_their_operator_what_it_does() {
    for version in ["2026.1", "2026.2"] {
        let path = format!("../../../releases/{version}/manifests/operator-roles.yaml");
        let given = given(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        assert!(given.len() > 10);
        for rule in rights() {
            let (group, resource) = (&rule.api_groups[0], &rule.resources[0]);
            for verb in &rule.verbs {
                let allowed = given.iter().any(|(namespace, given)| {
                    (namespace.is_none() || *namespace == rule.namespace)
                        && given.get("resourceNames").is_none()
                        && has(given, "apiGroups", group)
                        && has(given, "resources", resource)
                        && has(given, "verbs", verb)
                });
                assert!(allowed, "{version}: {verb} {group}/{resource} in {:?}", rule.namespace);
            }
        }
    }
}
