//! What was asked of the API server, from its audit log.

use serde_json::Value;

/// A request that the API server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `create`, `patch`, `list`, …
    pub verb: String,
    /// The path and query.
    pub uri: String,
    /// The user, the impersonated one if there is one.
    pub user: String,
    /// What the client calls itself.
    pub agent: String,
    /// The status of the answer.
    pub code: u64,
}

impl Request {
    /// Reads the audit log.
    pub(crate) fn read(log: &str) -> Vec<Self> {
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).map(|event| Self::of(&event)).collect()
    }

    fn of(event: &Value) -> Self {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let person = text("/impersonatedUser/username");
        Self {
            verb: text("/verb"),
            uri: text("/requestURI"),
            user: if person.is_empty() { text("/user/username") } else { person },
            agent: text("/userAgent"),
            code: event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
        }
    }

    /// Whether it changed something, or was to.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            // Questions about rights are asked by POST, and a dry run leaves nothing.
            && !self.uri.contains("/apis/authorization.k8s.io/")
            && !self.uri.contains("/apis/authentication.k8s.io/")
            && !self.uri.contains("dryRun=All")
    }
}
