//! Kinds, names, verbs and subresources from the recorded discovery documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// What discovery says.
pub(crate) struct Discovered {
    /// `{name, versions}` in the order in which a server lists them; the first version is the preferred one.
    pub(crate) groups: Vec<Value>,
    /// `group/version/Kind` (`version/Kind` for the core group) to the facts of the kind.
    pub(crate) kinds: BTreeMap<String, Value>,
    /// Kinds (`group/version/Kind`) that requests to subresources carry.
    pub(crate) subresource_kinds: BTreeSet<String>,
}

/// Reads `api__v1.json` (the core group) and `aggregated_v2.json` (all others).
pub(crate) fn read(folder: &Path) -> Result<Discovered> {
    let load = |name: &str| -> Result<Value> {
        let path = folder.join(name);
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("parsing {}", path.display()))
    };
    let mut found = Discovered {
        groups: vec![json!({"name": "", "versions": ["v1"]})],
        kinds: BTreeMap::new(),
        subresource_kinds: BTreeSet::new(),
    };
    found.core(&load("api__v1.json")?);
    found.groups(&load("aggregated_v2.json")?);
    Ok(found)
}

impl Discovered {
    fn core(&mut self, document: &Value) {
        let resources = items(&document["resources"]);
        for resource in resources.iter().filter(|resource| !text(&resource["name"]).contains('/')) {
            let plural = text(&resource["name"]);
            let subresources: Vec<Value> = resources
                .iter()
                .filter_map(|other| {
                    let name = text(&other["name"]).strip_prefix(plural)?.strip_prefix('/')?;
                    Some(subresource(
                        name,
                        text(&other["group"]),
                        text(&other["version"]),
                        text(&other["kind"]),
                        &other["verbs"],
                    ))
                })
                .collect();
            self.insert(
                "",
                "v1",
                text(&resource["kind"]),
                plural,
                &subresources,
                &json!({
                    "singular": resource["singularName"],
                    "short": resource["shortNames"],
                    "categories": resource["categories"],
                    "cluster": resource["namespaced"] == json!(false),
                    "verbs": resource["verbs"],
                }),
            );
        }
    }

    fn groups(&mut self, document: &Value) {
        for group in items(&document["items"]) {
            let name = text(&group["metadata"]["name"]);
            let mut versions = Vec::new();
            for version in items(&group["versions"]) {
                versions.push(version["version"].clone());
                for resource in items(&version["resources"]) {
                    let subresources: Vec<Value> = items(&resource["subresources"])
                        .iter()
                        .map(|sub| {
                            let kind = &sub["responseKind"];
                            subresource(
                                text(&sub["subresource"]),
                                text(&kind["group"]),
                                text(&kind["version"]),
                                text(&kind["kind"]),
                                &sub["verbs"],
                            )
                        })
                        .collect();
                    let kind = text(&resource["responseKind"]["kind"]);
                    self.insert(
                        name,
                        text(&version["version"]),
                        kind,
                        text(&resource["resource"]),
                        &subresources,
                        &json!({
                            "singular": resource["singularResource"],
                            "short": resource["shortNames"],
                            "categories": resource["categories"],
                            "cluster": resource["scope"] == json!("Cluster"),
                            "verbs": resource["verbs"],
                        }),
                    );
                }
            }
            self.groups.push(json!({"name": name, "versions": versions}));
        }
    }

    fn insert(
        &mut self,
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        subresources: &[Value],
        facts: &Value,
    ) {
        let mut entry = json!({"plural": plural});
        let mut put = |name: &str, value: &Value| {
            let empty = value.is_null() || *value == json!(false) || *value == json!("");
            if !empty && value.as_array().is_none_or(|list| !list.is_empty()) {
                entry[name] = value.clone();
            }
        };
        for name in ["singular", "short", "categories", "cluster", "verbs"] {
            put(name, &facts[name]);
        }
        put("status", &json!(subresources.iter().any(|sub| sub["name"] == json!("status"))));
        put("subresources", &json!(subresources));
        for sub in subresources {
            // A response that says no version has the kind of its group and version.
            let (group, version) = match text(&sub["version"]) {
                "" => (group, version),
                other => (text(&sub["group"]), other),
            };
            self.subresource_kinds.insert(key(group, version, text(&sub["kind"])));
        }
        self.kinds.insert(key(group, version, kind), entry);
    }
}

fn key(group: &str, version: &str, kind: &str) -> String {
    if group.is_empty() { format!("{version}/{kind}") } else { format!("{group}/{version}/{kind}") }
}

/// The kind of a subresource is written only where it differs from the kind it belongs to (the API's own convention
/// leaves group and version empty then).
fn subresource(name: &str, group: &str, version: &str, kind: &str, verbs: &Value) -> Value {
    let mut entry = json!({"name": name, "verbs": verbs});
    if !version.is_empty() {
        entry["group"] = json!(group);
        entry["version"] = json!(version);
    }
    entry["kind"] = json!(kind);
    entry
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
