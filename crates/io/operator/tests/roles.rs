//! The roles that the platform's releases give to the operator, held against what it does: no less, and no more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use camino::Utf8Path;
use scantling_files::{Limits, read_tree};
use scantling_plan::PolicyRule;
use scantling_release::{Release, Settings};
use serde_json::Value;

/// What one rule comes to: where, group, resource, verb, name.
type Right = (Option<String>, String, String, String, Option<String>);

fn release(folder: &str) -> Release {
    let path = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../releases").join(folder);
    let with = ["gpu", "openvino", "vllm"].map(str::to_owned).into();
    let settings =
        Settings { registry: Some("registry.example.com".to_owned()), with, ..Settings::default() };
    Release::read(&read_tree(&path, &Limits::default()).unwrap().tree, &settings).unwrap()
}

fn rights(rules: &[PolicyRule]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for rule in rules {
        let names: Vec<Option<String>> = match rule.resource_names.as_slice() {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        };
        for group in &rule.api_groups {
            for resource in &rule.resources {
                for verb in &rule.verbs {
                    rights.extend(names.iter().map(|name| {
                        let at = (rule.namespace.clone(), group.clone(), resource.clone());
                        (at.0, at.1, at.2, verb.clone(), name.clone())
                    }));
                }
            }
        }
    }
    rights
}

/// What the release gives to the operator's service account.
fn given(release: &Release) -> BTreeSet<Right> {
    let granting = release.objects.iter().filter(|object| {
        object.key.name == "scantling-operator" && matches!(object.key.kind.as_str(), "Role" | "ClusterRole")
    });
    let mut rules = Vec::new();
    for role in granting {
        for rule in role.value["rules"].as_array().unwrap() {
            let texts = |field: &str| -> Vec<String> {
                let list = rule.get(field).and_then(Value::as_array);
                list.into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
            };
            rules.push(PolicyRule {
                namespace: role.key.namespace.clone(),
                api_groups: texts("apiGroups"),
                resources: texts("resources"),
                resource_names: texts("resourceNames"),
                verbs: texts("verbs"),
            });
        }
    }
    assert!(rules.len() > 10, "the roles are found");
    rights(&rules)
}

/// Whether a right is among others, or follows from one for the whole cluster or for all names.
fn among(right: &Right, rights: &BTreeSet<Right>) -> bool {
    let (namespace, group, resource, verb, name) = right;
    [namespace.clone(), None].into_iter().any(|namespace| {
        [name.clone(), None].into_iter().any(|name| {
            rights.contains(&(namespace.clone(), group.clone(), resource.clone(), verb.clone(), name))
        })
    })
}

#[test]
fn the_operator_may_do_what_it_does_and_nothing_else() {
    let (first, second) = (release("2026.1"), release("2026.2"));
    let mut wanted = rights(&scantling_operator::rights());
    // It brings its own release, the next one, and goes back.
    wanted.extend(rights(&scantling_plan::rights(&first)));
    wanted.extend(rights(&scantling_plan::rights(&second)));
    for release in [&first, &second] {
        let given = given(release);
        let missing: Vec<&Right> = wanted.iter().filter(|right| !among(right, &given)).collect();
        assert!(missing.is_empty(), "{} gives too little: {missing:#?}", release.title());
        let excess: Vec<&Right> = given.iter().filter(|right| !among(right, &wanted)).collect();
        assert!(excess.is_empty(), "{} gives too much: {excess:#?}", release.title());
        let words = given.iter().flat_map(|(_, group, resource, verb, _)| [group, resource, verb]);
        assert_eq!(words.filter(|word| *word == "*").count(), 0);
    }
}
