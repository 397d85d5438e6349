//! Discovery: which groups, versions and kinds are served.

use scantling_api::{GroupFacts, KindFacts};
use serde_json::{Value, json};

use super::accept::{Accept, Form};
use super::path::Path;
use super::{ApiServer, Status};

/// The version that this server plays; the facts about its kinds are of the same one.
pub(super) const GIT_VERSION: &str = "v1.35.4";

/// `/version`.
pub(super) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    })
}

impl ApiServer {
    /// The document at a path of discovery.
    pub(super) fn discover(&self, path: &Path, accept: Accept) -> Result<Value, Status> {
        let aggregated = accept.form == Form::AggregatedDiscovery;
        match path {
            Path::Root => Ok(self.paths()),
            Path::CoreVersions if aggregated => Ok(self.aggregated(|group| group.name.is_empty())),
            Path::Groups if aggregated => Ok(self.aggregated(|group| !group.name.is_empty())),
            Path::CoreVersions => Ok(json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [],
            })),
            Path::Groups => Ok(json!({
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": self.named_groups().map(group).collect::<Vec<_>>(),
            })),
            Path::Group(name) => {
                let facts = self.named_groups().find(|facts| facts.name == *name);
                let mut document = group(facts.ok_or_else(Status::no_such_path)?);
                document["kind"] = json!("APIGroup");
                document["apiVersion"] = json!("v1");
                Ok(document)
            }
            Path::Resources { group, version } => self.resources(group, version),
            _ => Err(Status::no_such_resource()),
        }
    }

    fn named_groups(&self) -> impl Iterator<Item = &GroupFacts> {
        self.kinds.groups().iter().filter(|group| !group.name.is_empty())
    }

    fn paths(&self) -> Value {
        let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
        for group in self.named_groups() {
            paths.push(format!("/apis/{}", group.name));
            paths.extend(group.versions.iter().map(|version| format!("/apis/{}/{version}", group.name)));
        }
        paths.extend(
            ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned),
        );
        json!({"paths": paths})
    }

    fn resources(&self, group: &str, version: &str) -> Result<Value, Status> {
        let mut resources = Vec::new();
        for facts in self.kinds.in_version(group, version) {
            resources.push(resource(facts));
            for sub in &facts.subresources {
                let mut entry = json!({
                    "name": format!("{}/{}", facts.plural, sub.name),
                    "singularName": "",
                    "namespaced": facts.namespaced,
                    "kind": sub.gvk.kind,
                    "verbs": sub.verbs,
                });
                if sub.gvk.group != facts.gvk.group || sub.gvk.version != facts.gvk.version {
                    entry["group"] = json!(sub.gvk.group);
                    entry["version"] = json!(sub.gvk.version);
                }
                resources.push(entry);
            }
        }
        if resources.is_empty() {
            return Err(Status::no_such_path());
        }
        let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let mut list =
            json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
        if !group.is_empty() {
            list["apiVersion"] = json!("v1");
        }
        Ok(list)
    }

    fn aggregated(&self, wanted: impl Fn(&GroupFacts) -> bool) -> Value {
        let groups: Vec<Value> = self
            .kinds
            .groups()
            .iter()
            .filter(|group| wanted(group))
            .map(|group| {
                let versions: Vec<Value> = group
                    .versions
                    .iter()
                    .map(|version| {
                        let resources: Vec<Value> =
                            self.kinds.in_version(&group.name, version).map(aggregated_resource).collect();
                        json!({"version": version, "resources": resources, "freshness": "Current"})
                    })
                    .collect();
                let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
                json!({"metadata": metadata, "versions": versions})
            })
            .collect();
        json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": groups,
        })
    }
}

fn group(facts: &GroupFacts) -> Value {
    let version =
        |version: &String| json!({"groupVersion": format!("{}/{version}", facts.name), "version": version});
    json!({
        "name": facts.name,
        "versions": facts.versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": facts.versions.first().map(version),
    })
}

fn resource(facts: &KindFacts) -> Value {
    let mut entry = json!({
        "name": facts.plural,
        "singularName": facts.singular,
        "namespaced": facts.namespaced,
        "kind": facts.gvk.kind,
        "verbs": facts.verbs,
    });
    if !facts.short_names.is_empty() {
        entry["shortNames"] = json!(facts.short_names);
    }
    if !facts.categories.is_empty() {
        entry["categories"] = json!(facts.categories);
    }
    entry
}

fn aggregated_resource(facts: &KindFacts) -> Value {
    let kind = |gvk: &scantling_api::GroupVersionKind| json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind});
    let subresources: Vec<Value> = facts
        .subresources
        .iter()
        .map(|sub| json!({"subresource": sub.name, "responseKind": kind(&sub.gvk), "verbs": sub.verbs}))
        .collect();
    let mut entry = json!({
        "resource": facts.plural,
        "responseKind": kind(&facts.gvk),
        "scope": if facts.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": facts.singular,
        "verbs": facts.verbs,
    });
    for (name, list) in [
        ("shortNames", json!(facts.short_names)),
        ("categories", json!(facts.categories)),
        ("subresources", json!(subresources)),
    ] {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            entry[name] = list;
        }
    }
    entry
}
