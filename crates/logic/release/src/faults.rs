//! What is wrong with a release file although it decodes.

use std::collections::BTreeSet;

use scantling_finding::{Finding, codes};
use scantling_yaml::Node;

use crate::format::ReleaseFile;
use crate::read::at;
use crate::source::Source;
use crate::{generated, offer};

/// Everything that its types cannot tell, each with its place.
pub(crate) fn faults(source: &Source<'_>, root: &Node, file: &ReleaseFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut bad = |pointer: &str, message: String| {
        findings.push(Finding::new(codes::release::BAD_RELEASE_FILE, message, at(source, root, pointer)));
    };
    if !is_name(&file.name) {
        bad("/name", format!("{:?} is no name: write lower-case letters, digits and -", file.name));
    }
    if file.namespace.as_deref().is_some_and(|namespace| !is_name(namespace)) {
        bad("/namespace", "not the name of a namespace".to_owned());
    }
    for (number, version) in file.follows.iter().enumerate() {
        if *version >= file.version {
            bad(
                &format!("/follows/{number}"),
                format!("{} cannot follow {version}, which is not older", file.version),
            );
        }
    }
    let manifests: Vec<&str> = file.manifests.iter().map(|entry| entry.path.as_str()).collect();
    let sources: Vec<&str> = file.sources.iter().map(String::as_str).collect();
    for (list, paths) in [("manifests", manifests), ("sources", sources)] {
        for (number, path) in paths.into_iter().enumerate() {
            if path.starts_with('/') || path.contains('\\') || path.split('/').any(|part| part == "..") {
                let message = format!("{path:?} leads out of the release; write a path below it, with /");
                bad(&format!("/{list}/{number}"), message);
            }
        }
    }
    if file.manifests.is_empty() {
        bad("/manifests", "no manifests: there is nothing to apply".to_owned());
    }
    for (number, substitution) in file.substitutions.iter().enumerate() {
        if substitution.placeholder.trim().is_empty() {
            bad(&format!("/substitutions/{number}/placeholder"), "an empty placeholder".to_owned());
        }
        if substitution.value.trim().is_empty() {
            bad(
                &format!("/substitutions/{number}/value"),
                format!("{:?} would be replaced by nothing", substitution.placeholder),
            );
        }
    }
    for (number, entry) in file.environments.iter().enumerate() {
        if entry.registries.is_empty() && entry.registry.is_none() {
            bad(
                &format!("/environments/{number}/registries"),
                "no registry: nothing could be pulled".to_owned(),
            );
        }
        if entry.registry.is_some() && file.registry.is_none() {
            bad(
                &format!("/environments/{number}/registry"),
                "nothing stands for it: declare `registry: {placeholder: …}`".to_owned(),
            );
        }
    }
    if let Some(registry) = &file.registry {
        let placeholder = &registry.placeholder;
        if placeholder.trim().is_empty() {
            bad("/registry/placeholder", "an empty placeholder".to_owned());
        } else if file.substitutions.iter().any(|substitution| substitution.placeholder == *placeholder) {
            bad("/registry/placeholder", "a substitution fills the same placeholder".to_owned());
        }
    }
    for (pointer, message) in components(file).into_iter().chain(offer::faults(file)) {
        bad(&pointer, message);
    }
    for fault in generated::check(&file.generated) {
        bad(&format!("/generated/{}/{}", fault.number, fault.field), fault.reason);
    }
    findings
}

/// Components that are declared wrongly, or named and not declared: pointers into the file, and why.
fn components(file: &ReleaseFile) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    let mut declared = BTreeSet::new();
    for (number, component) in file.components.iter().enumerate() {
        let at = format!("/components/{number}/name");
        if !is_name(&component.name) {
            let message = format!("{:?} is no name: write lower-case letters, digits and -", component.name);
            faults.push((at, message));
        } else if !declared.insert(component.name.as_str()) {
            faults.push((at, format!("{} is declared twice", component.name)));
        }
    }
    let manifests =
        file.manifests.iter().enumerate().filter_map(|(number, entry)| {
            Some((format!("/manifests/{number}"), entry.component.as_deref()?))
        });
    let images = file.catalogue.iter().flat_map(|catalogue| &catalogue.images).enumerate();
    let images = images.filter_map(|(number, image)| {
        Some((format!("/catalogue/images/{number}"), image.component.as_deref()?))
    });
    for (pointer, name) in manifests.chain(images) {
        if !declared.contains(name) {
            let mut message = format!("the component {name:?} is not declared under `components:`");
            if let Some(near) = scantling_yaml::nearest(name, declared.iter().copied()) {
                message = format!("{message}; did you mean {near}?");
            }
            faults.push((format!("{pointer}/component"), message));
        }
    }
    let mut paths = BTreeSet::new();
    for (number, entry) in file.manifests.iter().enumerate() {
        if !paths.insert(normal(&entry.path)) {
            faults.push((format!("/manifests/{number}"), format!("{} is listed twice", entry.path)));
        }
    }
    faults
}

/// A path as files of a tree begin with it.
pub(crate) fn normal(path: &str) -> &str {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if path == "." { "" } else { path }
}

/// A DNS label, which names of namespaces are.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
