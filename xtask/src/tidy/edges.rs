//! Which crate may use which.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{list, text};

/// The layers, from the lowest. A crate uses its own layer and those below.
const LAYERS: [&str; 5] = ["model", "logic", "io", "world", "app"];

/// So many of the layers, from the lowest, are pure: they compute, and reach for nothing.
const PURE_LAYERS: usize = 2;

/// Other people's crates that pure layers may use: formats, encodings, hashes and errors.
const ALLOWED_IN_PURE: [&str; 12] = [
    "base64",
    "flate2",
    "jiff",
    "oci-spec",
    "saphyr-parser",
    "schemars",
    "serde",
    "serde_json",
    "serde_path_to_error",
    "sha2",
    "tar",
    "thiserror",
];

/// What pure layers and the sandbox may not even use through others: runtimes, clients, connections, chance.
const FORBIDDEN_BELOW: [&str; 8] =
    ["tokio", "kube", "hyper", "rustls", "reqwest", "getrandom", "rand", "mio"];

/// Edges that the layers alone would allow, and the reason against each.
const FORBIDDEN_EDGES: [(&str, &str, &str); 5] = [
    ("scantling-sandbox", "scantling-cluster", "the sandbox is a cluster, it does not know its clients"),
    ("scantling-sandbox", "scantling-registry", "the sandbox is a cluster, it does not know its clients"),
    ("scantling-sandbox", "scantling-run", "the sandbox is a cluster, it does not know its clients"),
    ("scantling-sandbox", "scantling-plan", "what is rehearsed must not know the rehearsal"),
    ("scantling-sandbox", "scantling-reconcile", "what is rehearsed must not know the rehearsal"),
];

/// The crates that may use the sandbox: everything else is the product, which does not know that it is rehearsed.
const SANDBOX_USERS: [&str; 3] = ["scantling-rehearse", "scantling-cli", "bench"];

/// Holds the edges of the workspace, and what they lead to, against the rules.
pub(super) fn check(metadata: &Value, breaches: &mut Vec<String>) {
    let graph = Graph::read(metadata);
    let members: BTreeSet<&str> =
        list(metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    let packages = list(metadata, "packages").iter();
    let packages: Vec<&Value> = packages.filter(|package| members.contains(text(package, "id"))).collect();
    let layers: BTreeMap<&str, Option<usize>> = packages
        .iter()
        .map(|package| (text(package, "name"), layer(text(package, "manifest_path"))))
        .collect();
    for package in &packages {
        let name = text(package, "name");
        let own = layers.get(name).copied().flatten();
        for dependency in list(package, "dependencies") {
            // Tests may use what they like.
            if text(dependency, "kind") == "dev" {
                continue;
            }
            breaches.extend(breach(name, own, text(dependency, "name"), &layers));
        }
        if own.is_some_and(|own| own < PURE_LAYERS) || name == "scantling-sandbox" {
            for way in graph.ways(text(package, "id")) {
                breaches
                    .push(format!("{name} uses {}: it must not reach a world of its own", way.join(" > ")));
            }
        }
    }
}

fn breach(
    name: &str,
    own: Option<usize>,
    on: &str,
    layers: &BTreeMap<&str, Option<usize>>,
) -> Option<String> {
    if let Some((_, _, why)) = FORBIDDEN_EDGES.iter().find(|(from, to, _)| *from == name && *to == on) {
        return Some(format!("{name} uses {on}: {why}"));
    }
    if on == "scantling-sandbox" && !SANDBOX_USERS.contains(&name) {
        return Some(format!("{name} uses {on}: only {} may", SANDBOX_USERS.join(", ")));
    }
    let own = own?;
    let layer = LAYERS.get(own).copied().unwrap_or_default();
    match layers.get(on) {
        Some(Some(other)) if *other > own => {
            let above = LAYERS.get(*other).copied().unwrap_or_default();
            Some(format!("{name} ({layer}) uses {on} ({above}): arrows go down"))
        }
        None if own < PURE_LAYERS && !ALLOWED_IN_PURE.contains(&on) => {
            Some(format!("{name} uses {on}: {layer} crates are pure, and it is not among what they may use"))
        }
        Some(_) | None => None,
    }
}

fn layer(manifest: &str) -> Option<usize> {
    let (_, rest) = manifest.rsplit_once("/crates/")?;
    let name = rest.split('/').next()?;
    LAYERS.iter().position(|layer| *layer == name)
}

/// What each package is built with and runs with, tests left out.
struct Graph<'a> {
    names: BTreeMap<&'a str, &'a str>,
    uses: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Graph<'a> {
    fn read(metadata: &'a Value) -> Self {
        let packages = list(metadata, "packages").iter();
        let names = packages.map(|package| (text(package, "id"), text(package, "name"))).collect();
        let nodes = metadata.get("resolve").map_or(&[][..], |resolve| list(resolve, "nodes"));
        let uses = nodes
            .iter()
            .map(|node| {
                let used = list(node, "deps").iter().filter(|on| {
                    // What only builds another crate does not run with it.
                    list(on, "dep_kinds").iter().any(|kind| kind.get("kind").is_none_or(Value::is_null))
                });
                (text(node, "id"), used.map(|on| text(on, "pkg")).collect())
            })
            .collect();
        Self { names, uses }
    }

    /// The shortest way from a package to each forbidden one, without the package itself.
    fn ways(&self, from: &str) -> Vec<Vec<&'a str>> {
        let mut ways = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = vec![(from, Vec::new())];
        while !next.is_empty() {
            let mut further = Vec::new();
            for (id, way) in next {
                for on in self.uses.get(id).into_iter().flatten() {
                    if !seen.insert(*on) {
                        continue;
                    }
                    let name = self.names.get(on).copied().unwrap_or_default();
                    let mut way: Vec<&str> = way.clone();
                    way.push(name);
                    let is_forbidden = |word: &&str| {
                        name.strip_prefix(*word).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                    };
                    if FORBIDDEN_BELOW.iter().any(is_forbidden) {
                        ways.push(way);
                    } else {
                        further.push((*on, way));
                    }
                }
            }
            next = further;
        }
        ways
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn direct_and_indirect_edges_are_found() {
        let package = |name: &str, folder: &str, uses: &[&str]| {
            let dependencies: Vec<_> = uses.iter().map(|on| json!({"name": on, "kind": null})).collect();
            json!({"id": name, "name": name, "manifest_path": format!("/r/{folder}/Cargo.toml"), "dependencies": dependencies})
        };
        let node = |name: &str, uses: &[(&str, Option<&str>)]| {
            let deps: Vec<_> =
                uses.iter().map(|(on, kind)| json!({"pkg": on, "dep_kinds": [{"kind": kind}]})).collect();
            json!({"id": name, "deps": deps})
        };
        let metadata = json!({
            "workspace_members": ["scantling-a", "scantling-b", "scantling-run"],
            "packages": [
                package("scantling-a", "crates/model/a", &["serde", "regex"]),
                package("scantling-b", "crates/logic/b", &["scantling-a", "scantling-run"]),
                package("scantling-run", "crates/io/run", &["scantling-sandbox", "tokio"]),
                package("regex", "x", &[]),
                package("serde", "x", &[]),
                package("tokio", "x", &[]),
                package("tokio-util", "x", &[]),
            ],
            "resolve": {"nodes": [
                node("scantling-a", &[("serde", None), ("regex", None)]),
                node("regex", &[("tokio-util", None), ("tokio", Some("build"))]),
                node("scantling-b", &[("serde", None), ("tokio", Some("dev"))]),
            ]},
        });
        let mut breaches = Vec::new();
        super::check(&metadata, &mut breaches);
        let expected = [
            "scantling-a uses regex: model crates are pure",
            "scantling-a uses regex > tokio-util: ",
            "scantling-b (logic) uses scantling-run (io): ",
            "scantling-run uses scantling-sandbox: only ",
        ];
        assert_eq!(breaches.len(), expected.len(), "{breaches:#?}");
        for (breach, expected) in breaches.iter().zip(expected) {
            assert!(breach.starts_with(expected), "{breach} is not {expected}");
        }
    }
}
