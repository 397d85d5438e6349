//! The journal: that a run is under way, which release it brings, and what it is about to create and to change.
//!
//! Every step can be repeated, so the journal need not name each write. It must name what cannot be read from the objects
//! afterwards: that a run did not end, which objects it set out to create (only those may ever be pruned), and what it set
//! out to make of the fields of others (which is no person's edit when another run finds it). What an open journal says
//! of objects is taken over by the run that comes after it, whichever release that brings, until one ends whole.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::{ObjectKey, object};
use scantling_plan::{Step, Traces};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::Stage;
use crate::packed::{gunzip, gzip};
use crate::state::SYSTEM_NAMESPACE;

/// The `ConfigMap` of the journal.
pub const JOURNAL_NAME: &str = "scantling-journal";

/// The only format that is written; another one is refused, for it may say what this program does not know.
const FORMAT: &str = "1";

/// Compressed bytes of what a run makes of fields: a `ConfigMap` may hold 1 MiB, base64 adds a third, and there is more in it.
/// Of a run with more than that, which would change tens of thousands of fields, only what it takes away is written down.
const TRACES: usize = 500_000;

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

/// What a run is to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Bring a release, whatever was there before.
    #[default]
    Upgrade,
    /// Bring an earlier release again.
    Rollback,
    /// Take the release away.
    Uninstall,
}

impl Action {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Rollback => "rollback",
            Self::Uninstall => "uninstall",
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A run that has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) action: Action,
    pub(crate) holder: String,
    pub(crate) release: String,
    pub(crate) version: String,
    pub(crate) started: String,
    /// The stage that was reached last.
    pub(crate) reached: String,
    /// Objects that did not exist when the run was planned.
    pub(crate) creates: BTreeSet<ObjectKey>,
    /// What it, and unfinished runs before it, set out to make of fields that were there.
    pub(crate) traces: BTreeMap<ObjectKey, Traces>,
    pub(crate) open: bool,
    /// Whether a person has stopped it, so that only a person goes on with it.
    pub(crate) paused: bool,
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
        let damaged = |reason: String| JournalError::Damaged { reason: format!("creates: {reason}") };
        let packed =
            STANDARD.decode(object::text(map, "/binaryData/creates")).map_err(|e| damaged(e.to_string()))?;
        let creates = gunzip(&packed).map_err(damaged)?;
        let creates = serde_json::from_slice(&creates).map_err(|e| damaged(e.to_string()))?;
        let traces = match object::text(map, "/binaryData/traces") {
            "" => BTreeMap::new(),
            packed => read_traces(packed)
                .map_err(|reason| JournalError::Damaged { reason: format!("traces: {reason}") })?,
        };
        let action = serde_json::from_value(json!(text("action")))
            .map_err(|e| JournalError::Damaged { reason: format!("action: {e}") })?;
        Ok(Self {
            action,
            holder: text("holder"),
            release: text("release"),
            version: text("version"),
            started: text("started"),
            reached: text("reached"),
            creates,
            traces,
            open,
            paused: text("paused") == "true",
        })
    }

    pub(crate) fn to_config_map(&self) -> Result<Value, JournalError> {
        let not_writable = |reason: String| JournalError::NotWritable { reason };
        let creates = serde_json::to_vec(&self.creates).map_err(|e| not_writable(e.to_string()))?;
        // Keys repeat each other; as they are, those of some thousand objects would not fit into one ConfigMap.
        let creates = STANDARD.encode(gzip(&creates).map_err(not_writable)?);
        let mut binary = json!({"creates": creates});
        if !self.traces.is_empty() {
            binary["traces"] = json!(STANDARD.encode(self.packed_traces().map_err(not_writable)?));
        }
        Ok(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": JOURNAL_NAME, "namespace": SYSTEM_NAMESPACE},
            "data": {
                "format": FORMAT,
                "action": self.action.as_str(),
                "holder": self.holder,
                "release": self.release,
                "version": self.version,
                "started": self.started,
                "reached": self.reached,
                "phase": if self.open { "open" } else { "closed" },
                "paused": self.paused.to_string(),
            },
            "binaryData": binary,
        }))
    }

    /// What is made of fields, in as many bytes as there is room for.
    fn packed_traces(&self) -> Result<Vec<u8>, String> {
        let pack = |traces: &[(&ObjectKey, Traces)]| {
            gzip(&serde_json::to_vec(traces).map_err(|error| error.to_string())?)
        };
        let all: Vec<_> = self.traces.iter().map(|(key, traces)| (key, traces.clone())).collect();
        let packed = pack(&all)?;
        if packed.len() <= TRACES {
            return Ok(packed);
        }
        let fewer: Vec<_> = all.into_iter().map(|(key, traces)| (key, traces.without_values())).collect();
        pack(&fewer)
    }

    /// Notes what a step that is about to be taken makes of fields.
    pub(crate) fn note(&mut self, step: &Step) {
        if step.writes() && !step.traces.is_empty() {
            self.traces.entry(step.key.clone()).or_default().extend(&step.traces);
        }
    }

    pub(crate) fn reach(&mut self, stage: Stage) -> bool {
        let reached = stage.to_string();
        let moved = self.reached != reached;
        self.reached = reached;
        moved
    }
}

fn read_traces(packed: &str) -> Result<BTreeMap<ObjectKey, Traces>, String> {
    let packed = STANDARD.decode(packed).map_err(|error| error.to_string())?;
    let traces: Vec<(ObjectKey, Traces)> =
        serde_json::from_slice(&gunzip(&packed)?).map_err(|error| error.to_string())?;
    Ok(traces.into_iter().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn traces() -> Traces {
        serde_json::from_value(json!({".data.a": {"removed": true}, ".data.b": {"values": ["c"]}})).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut journal = Journal {
            action: Action::Rollback,
            holder: "cli/a".into(),
            release: "r".into(),
            version: "1".into(),
            started: "2022-01-01T00:00:00Z".into(),
            reached: "apply".into(),
            creates: BTreeSet::from([ObjectKey::cluster("", "Namespace", "a")]),
            traces: BTreeMap::from([(ObjectKey::cluster("", "Namespace", "a"), traces())]),
            open: true,
            paused: true,
        };
        let map = journal.to_config_map().unwrap();
        assert_eq!(Journal::read(&map), Ok(journal.clone()));
        assert!(journal.reach(Stage::Verify) && !journal.reach(Stage::Verify));
    }

    #[test]
    fn damage_and_other_formats_are_refused() {
        let data = |format: &str, creates: &str, phase: &str| {
            let creates = STANDARD.encode(gzip(creates.as_bytes()).unwrap());
            json!({
                "data": {"format": format, "phase": phase, "action": "upgrade"},
                "binaryData": {"creates": creates},
            })
        };
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
