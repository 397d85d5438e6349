//! Scopes of rules: a registry, a namespace, a repository, or all subdomains of a host.

use scantling_image::{Reference, canonical_registry};

/// What a rule is about: `host[:port][/path]`, or `*.domain` for every host below a domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope(String);

impl Scope {
    /// Reads a scope. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(domain) = text.strip_prefix("*.") {
            if domain.is_empty() || domain.contains(['/', '@', ':', '*']) {
                return Err(format!(
                    "`{text}`: a wildcard is written *.DOMAIN, without port, path or digest"
                ));
            }
            host_and_path(&format!("{domain}/x")).map_err(|problem| format!("`{text}`: {problem}"))?;
            return Ok(Self(format!("*.{}", domain.to_ascii_lowercase())));
        }
        let (host, path) = host_and_path(text).map_err(|problem| format!("`{text}`: {problem}"))?;
        Ok(Self(if path.is_empty() { host } else { format!("{host}/{path}") }))
    }

    /// How much of a repository's full name the scope covers, in bytes; `None` if it does not cover the name.
    ///
    /// A scope ends at a path separator. Unlike `containers/image`, whose documentation calls that unintended, a host
    /// without port does not cover the same host with a port.
    pub(crate) fn covers(&self, name: &str) -> Option<usize> {
        if let Some(domain) = self.0.strip_prefix('*') {
            let host = name.split('/').next().unwrap_or(name);
            let bare = host.split(':').next().unwrap_or(host);
            return (bare.len() > domain.len() && bare.ends_with(domain)).then_some(bare.len());
        }
        let rest = name.strip_prefix(self.0.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then_some(self.0.len())
    }

    /// The text; its length decides which of several covering scopes counts.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// True for `*.domain`.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.0.starts_with("*.")
    }
}

/// A mirror's or registry's location: host and, perhaps empty, path.
pub(crate) fn host_and_path(text: &str) -> Result<(String, String), String> {
    let (host, path) = text.split_once('/').unwrap_or((text, ""));
    if path.is_empty() && text.contains('/') {
        return Err("a slash at the end".to_owned());
    }
    // A reference checks the grammar of both; a path component stands in where only a host is given.
    let probe = if path.is_empty() { format!("{host}/x") } else { text.to_owned() };
    let reference = Reference::parse(&probe).map_err(|error| error.message())?;
    if reference.tag().is_some() || reference.digest().is_some() {
        return Err("a tag or digest does not belong in a rule".to_owned());
    }
    if reference.domain().is_none() && host != "localhost" {
        return Err(format!("`{host}` is no registry: a host has a dot or a port, or is localhost"));
    }
    Ok((canonical_registry(host), path.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn covered_names() {
        let check = |scope: &str, name: &str, covered: Option<&str>| {
            let found = Scope::parse(scope).unwrap().covers(name);
            assert_eq!(found.map(|length| &name[..length]), covered, "{scope} {name}");
        };
        check("quay.io", "quay.io/a/b", Some("quay.io"));
        check("quay.io/a", "quay.io/a/b", Some("quay.io/a"));
        check("quay.io/a/b", "quay.io/a/b", Some("quay.io/a/b"));
        check("quay.io/a", "quay.io/ab", None);
        check("quay.io", "quay.io.example.com/a", None);
        check("example.com", "example.com:5000/a", None);
        check("example.com:5000", "example.com:5000/a", Some("example.com:5000"));
        check("*.example.com", "a.b.example.com/x", Some("a.b.example.com"));
        check("*.example.com", "a.example.com:5000/x", Some("a.example.com"));
        check("*.example.com", "example.com/x", None);
        check("*.example.com", "quay.io/a.example.com/x", None);
        check("Quay.IO/a", "quay.io/a/b", Some("quay.io/a"));
        check("index.docker.io", "docker.io/library/a", Some("docker.io"));
    }

    #[test]
    fn what_is_no_scope() {
        for text in
            ["", "*", "*.", "*.a.example/b", "quay.io/", "quay.io/a:1", "quay/a", "https://quay.io", "a b.c"]
        {
            assert!(Scope::parse(text).is_err(), "{text}");
        }
    }
}
