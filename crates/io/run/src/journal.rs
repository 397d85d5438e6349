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

/// The only format that is written; another one is refused, for it may say what this program does not know.
const FORMAT: &str = "1";

/// Why a journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JournalError {
    #[error(
        "the journal in ConfigMap {SYSTEM_NAMESPACE}/{JOURNAL_NAME} has format \"{found}\", this program knows {FORMAT}; use the program that wrote it, or a newer one"
    )]
    Format { found: String },
    #[error(
        "the journal in ConfigMap {SYSTEM_NAMESPACE}/{JOURNAL_NAME} cannot be read: {reason}; restore the ConfigMap, or delete it: what an unfinished run created is then never pruned"
    )]
    Damaged { reason: String },
    #[error("the journal cannot be written as JSON: {reason}")]
    NotWritable { reason: String },
}

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
    /// Reads the journal's `ConfigMap`.
    pub(crate) fn read(map: &Value) -> Result<Self, JournalError> {
        let text = |name: &str| object::text(map, &format!("/data/{name}")).to_owned();
        if text("format") != FORMAT {
            return Err(JournalError::Format { found: text("format") });
        }
        let open = match text("phase").as_str() {
            "open" => true,
            "closed" => false,
            other => return Err(JournalError::Damaged { reason: format!("its phase is \"{other}\"") }),
        };
        let creates = serde_json::from_str(&text("creates"))
            .map_err(|e| JournalError::Damaged { reason: format!("creates: {e}") })?;
        Ok(Self {
            release: text("release"),
            version: text("version"),
            started: text("started"),
            reached: text("reached"),
            creates,
            open,
        })
    }

    pub(crate) fn to_config_map(&self) -> Result<Value, JournalError> {
        let creates = serde_json::to_string(&self.creates)
            .map_err(|e| JournalError::NotWritable { reason: e.to_string() })?;
        Ok(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": JOURNAL_NAME, "namespace": SYSTEM_NAMESPACE},
            "data": {
                "format": FORMAT,
                "release": self.release,
                "version": self.version,
                "started": self.started,
                "reached": self.reached,
                "creates": creates,
                "phase": if self.open { "open" } else { "closed" },
            },
        }))
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
    #![allow(clippy::unwrap_used)]
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
        let map = journal.to_config_map().unwrap();
        assert_eq!(Journal::read(&map), Ok(journal.clone()));
        assert!(journal.reach(Stage::Verify) && !journal.reach(Stage::Verify));
    }

    #[test]
    fn damage_and_other_formats_are_refused() {
        let data = |format: &str, creates: &str, phase: &str| json!({"data": {"format": format, "creates": creates, "phase": phase}});
        assert!(Journal::read(&data("1", "[]", "closed")).is_ok());
        for (map, format) in [
            (data("9", "[]", "open"), true),
            (json!({}), true),
            (data("1", "", "open"), false),
            (data("1", "[", "open"), false),
            (data("1", "[]", ""), false),
        ] {
            let error = Journal::read(&map).unwrap_err();
            assert_eq!(matches!(error, JournalError::Format { .. }), format, "{map}");
        }
    }
}
