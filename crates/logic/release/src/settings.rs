//! What an admin decides about a release: where its images live, which environment it is for, which components it has.

use std::collections::BTreeSet;

use scantling_finding::{Code, Finding, Place, codes};
use scantling_image::Reference;
use scantling_yaml::Node;
use serde::{Deserialize, Serialize};

use crate::Substitution;
use crate::format::ReleaseFile;
use crate::read::at;
use crate::source::Source;

/// What an admin decides about a release. The default decides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Where the release's images live, as `HOST[/PREFIX]`; goes before what the environment says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// One of the release's environments; without it, the release is held against all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Components to have that are left out otherwise.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub with: BTreeSet<String>,
    /// Components to leave out that are there otherwise.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub without: BTreeSet<String>,
}

impl Settings {
    /// Whether nothing is decided.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What settings come to for one release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// What stands for the registry's placeholder.
    pub(crate) registry: Option<Substitution>,
    /// The components that are there.
    pub(crate) components: BTreeSet<String>,
}

impl Chosen {
    /// Whether what belongs to a component, or to none, is there.
    pub(crate) fn has(&self, component: Option<&String>) -> bool {
        component.is_none_or(|component| self.components.contains(component))
    }
}

/// Settings for a plain folder: it knows none.
pub(crate) fn for_folder(settings: &Settings, place: &Place) -> Result<Chosen, Vec<Finding>> {
    if settings.is_empty() {
        return Ok(Chosen::default());
    }
    let message = "a folder without a release.yaml has neither registry nor environments nor components";
    Err(vec![
        Finding::new(codes::release::UNKNOWN_SETTING, message, place.clone())
            .with_remedy("leave the setting out, or write a release.yaml"),
    ])
}

/// Holds settings against a release file. `lenient` leaves out what the release does not know: settings are made for the
/// release that comes, and the one before it is read with the same ones.
pub(crate) fn resolve(
    settings: &Settings,
    file: &ReleaseFile,
    source: &Source<'_>,
    root: &Node,
    lenient: bool,
) -> Result<Chosen, Vec<Finding>> {
    let mut resolver = Resolver { settings, file, source, root, lenient, findings: Vec::new() };
    let components = resolver.components();
    let registry = resolver.registry();
    if resolver.findings.is_empty() { Ok(Chosen { registry, components }) } else { Err(resolver.findings) }
}

struct Resolver<'r> {
    settings: &'r Settings,
    file: &'r ReleaseFile,
    source: &'r Source<'r>,
    root: &'r Node,
    lenient: bool,
    findings: Vec<Finding>,
}

impl Resolver<'_> {
    fn place(&self, pointer: &str) -> Place {
        at(self.source, self.root, pointer)
    }

    fn fault(&mut self, code: Code, message: String, pointer: &str, remedy: Option<String>) {
        let finding = Finding::new(code, message, self.place(pointer));
        self.findings.push(match remedy {
            Some(remedy) => finding.with_remedy(remedy),
            None => finding,
        });
    }

    fn unknown(&mut self, what: &str, name: &str, known: &[&str], pointer: &str) {
        if self.lenient {
            return;
        }
        let message = match known {
            [] => format!("there is no {what} {name:?}: the release has none"),
            known => format!("there is no {what} {name:?}: the release has {}", known.join(", ")),
        };
        let near = scantling_yaml::nearest(name, known.iter().copied());
        let remedy = near.map(|near| format!("did you mean {near}?"));
        self.fault(codes::release::UNKNOWN_SETTING, message, pointer, remedy);
    }

    fn components(&mut self) -> BTreeSet<String> {
        let (settings, file) = (self.settings, self.file);
        let known: Vec<&str> = file.components.iter().map(|component| component.name.as_str()).collect();
        for name in settings.with.union(&settings.without) {
            if !known.contains(&name.as_str()) {
                self.unknown("component", name, &known, "/components");
            } else if settings.with.contains(name) && settings.without.contains(name) {
                let message = format!("the component {name} is both asked for and left out");
                let remedy = "give one of --with and --without".to_owned();
                self.fault(codes::release::UNKNOWN_SETTING, message, "/components", Some(remedy));
            }
        }
        file.components
            .iter()
            .filter(|component| {
                settings.with.contains(&component.name)
                    || component.default && !settings.without.contains(&component.name)
            })
            .map(|component| component.name.clone())
            .collect()
    }

    fn registry(&mut self) -> Option<Substitution> {
        let (settings, file) = (self.settings, self.file);
        let environment = settings.environment.as_ref().and_then(|name| {
            let found = file.environments.iter().position(|environment| environment.name == *name);
            if found.is_none() {
                let known: Vec<&str> = file.environments.iter().map(|e| e.name.as_str()).collect();
                self.unknown("environment", name, &known, "/environments");
            }
            found
        });
        let Some(declared) = &file.registry else {
            if let Some(registry) = settings.registry.as_ref().filter(|_| !self.lenient) {
                let message = format!("nothing in the release stands for the registry {registry}");
                let remedy = "leave --registry out, or declare `registry: {placeholder: …}` in release.yaml"
                    .to_owned();
                self.fault(codes::release::UNKNOWN_SETTING, message, "/name", Some(remedy));
            }
            return None;
        };
        let own = environment
            .and_then(|number| Some((number, file.environments.get(number)?.registry.as_ref()?)))
            .map(|(number, address)| (address, format!("/environments/{number}/registry")));
        let given = settings.registry.as_ref().map(|address| (address, "/registry/placeholder".to_owned()));
        let Some((address, pointer)) = given.or(own) else {
            let some: Vec<&str> = file
                .environments
                .iter()
                .filter(|environment| environment.registry.is_some())
                .map(|environment| environment.name.as_str())
                .collect();
            let remedy = match some.as_slice() {
                [] => None,
                some => Some(format!(
                    "give --registry HOST[/PREFIX], or --environment with one of {}",
                    some.join(", ")
                )),
            };
            let message = format!("nothing says which registry {} stands for", declared.placeholder);
            self.fault(codes::release::REGISTRY_MISSING, message, "/registry/placeholder", remedy);
            return None;
        };
        if let Err(reason) = check_registry(address) {
            let message = format!("{:?} names no registry: {reason}", shortened(address));
            self.fault(codes::release::BAD_REGISTRY, message, &pointer, None);
            return None;
        }
        Some(Substitution { placeholder: declared.placeholder.clone(), value: address.clone() })
    }
}

/// Most of a wrong text that a message repeats.
const SHOWN: usize = 80;

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// Why a text is not a registry's host with the beginning of repositories behind it.
pub(crate) fn check_registry(text: &str) -> Result<(), String> {
    let host = text.split_once('/').map_or(text, |(host, _)| host);
    if text.contains("://") {
        return Err("a scheme such as https:// does not belong to it".to_owned());
    }
    if text.ends_with('/') {
        return Err("there is a / at its end".to_owned());
    }
    if !(host == "localhost" || host.contains(['.', ':'])) {
        // Docker's rule: a first part like this is the beginning of a repository on Docker Hub.
        return Err(format!("{host:?} is read as the beginning of a repository, not as a host"));
    }
    let image = Reference::parse(&format!("{text}/image")).map_err(|error| error.to_string())?;
    if image.tag().is_some() || image.digest().is_some() {
        return Err("a tag or digest does not belong to it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_a_host_with_the_beginning_of_repositories() {
        for text in ["registry.example.com", "10.0.0.1:5000", "localhost/x", "[::1]:5000/a/b", "quay.io/team"]
        {
            assert_eq!(check_registry(text), Ok(()), "{text}");
        }
        for (text, reason) in [
            ("", "not as a host"),
            ("registry", "not as a host"),
            ("team/images", "not as a host"),
            ("https://registry.example.com", "a scheme"),
            ("registry.example.com/", "/ at its end"),
            ("registry.example.com/Team", ""),
            ("registry.example.com/team:1", ""),
            ("registry.example.com/team@sha256", ""),
            ("${REGISTRY}", "not as a host"),
            ("registry.example.com/a b", ""),
        ] {
            match check_registry(text) {
                Err(said) => assert!(said.contains(reason), "{text:?}: {said}"),
                Ok(()) => assert!(reason.is_empty() && text.is_empty(), "{text:?} was taken"),
            }
        }
    }
}
