//! containerd's `hosts.toml`, as <https://github.com/containerd/containerd/blob/main/docs/hosts.md> describes it.

use scantling_image::canonical_registry;
use serde_json::{Map, Value};

use crate::mirrors::{Mirror, Mirrors, MirrorsError, PullFrom, Rule};
use crate::scope::{Scope, host_and_path};
use crate::toml;

pub(crate) fn add(
    mirrors: &mut Mirrors,
    origin: &str,
    registry: &str,
    text: &str,
) -> Result<(), MirrorsError> {
    let reader = Reader { origin };
    let (root, order) =
        toml::parse_ordered(text).map_err(|error| MirrorsError::Toml { origin: origin.to_owned(), error })?;
    let mut rule = Rule { origins: vec![origin.to_owned()], is_containerd: true, ..Rule::default() };
    let server = root.get("server").map(|server| reader.text("server", server)).transpose()?;
    let own: Map<String, Value> =
        root.iter().filter(|(key, _)| !matches!(key.as_str(), "server" | "host")).map(pair).collect();
    let own = reader.host("", server.as_deref().unwrap_or_default(), &own)?;
    if let Some(place) = own.filter(|place| !place.location.is_empty()) {
        rule.insecure = place.insecure;
        rule.location = Some(place.location);
    }
    let hosts = match root.get("host") {
        None => &Map::new(),
        Some(Value::Object(hosts)) => hosts,
        Some(_) => return Err(reader.error("host", "write [host.\"https://…\"]")),
    };
    // The order of the text is the order of asking.
    let mut names: Vec<&str> = Vec::new();
    for path in &order {
        if let [first, name, ..] = path.as_slice()
            && first == "host"
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
    }
    if names.len() != hosts.len() {
        return Err(reader.error("host", "write each as [host.\"https://…\"]; an inline table has no order"));
    }
    for name in names {
        let path = format!("host.{name:?}");
        let Some(Value::Object(settings)) = hosts.get(name) else {
            return Err(reader.error(&path, "a table is needed"));
        };
        rule.listed.extend(reader.host(&path, name, settings)?);
    }
    if registry == "_default" {
        mirrors.fallback = Some(rule);
    } else {
        let scope = Scope::parse(registry).map_err(|problem| reader.error("folder", problem))?;
        if scope.as_str().contains('/') || scope.is_wildcard() {
            return Err(reader.error("folder", "the name of a registry is needed, or _default"));
        }
        mirrors.rules.insert(scope, rule);
    }
    Ok(())
}

fn pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
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

    /// A host with its settings; `None` if it serves no pulls.
    fn host(
        &self,
        path: &str,
        url: &str,
        settings: &Map<String, Value>,
    ) -> Result<Option<Mirror>, MirrorsError> {
        let (mut pulls, mut resolves, mut override_path) = (true, true, false);
        for (key, value) in settings {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match key.as_str() {
                "capabilities" => {
                    let Value::Array(items) = value else {
                        return Err(self.error(&path, "a list is needed"));
                    };
                    let names =
                        items.iter().map(|item| self.text(&path, item)).collect::<Result<Vec<_>, _>>()?;
                    if let Some(other) = names.iter().find(|name| !is_capability(name)) {
                        return Err(self.error(&path, format!("`{other}` is none of pull, resolve and push")));
                    }
                    // An empty list means all, as containerd reads it.
                    let has = |wanted: &str| {
                        names.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(wanted))
                    };
                    (pulls, resolves) = (has("pull"), has("resolve"));
                }
                "override_path" => {
                    override_path =
                        value.as_bool().ok_or_else(|| self.error(&path, "true or false is needed"))?;
                }
                // How the connection is made, which does not change where it goes.
                "ca" | "client" | "header" | "skip_verify" | "dial_timeout" => {}
                _ => return Err(self.error(&path, "no such setting is known")),
            }
        }
        let field = if path.is_empty() { "server" } else { path };
        let (location, insecure) = self.location(field, url, override_path)?;
        if !pulls {
            return Ok(None);
        }
        let pull = if resolves { PullFrom::All } else { PullFrom::DigestOnly };
        Ok(Some(Mirror { location, insecure, pull }))
    }

    /// Host and repository prefix of an address. containerd adds `/v2` to the path unless told not to; a path in front of that
    /// cannot be said as a prefix of the repository.
    fn location(&self, field: &str, url: &str, override_path: bool) -> Result<(String, bool), MirrorsError> {
        if url.is_empty() {
            return Ok((String::new(), false));
        }
        let (insecure, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, url),
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        let prefix = match path.strip_prefix("v2/") {
            _ if path.is_empty() || path == "v2" => "",
            Some(prefix) if override_path => prefix,
            _ => {
                let problem = "only a path below /v2/ together with override_path is understood";
                return Err(self.error(field, format!("`{url}`: {problem}")));
            }
        };
        let host = canonical_registry(host);
        let location = if prefix.is_empty() { host.clone() } else { format!("{host}/{prefix}") };
        // containerd takes any name for a host here, so a lone name gets its default port for the check.
        let probe = if host.contains(['.', ':']) { location.clone() } else { format!("{host}:443/x") };
        host_and_path(&probe).map_err(|problem| self.error(field, format!("`{url}`: {problem}")))?;
        Ok((location, insecure))
    }

    fn text(&self, path: &str, value: &Value) -> Result<String, MirrorsError> {
        value.as_str().map(str::to_owned).ok_or_else(|| self.error(path, "a text is needed"))
    }
}

fn is_capability(name: &str) -> bool {
    ["pull", "resolve", "push"].iter().any(|known| name.eq_ignore_ascii_case(known))
}
