//! What runs a cluster has seen: a bounded list, newest first.

use std::collections::BTreeMap;

use scantling_api::object;
use scantling_plan::Counts;
use scantling_reconcile::{Evidence, Promise};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::journal::Action;
use crate::report::RunError;
use crate::state::SYSTEM_NAMESPACE;

/// The `ConfigMap` of the history.
pub const HISTORY_NAME: &str = "scantling-history";
/// Runs that are kept: months of a platform's life, and far below the size of a `ConfigMap`.
const RUNS: usize = 20;
/// Characters of a reason that are kept: enough for an error with the name of an object.
const WHY_CHARACTERS: usize = 500;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Everything was done.
    Finished,
    /// It stopped in the middle.
    Stopped,
}

/// A run that changed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastRun {
    /// What it was to do.
    pub action: Action,
    /// Name of the release.
    pub release: String,
    /// The version that it brought or took away.
    pub version: String,
    /// The version that was there before, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// When it started (RFC 3339). A run that was continued started when its first part did.
    pub started: String,
    /// When it ended (RFC 3339).
    pub ended: String,
    /// Who did it, as the lease names it.
    pub holder: String,
    /// How it ended.
    pub outcome: Ended,
    /// How many objects were to end in which outcome, by its plan.
    pub counts: Counts,
    /// Requests that changed the cluster.
    pub writes: usize,
    /// Why it stopped, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What it found of the promises.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub promises: BTreeMap<Promise, Evidence>,
}

/// The runs that a cluster has seen, newest first. Runs that changed nothing are not among them.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn history(env: &Environment) -> Result<Vec<PastRun>, RunError> {
    let maps = env.system_maps().await.map_err(RunError::unread)?;
    Ok(read(&maps))
}

/// The history among the `ConfigMaps` of the system namespace. One that cannot be read is none: nothing depends on it.
pub(crate) fn read(maps: &[Value]) -> Vec<PastRun> {
    let map = maps.iter().find(|m| object::name(m) == HISTORY_NAME);
    map.and_then(|m| serde_json::from_str(object::text(m, "/data/runs")).ok()).unwrap_or_default()
}

/// The `ConfigMap` of a history with one more run.
pub(crate) fn with(mut runs: Vec<PastRun>, mut run: PastRun) -> Value {
    run.why = run.why.map(|why| why.chars().take(WHY_CHARACTERS).collect());
    runs.insert(0, run);
    runs.truncate(RUNS);
    let text = serde_json::to_string(&runs).unwrap_or_default();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": HISTORY_NAME, "namespace": SYSTEM_NAMESPACE},
        "data": {"runs": text},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_newest_first() {
        let mut runs = Vec::new();
        for number in 0..30 {
            let run = PastRun {
                action: Action::Upgrade,
                release: "r".into(),
                version: number.to_string(),
                from: None,
                started: "a".into(),
                ended: "b".into(),
                holder: "h".into(),
                outcome: Ended::Stopped,
                counts: Counts::default(),
                writes: 1,
                why: Some("x".repeat(1000)),
                promises: BTreeMap::new(),
            };
            runs = read(&[with(runs, run)]);
        }
        assert_eq!(runs.len(), 20);
        assert_eq!(runs.first().map(|r| r.version.as_str()), Some("29"));
        assert!(runs.iter().all(|r| r.why.as_ref().is_some_and(|w| w.len() == 500)));
        assert!(read(&[json!({"metadata": {"name": HISTORY_NAME}, "data": {"runs": "["}})]).is_empty());
    }
}
