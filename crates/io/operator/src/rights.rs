//! What the process must be allowed to do.

use std::collections::BTreeSet;

use scantling_api::{GroupVersionKind, Kinds};
use scantling_plan::PolicyRule;
use scantling_reconcile::{DEFINITIONS, RECONCILERS};
use scantling_run::{REGISTRY_RULES, SYSTEM_NAMESPACE};

/// What reconcilers write, besides what they read: group, resource, verbs. Tests hold it against what they really write.
const WRITES: &[(&str, &str, &[&str])] = &[
    ("", "events", &["create"]),
    ("", "pods", &["delete", "patch"]),
    ("", "services", &["create", "get", "patch"]),
    ("", "persistentvolumeclaims", &["create", "get"]),
    ("apps", "statefulsets", &["create", "get", "patch"]),
    ("apps", "deployments", &["create", "get", "patch"]),
    ("networking.k8s.io", "networkpolicies", &["create", "get", "patch"]),
    ("kubeflow.org", "notebooks", &["patch"]),
    ("kubeflow.org", "notebooks/status", &["patch"]),
    ("scantling.dev", "notebookimages/status", &["patch"]),
    ("scantling.dev", "platforms/status", &["patch"]),
    ("serving.kserve.io", "inferenceservices/status", &["patch"]),
];

/// The least rights with which the process leads, reconciles, and tells how the platform is. A run needs those of its release
/// besides, see [`scantling_plan::rights`].
pub fn rights() -> Vec<PolicyRule> {
    let rule = |namespace: Option<&str>, group: &str, resource: &str, verbs: &[&str]| PolicyRule {
        namespace: namespace.map(ToOwned::to_owned),
        api_groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        resource_names: Vec::new(),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
    };
    let read: BTreeSet<(&str, &str, &str)> =
        RECONCILERS.iter().flat_map(|reconciler| reconciler.watches).copied().collect();
    let mut rules: Vec<PolicyRule> = read
        .into_iter()
        .map(|(group, version, kind)| rule(None, group, &plural(group, version, kind), &["list", "watch"]))
        .collect();
    let named: BTreeSet<(&str, &str, &str)> =
        RECONCILERS.iter().flat_map(|reconciler| reconciler.named).copied().collect();
    let named = named.into_iter().map(|(group, version, kind)| (group, plural(group, version, kind)));
    rules.extend(named.map(|(group, resource)| rule(None, group, &resource, &["get"])));
    // Where images are asked for, on OpenShift; the pull secret of its nodes is read by name, like other secrets.
    let of_registries =
        REGISTRY_RULES.iter().map(|(group, version, kind)| (*group, plural(group, version, kind)));
    rules.extend(of_registries.map(|(group, resource)| rule(None, group, &resource, &["list"])));
    rules.extend(WRITES.iter().map(|(group, resource, verbs)| rule(None, group, resource, verbs)));
    let system = Some(SYSTEM_NAMESPACE);
    rules.push(rule(system, "", "configmaps", &["list", "watch"]));
    rules.push(rule(system, "coordination.k8s.io", "leases", &["create", "get", "list", "patch", "watch"]));
    rules.sort();
    rules
}

fn plural(group: &str, version: &str, kind: &str) -> String {
    let gvk = GroupVersionKind::new(group, version, kind);
    if let Some(facts) =
        [Kinds::kubernetes(), Kinds::openshift()].into_iter().find_map(|all| all.by_gvk(&gvk))
    {
        return facts.plural.clone();
    }
    let defined = DEFINITIONS.iter().find(|definition| definition.group == group && definition.kind == kind);
    defined.map_or_else(|| format!("{}s", kind.to_lowercase()), |definition| definition.plural.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_read_can_be_watched_and_nothing_is_allowed_twice() {
        let rules = rights();
        for (group, _, kind) in RECONCILERS.iter().flat_map(|reconciler| reconciler.watches) {
            let plural = plural(group, "v1", kind);
            let watches = rules.iter().any(|rule| {
                rule.api_groups.iter().any(|g| g == group)
                    && rule.resources.contains(&plural)
                    && rule.verbs.iter().any(|verb| verb == "watch")
            });
            assert!(watches, "{group} {kind}");
        }
        let anything = |list: &[String]| list.iter().any(|word| word == "*");
        assert!(!rules.iter().any(|rule| anything(&rule.verbs) || anything(&rule.resources)));
        let mut of_secrets =
            rules.iter().filter(|rule| rule.resources.iter().any(|resource| resource == "secrets"));
        assert!(
            of_secrets.all(|rule| rule.verbs == ["get"]),
            "secrets are read by name, never listed or written"
        );
    }
}
