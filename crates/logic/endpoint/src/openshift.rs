//! Mirror rules and registry policies in OpenShift's objects.

use serde_json::Value;

use crate::mirrors::{Mirrors, MirrorsError};
use crate::scope::{Scope, host_and_path};

/// How messages name the object: `ImageDigestMirrorSet lab`.
pub(crate) fn origin(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("(unnamed)");
    format!("{} {}", text("/kind"), text("/metadata/name"))
}

pub(crate) fn add(mirrors: &mut Mirrors, object: &Value) -> Result<bool, MirrorsError> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let group = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .and_then(|version| version.split_once('/'))
        .map_or("", |(group, _)| group);
    let reader = Reader { origin: origin(object) };
    match (group, kind) {
        ("config.openshift.io", "ImageDigestMirrorSet") => {
            reader.sets(mirrors, object, "imageDigestMirrors", true, true)?;
        }
        ("config.openshift.io", "ImageTagMirrorSet") => {
            reader.sets(mirrors, object, "imageTagMirrors", false, true)?;
        }
        ("operator.openshift.io", "ImageContentSourcePolicy") => {
            reader.sets(mirrors, object, "repositoryDigestMirrors", true, false)?;
        }
        ("config.openshift.io", "Image") => reader.sources(mirrors, object)?,
        _ => return Ok(false),
    }
    Ok(true)
}

struct Reader {
    origin: String,
}

impl Reader {
    fn error(&self, field: &str, problem: impl Into<String>) -> MirrorsError {
        MirrorsError::Field { origin: self.origin.clone(), field: field.to_owned(), problem: problem.into() }
    }

    fn sets(
        &self,
        mirrors: &mut Mirrors,
        object: &Value,
        list: &str,
        for_digests: bool,
        with_policy: bool,
    ) -> Result<(), MirrorsError> {
        let path = format!(".spec.{list}");
        let sets = match object.get("spec").and_then(|spec| spec.get(list)) {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(sets)) => sets,
            Some(_) => return Err(self.error(&path, "a list is needed")),
        };
        for (place, set) in sets.iter().enumerate() {
            let path = format!("{path}[{place}]");
            let source = set
                .get("source")
                .and_then(Value::as_str)
                .ok_or_else(|| self.error(&format!("{path}.source"), "a text is needed"))?;
            let scope =
                Scope::parse(source).map_err(|problem| self.error(&format!("{path}.source"), problem))?;
            let locations = self.texts(set.get("mirrors"), &format!("{path}.mirrors"))?;
            for (index, location) in locations.iter().enumerate() {
                host_and_path(location)
                    .map_err(|problem| self.error(&format!("{path}.mirrors[{index}]"), problem))?;
            }
            let never = match set.get("mirrorSourcePolicy").and_then(Value::as_str) {
                _ if !with_policy => false,
                None | Some("AllowContactingSource" | "") => false,
                Some("NeverContactSource") => true,
                Some(other) => {
                    let problem =
                        format!("`{other}` is neither AllowContactingSource nor NeverContactSource");
                    return Err(self.error(&format!("{path}.mirrorSourcePolicy"), problem));
                }
            };
            // A set that repeats only the source is no rule; OpenShift drops it with its policy.
            if locations.iter().all(|location| location == source) {
                continue;
            }
            let rule = mirrors.entry(scope, &self.origin);
            rule.blocked |= never;
            if for_digests { &mut rule.for_digests } else { &mut rule.for_tags }.push(locations);
        }
        Ok(())
    }

    fn sources(&self, mirrors: &mut Mirrors, object: &Value) -> Result<(), MirrorsError> {
        let Some(sources) = object.pointer("/spec/registrySources") else {
            return Ok(());
        };
        let scopes = |field: &str| {
            let path = format!(".spec.registrySources.{field}");
            self.texts(sources.get(field), &path)?
                .iter()
                .enumerate()
                .map(|(place, text)| {
                    Scope::parse(text).map_err(|problem| self.error(&format!("{path}[{place}]"), problem))
                })
                .collect::<Result<Vec<_>, _>>()
        };
        for scope in scopes("insecureRegistries")? {
            mirrors.insecure.insert(scope, self.origin.clone());
        }
        for scope in scopes("blockedRegistries")? {
            mirrors.blocked.insert(scope, self.origin.clone());
        }
        let allowed = scopes("allowedRegistries")?;
        if !allowed.is_empty() {
            mirrors.allowed = Some((self.origin.clone(), allowed));
        }
        let search = self.texts(
            sources.get("containerRuntimeSearchRegistries"),
            ".spec.registrySources.containerRuntimeSearchRegistries",
        )?;
        if !search.is_empty() {
            mirrors.search = search;
        }
        Ok(())
    }

    fn texts(&self, value: Option<&Value>, path: &str) -> Result<Vec<String>, MirrorsError> {
        match value {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(place, item)| {
                    item.as_str()
                        .map(str::to_owned)
                        .ok_or_else(|| self.error(&format!("{path}[{place}]"), "a text is needed"))
                })
                .collect(),
            Some(_) => Err(self.error(path, "a list is needed")),
        }
    }
}
