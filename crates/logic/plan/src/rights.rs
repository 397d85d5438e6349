//! What whoever brings a release must be allowed to do: the least rules of Kubernetes' role-based access control.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::{GroupVersionKind, Kinds, object};
use scantling_release::Release;
use serde::Serialize;
use serde_json::{Value, json};

use crate::own::own_objects;

/// The namespace of everything that the product keeps for itself.
const SYSTEM_NAMESPACE: &str = "scantling-system";
/// Reading an object and all of its kind, applying it, taking it away.
const APPLY: [&str; 5] = ["create", "delete", "get", "list", "patch"];

/// A rule as `Role` and `ClusterRole` have it, and where it applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// The namespace; none for the whole cluster. Decides whether the rule goes into a `Role` or a `ClusterRole`.
    #[serde(skip)]
    pub namespace: Option<String>,
    /// API groups; `""` is the core group.
    pub api_groups: Vec<String>,
    /// Resources by their plural names, with a subresource after `/`.
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
}

/// Where a rule applies: namespace, group, resource, name.
type At = (Option<String>, String, String, Option<String>);

/// What rules that become one have in common: namespace, group, names, verbs.
type Same = (Option<String>, String, Vec<String>, Vec<String>);

#[derive(Default)]
struct Rights(BTreeMap<At, BTreeSet<&'static str>>);

impl Rights {
    fn add(&mut self, namespace: Option<&str>, group: &str, resource: &str, verbs: &[&'static str]) {
        let at = (namespace.map(ToOwned::to_owned), group.to_owned(), resource.to_owned(), None);
        self.0.entry(at).or_default().extend(verbs);
    }

    fn named(&mut self, namespace: Option<&str>, resource: &str, name: &str, verbs: &[&'static str]) {
        let group = "rbac.authorization.k8s.io".to_owned();
        let at = (namespace.map(ToOwned::to_owned), group, resource.to_owned(), Some(name.to_owned()));
        self.0.entry(at).or_default().extend(verbs);
    }

    /// Rules with the same place, group, names and verbs become one.
    fn rules(self) -> Vec<PolicyRule> {
        let mut by_resource: BTreeMap<(At, Vec<&str>), BTreeSet<String>> = BTreeMap::new();
        for ((namespace, group, resource, name), verbs) in self.0 {
            let at = (namespace, group, resource, None);
            by_resource.entry((at, verbs.into_iter().collect())).or_default().extend(name);
        }
        let mut rules: BTreeMap<Same, BTreeSet<String>> = BTreeMap::new();
        for (((namespace, group, resource, _), verbs), names) in by_resource {
            let verbs = verbs.into_iter().map(ToOwned::to_owned).collect();
            let same = (namespace, group, names.into_iter().collect(), verbs);
            rules.entry(same).or_default().insert(resource);
        }
        rules
            .into_iter()
            .map(|((namespace, group, resource_names, verbs), resources)| PolicyRule {
                namespace,
                api_groups: vec![group],
                resources: resources.into_iter().collect(),
                resource_names,
                verbs,
            })
            .collect()
    }
}

/// The least rights with which a release can be brought, verified, gone back from and taken away again.
///
/// A role may only be written by somebody who has all that it allows, or who may `escalate` it; a binding only by
/// somebody who may `bind` its role. Those two are asked for by name, for the roles that the release itself has.
pub fn rights(release: &Release) -> Vec<PolicyRule> {
    let mut rights = Rights::default();
    let own = own_objects(release);
    let plurals = plurals(release, &own);
    let theirs = release.objects.iter().map(|o| (&o.key, &o.gvk, &o.value));
    let gvks: Vec<Option<GroupVersionKind>> = own.iter().map(|(.., v)| object::gvk(v).ok()).collect();
    let own = own.iter().zip(&gvks).filter_map(|((key, _, value), gvk)| Some((key, gvk.as_ref()?, value)));
    let mut namespaces: BTreeSet<&str> = release.namespace.as_deref().into_iter().collect();
    for (key, gvk, value) in theirs.chain(own) {
        let namespace = key.namespace.as_deref();
        let resource = plural(&plurals, gvk);
        rights.add(namespace, &gvk.group, &resource, &APPLY);
        if object::pod_spec_pointer(gvk).is_some() {
            namespaces.extend(namespace);
        }
        match gvk.kind.as_str() {
            "Role" | "ClusterRole" if gvk.group == "rbac.authorization.k8s.io" => {
                rights.named(namespace, &resource, &key.name, &["escalate"]);
            }
            // Whether what converts the objects of a definition can be reached.
            "CustomResourceDefinition" => {
                let service = "/spec/conversion/webhook/clientConfig/service/namespace";
                match object::text(value, service) {
                    "" => {}
                    namespace => {
                        rights.add(Some(namespace), "discovery.k8s.io", "endpointslices", &["list"]);
                    }
                }
            }
            "RoleBinding" | "ClusterRoleBinding" if gvk.group == "rbac.authorization.k8s.io" => {
                let (kind, name) =
                    (object::text(value, "/roleRef/kind"), object::text(value, "/roleRef/name"));
                let (resource, at) =
                    if kind == "Role" { ("roles", namespace) } else { ("clusterroles", None) };
                rights.named(at, resource, name, &["bind"]);
            }
            _ => {}
        }
    }
    rights.add(None, "", "nodes", &["list"]);
    rights.add(None, "", "namespaces", &APPLY);
    rights.add(None, "apiextensions.k8s.io", "customresourcedefinitions", &["get", "list"]);
    // Journal, state, bundles, history; the lease.
    rights.add(Some(SYSTEM_NAMESPACE), "", "configmaps", &APPLY);
    rights.add(Some(SYSTEM_NAMESPACE), "", "secrets", &APPLY);
    rights.add(
        Some(SYSTEM_NAMESPACE),
        "coordination.k8s.io",
        "leases",
        &["create", "delete", "get", "patch"],
    );
    for namespace in namespaces {
        // Images are brought to nodes by pods, and what runs is read from pods.
        rights.add(Some(namespace), "", "pods", &APPLY);
        // What keeps a pod from starting is told by events.
        rights.add(Some(namespace), "", "events", &["list"]);
        rights.add(Some(namespace), "", "serviceaccounts", &["get"]);
        rights.add(Some(namespace), "", "secrets", &["get"]);
    }
    if release.catalogue.is_some() {
        rights.add(release.namespace.as_deref(), "scantling.dev", "notebookimages", &APPLY);
    }
    if release.operator.is_some() {
        // The operator is told which release the platform is to have.
        rights.add(None, "scantling.dev", "platforms", &["create", "get", "patch"]);
    }
    // Whom the plan concerns.
    rights.add(None, "kubeflow.org", "notebooks", &["list"]);
    rights.add(None, "serving.kserve.io", "inferenceservices", &["list"]);
    rights.add(None, "serving.kserve.io", "servingruntimes", &["list"]);
    rights.add(None, "serving.kserve.io", "clusterservingruntimes", &["list"]);
    for build in &release.builds {
        let namespace = build.namespace.as_deref().or(release.namespace.as_deref());
        rights.add(namespace, "build.openshift.io", "builds", &["get", "list"]);
        rights.add(namespace, "build.openshift.io", "buildconfigs/instantiate", &["create"]);
    }
    rights.rules()
}

/// The plural names of kinds that the release or the product define.
fn plurals(
    release: &Release,
    own: &[(scantling_api::ObjectKey, scantling_release::Wave, Value)],
) -> BTreeMap<(String, String), String> {
    let theirs = release.objects.iter().map(|o| &o.value);
    theirs
        .chain(own.iter().map(|(.., value)| value))
        .filter(|value| object::text(value, "/kind") == "CustomResourceDefinition")
        .map(|value| {
            let text = |pointer: &str| object::text(value, pointer).to_owned();
            ((text("/spec/group"), text("/spec/names/kind")), text("/spec/names/plural"))
        })
        .collect()
}

/// The plural name of a kind. Of one that nobody here defines it is formed as Kubernetes' own are.
fn plural(defined: &BTreeMap<(String, String), String>, gvk: &GroupVersionKind) -> String {
    let known = [Kinds::kubernetes(), Kinds::openshift()];
    if let Some(facts) = known.into_iter().find_map(|kinds| kinds.by_gvk(gvk)) {
        return facts.plural.clone();
    }
    if let Some(plural) = defined.get(&(gvk.group.clone(), gvk.kind.clone())) {
        return plural.clone();
    }
    let kind = gvk.kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) || kind.ends_with("ch") => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// The roles that hold rules: one `ClusterRole`, and a `Role` for each namespace, all under one name.
pub fn roles(name: &str, rules: &[PolicyRule]) -> Vec<Value> {
    let mut by_namespace: BTreeMap<Option<&str>, Vec<&PolicyRule>> = BTreeMap::new();
    for rule in rules {
        by_namespace.entry(rule.namespace.as_deref()).or_default().push(rule);
    }
    by_namespace
        .into_iter()
        .map(|(namespace, rules)| match namespace {
            None => json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name}, "rules": rules,
            }),
            Some(namespace) => json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                "metadata": {"name": name, "namespace": namespace}, "rules": rules,
            }),
        })
        .collect()
}
