//! Conditions of a status.

use serde_json::{Value, json};

/// A condition to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) status: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    /// As it goes into the status: the time is that of the last change of `status`.
    pub(crate) fn to_json(&self, live: Option<&Value>, now: &str) -> Value {
        let status = if self.status { "True" } else { "False" };
        let since = live
            .filter(|live| live.get("status").and_then(Value::as_str) == Some(status))
            .and_then(|live| live.get("lastTransitionTime"))
            .and_then(Value::as_str)
            .unwrap_or(now);
        json!({
            "type": self.kind, "status": status, "reason": self.reason, "message": self.message,
            "lastTransitionTime": since,
        })
    }

    /// Does the live condition say something else?
    pub(crate) fn is_news(&self, live: Option<&Value>) -> bool {
        let status = if self.status { "True" } else { "False" };
        let text = |name: &str| live.and_then(|live| live.get(name)).and_then(Value::as_str);
        text("status") != Some(status) || text("reason") != Some(self.reason)
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
