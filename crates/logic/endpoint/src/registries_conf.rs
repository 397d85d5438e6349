//! `registries.conf`, version 2, as `containers-registries.conf(5)` describes it.

use serde_json::{Map, Value};

use crate::mirrors::{Mirror, Mirrors, MirrorsError, PullFrom, Rule};
use crate::scope::{Scope, host_and_path};
use crate::toml;

pub(crate) fn add(mirrors: &mut Mirrors, origin: &str, text: &str) -> Result<(), MirrorsError> {
    let reader = Reader { origin };
    let root = toml::parse(text).map_err(|error| MirrorsError::Toml { origin: origin.to_owned(), error })?;
    let mut digest_only_everywhere = false;
    for (key, value) in &root {
        match key.as_str() {
            "unqualified-search-registries" => mirrors.search = reader.texts(key, value)?,
            "registries" => {
                return Err(reader.error(key, "this is version 1 of the format, version 2 is needed"));
            }
            // `registry` is read below; the others say how a node finds short names and credentials.
            "registry"
            | "short-name-mode"
            | "aliases"
            | "credential-helpers"
            | "additional-layer-store-auth-helper" => {}
            "mirror-by-digest-only" => digest_only_everywhere = reader.flag(key, value)?,
            _ => return Err(reader.error(key, "no such setting is known")),
        }
    }
    let entries = match root.get("registry") {
        None => return Ok(()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(reader.error("registry", "write [[registry]]")),
    };
    for (place, entry) in entries.iter().enumerate() {
        let path = format!("registry[{place}]");
        let entry = entry.as_object().ok_or_else(|| reader.error(&path, "write [[registry]]"))?;
        let (scope, rule) = reader.entry(entry, &path, digest_only_everywhere)?;
        match mirrors.rules.get_mut(&scope) {
            // Rules of cluster objects stay beside those of a node's file.
            Some(known) if !(known.for_digests.is_empty() && known.for_tags.is_empty()) => {
                known.origins.extend(rule.origins);
                known.location = rule.location;
                known.insecure |= rule.insecure;
                known.blocked |= rule.blocked;
                known.listed = rule.listed;
            }
            _ => {
                mirrors.rules.insert(scope, rule);
            }
        }
    }
    Ok(())
}

struct Reader<'a> {
    origin: &'a str,
}

impl Reader<'_> {
    fn error(&self, field: &str, problem: impl Into<String>) -> MirrorsError {
        MirrorsError::Field {
            origin: self.origin.to_owned(),
            field: field.to_owned(),
            problem: problem.into(),
        }
    }

    fn entry(
        &self,
        entry: &Map<String, Value>,
        path: &str,
        digest_only: bool,
    ) -> Result<(Scope, Rule), MirrorsError> {
        let mut rule = Rule { origins: vec![self.origin.to_owned()], ..Rule::default() };
        let (mut prefix, mut digest_only) = (None, digest_only);
        for (key, value) in entry {
            let path = format!("{path}.{key}");
            match key.as_str() {
                "prefix" => prefix = Some(self.text(&path, value)?).filter(|text| !text.is_empty()),
                "location" => {
                    rule.location = Some(self.text(&path, value)?).filter(|text| !text.is_empty());
                }
                "insecure" => rule.insecure = self.flag(&path, value)?,
                "blocked" => rule.blocked = self.flag(&path, value)?,
                "mirror-by-digest-only" => digest_only = self.flag(&path, value)?,
                "mirror" => rule.listed = self.mirrors(&path, value)?,
                _ => return Err(self.error(&path, "no such setting is known")),
            }
        }
        if let Some(location) = &rule.location {
            host_and_path(location).map_err(|problem| self.error(&format!("{path}.location"), problem))?;
        }
        if digest_only {
            if rule.listed.iter().any(|mirror| mirror.pull != PullFrom::All) {
                return Err(
                    self.error(path, "mirror-by-digest-only cannot be set together with pull-from-mirror")
                );
            }
            for mirror in &mut rule.listed {
                mirror.pull = PullFrom::DigestOnly;
            }
        }
        let scope = match (&prefix, &rule.location) {
            (Some(prefix), _) => prefix,
            (None, Some(location)) => location,
            (None, None) => return Err(self.error(path, "prefix or location is needed")),
        };
        let parsed = Scope::parse(scope).map_err(|problem| self.error(&format!("{path}.prefix"), problem))?;
        if rule.location.is_none() && !parsed.is_wildcard() {
            return Err(self.error(path, "location is needed beside a prefix without a wildcard"));
        }
        Ok((parsed, rule))
    }

    fn mirrors(&self, path: &str, value: &Value) -> Result<Vec<Mirror>, MirrorsError> {
        let Value::Array(items) = value else {
            return Err(self.error(path, "write [[registry.mirror]]"));
        };
        let mut mirrors = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            let path = format!("{path}[{place}]");
            let item = item.as_object().ok_or_else(|| self.error(&path, "a table is needed"))?;
            let mut mirror = Mirror { location: String::new(), insecure: false, pull: PullFrom::All };
            for (key, value) in item {
                let path = format!("{path}.{key}");
                match key.as_str() {
                    "location" => mirror.location = self.text(&path, value)?,
                    "insecure" => mirror.insecure = self.flag(&path, value)?,
                    "pull-from-mirror" => {
                        mirror.pull = match self.text(&path, value)?.as_str() {
                            "all" | "" => PullFrom::All,
                            "digest-only" => PullFrom::DigestOnly,
                            "tag-only" => PullFrom::TagOnly,
                            other => {
                                let problem = format!("`{other}` is none of all, digest-only and tag-only");
                                return Err(self.error(&path, problem));
                            }
                        }
                    }
                    _ => return Err(self.error(&path, "no such setting is known")),
                }
            }
            host_and_path(&mirror.location)
                .map_err(|problem| self.error(&format!("{path}.location"), problem))?;
            mirrors.push(mirror);
        }
        Ok(mirrors)
    }

    fn text(&self, path: &str, value: &Value) -> Result<String, MirrorsError> {
        value.as_str().map(str::to_owned).ok_or_else(|| self.error(path, "a text is needed"))
    }

    fn flag(&self, path: &str, value: &Value) -> Result<bool, MirrorsError> {
        value.as_bool().ok_or_else(|| self.error(path, "true or false is needed"))
    }

    fn texts(&self, path: &str, value: &Value) -> Result<Vec<String>, MirrorsError> {
        let items = value.as_array().ok_or_else(|| self.error(path, "a list is needed"))?;
        items.iter().map(|item| self.text(path, item)).collect()
    }
}
