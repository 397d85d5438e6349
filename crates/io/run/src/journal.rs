//! The journal: that a run is under way, which release it brings, and what it is about to create.
//!
//! Every step can be repeated, so the journal need not name each write. It must name two things that cannot be read
//! from the objects afterwards: that a run did not end, and which objects it set out to create (only those may ever be pruned).

use std::collections::BTreeSet;

use scantling_api::{ObjectKey, object};
use serde_json::{Value, json};

use crate::event::Stage;
use crate::state::SYSTEM_NAMESPACE;

/// The `ConfigMap` of the journal.
pub const JOURNAL_NAME: &str = "scantling-journal";

/// A run that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) release: String,
    pub(crate) version: String,
    pub(crate) started: String,
    /// The stage that was reached last.
    pub(crate) reached: String,
    /// Objects that did not exist when the run was planned.
    pub(crate) creates: BTreeSet<ObjectKey>,
    pub(crate) open: bool,
}

impl Journal {
    /// Reads the journal's `ConfigMap`. None if it is none.
    pub(crate) fn read(map: &Value) -> Option<Self> {
        let text = |name: &str| object::text(map, &format!("/data/{name}")).to_owned();
        if text("format") != "1" {
            return None;
        }
        Some(Self {
            release: text("release"),
            version: text("version"),
            started: text("started"),
            reached: text("reached"),
            creates: serde_json::from_str(&text("creates")).ok()?,
            open: text("phase") == "open",
        })
    }

    pub(crate) fn to_config_map(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": JOURNAL_NAME, "namespace": SYSTEM_NAMESPACE},
            "data": {
                "format": "1",
                "release": self.release,
                "version": self.version,
                "started": self.started,
                "reached": self.reached,
                "creates": serde_json::to_string(&self.creates).unwrap_or_default(),
                "phase": if self.open { "open" } else { "closed" },
            },
        })
    }

    pub(crate) fn reach(&mut self, stage: Stage) -> bool {
        let reached = stage.to_string();
        let moved = self.reached != reached;
        self.reached = reached;
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut journal = Journal {
            release: "r".into(),
            version: "1".into(),
            started: "2022-01-01T00:00:00Z".into(),
            reached: "apply".into(),
            creates: BTreeSet::from([ObjectKey::cluster("", "Namespace", "a")]),
            open: true,
        };
        assert_eq!(Journal::read(&journal.to_config_map()), Some(journal.clone()));
        assert!(journal.reach(Stage::Verify) && !journal.reach(Stage::Verify));
        assert_eq!(Journal::read(&json!({"data": {"format": "9"}})), None);
    }
}
