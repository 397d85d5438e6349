//! Conditions of a status.

use serde_json::Value;

/// A condition to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) status: bool,
    /// Where somebody should look. Clients of notebooks show a condition that has a reason as a warning.
    pub(crate) reason: Option<&'static str>,
    pub(crate) message: String,
}

impl Condition {
    /// Nothing to look at.
    pub(crate) fn good(kind: &'static str, status: bool, message: String) -> Self {
        Self { kind, status, reason: None, message }
    }

    /// Somebody should look.
    pub(crate) fn bad(kind: &'static str, status: bool, reason: &'static str, message: String) -> Self {
        Self { kind, status, reason: Some(reason), message }
    }

    /// `True` or `False`.
    pub(crate) fn word(&self) -> &'static str {
        if self.status { "True" } else { "False" }
    }

    /// When its status last changed: now, if it does now.
    pub(crate) fn since<'a>(&self, live: Option<&'a Value>, now: &'a str) -> &'a str {
        live.filter(|live| live.get("status").and_then(Value::as_str) == Some(self.word()))
            .and_then(|live| live.get("lastTransitionTime"))
            .and_then(Value::as_str)
            .unwrap_or(now)
    }

    /// Does the live condition say something else?
    pub(crate) fn is_news(&self, live: Option<&Value>) -> bool {
        let text = |name: &str| live.and_then(|live| live.get(name)).and_then(Value::as_str);
        text("status") != Some(self.word()) || text("reason") != self.reason
    }
}

/// The condition of this kind in an object's status.
pub(crate) fn live<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object
        .pointer("/status/conditions")?
        .as_array()?
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}
