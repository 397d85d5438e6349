//! Nothing is depended on for nothing.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::source::{Name, Source};
use super::{list, text};

/// Dependencies that no code names, and what each is there for.
const UNNAMED: [(&str, &str); 2] = [
    // kube leaves it to its user to say which version of the API's types it is built with.
    ("scantling-cluster", "k8s-openapi"),
    // A module of the tests on real clusters, which it shares, names it.
    ("xtask", "sha2"),
];

/// Finds dependencies that the code of their crate does not name.
pub(super) fn check(root: &Path, metadata: &Value, sources: &[Source], breaches: &mut Vec<String>) {
    let members: BTreeSet<&str> =
        list(metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    for package in list(metadata, "packages").iter().filter(|package| members.contains(text(package, "id"))) {
        let name = text(package, "name");
        let folder = Path::new(text(package, "manifest_path")).parent().unwrap_or(root);
        let Ok(folder) = folder.strip_prefix(root) else { continue };
        let folder = format!("{}/", folder.to_string_lossy().replace('\\', "/"));
        let own = || sources.iter().filter(|source| source.path.starts_with(&folder));
        let code = firsts(own().filter(|source| !source.is_test).flat_map(|source| &source.code));
        let all = firsts(own().flat_map(|source| source.code.iter().chain(&source.tests)));
        for dependency in list(package, "dependencies") {
            let on = text(dependency, "name");
            let is_dev = text(dependency, "kind") == "dev";
            let called = dependency.get("rename").and_then(Value::as_str).unwrap_or(on).replace('-', "_");
            let named = if is_dev { &all } else { &code };
            if named.contains(called.as_str()) || UNNAMED.contains(&(name, on)) {
                continue;
            }
            let where_to = if all.contains(called.as_str()) { ": only its tests do" } else { "" };
            breaches.push(format!("{name} depends on {on} and does not use it{where_to}"));
        }
    }
}

fn firsts<'a>(names: impl Iterator<Item = &'a Name>) -> BTreeSet<&'a str> {
    names.filter_map(|name| name.segments.first().map(String::as_str)).collect()
}
