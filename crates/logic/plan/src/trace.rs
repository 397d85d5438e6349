//! What runs that have not ended have made of fields.
//!
//! What was last applied is what the last whole run applied. A run that was killed or stopped has written more: values of
//! its own release, and fields that its release does not have are gone. Neither is a person's edit, whichever release comes
//! next. Each run says before its first write what it is about to make of which field, and it counts until a run ends whole.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_merge::Path;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::PlanError;
use crate::object::{Frame, Sides, created};
use crate::settled::settled;

/// The fields of one object that unfinished runs have written or taken away, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Traces(BTreeMap<String, Trace>);

/// What became of one field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Trace {
    /// Whether a run took it away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    removed: bool,
    /// The values that runs gave it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<Value>,
}

impl Traces {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in those of another run.
    pub fn extend(&mut self, other: &Self) {
        for (field, trace) in &other.0 {
            let known = self.0.entry(field.clone()).or_default();
            known.removed |= trace.removed;
            for value in &trace.values {
                if !known.values.contains(value) {
                    known.values.push(value.clone());
                }
            }
        }
    }

    /// The same, with nothing of values: where there is no room for them. A field that was taken away is still known.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let removed = self.0.iter().filter(|(_, trace)| trace.removed);
        Self(removed.map(|(field, _)| (field.clone(), Trace { removed: true, values: Vec::new() })).collect())
    }

    pub(crate) fn note_removed(&mut self, path: &Path) {
        self.0.entry(format!("{path:#}")).or_default().removed = true;
    }

    pub(crate) fn note_value(&mut self, path: &Path, value: &Value) {
        self.0.entry(format!("{path:#}")).or_default().values.push(value.clone());
    }

    /// Whether what is found at a path, a value or nothing, is what a run has made of it.
    pub(crate) fn made(&self, path: &Path, found: Option<&Value>) -> bool {
        let Some(trace) = self.0.get(&format!("{path:#}")) else { return false };
        match found {
            Some(found) => trace.values.iter().any(|value| settled(found, value, None)),
            None => trace.removed,
        }
    }

    /// Whether a value holds something that a run has put there and that is not wanted.
    pub(crate) fn is_left_in(&self, path: &Path, found: &Value, wanted: &Value) -> bool {
        let trace = self.0.get(&format!("{path:#}"));
        trace.is_some_and(|trace| trace.values.iter().any(|value| !settled(found, wanted, Some(value))))
    }
}

/// The fields that were last applied and are not in an object that is created anew.
pub(crate) fn left_away(frame: &Frame<'_>, key: &ObjectKey, sides: Sides<'_>) -> Result<Traces, PlanError> {
    let mut traces = Traces::default();
    // A base that can no longer be merged is none.
    let base = sides.base.and_then(|base| created(frame, key, base).ok());
    if let Some((_, base)) = base {
        let wanted = created(frame, key, sides.desired)?.1;
        base.difference(&wanted).leaves().paths().iter().for_each(|path| traces.note_removed(path));
    }
    Ok(traces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_runs_have_made_of_a_field_is_told_from_what_people_did() {
        let (gone, set) = (Path::fields(["data", "gone"]), Path::fields(["data", "set"]));
        let mut traces = Traces::default();
        assert!(traces.is_empty() && !traces.made(&gone, None));
        traces.note_removed(&gone);
        traces.note_value(&set, &json!([{"a": 1, "b": 2}]));
        let mut all = Traces::default();
        all.extend(&traces);
        all.extend(&traces);
        assert_eq!(all, traces);
        for (path, found, expected) in [
            (&gone, None, true),
            (&gone, Some(json!("x")), false),
            (&set, None, false),
            (&set, Some(json!([{"a": 1, "b": 2}])), true),
            (&set, Some(json!([{"a": 1, "b": 3}])), false),
        ] {
            assert_eq!(all.made(path, found.as_ref()), expected, "{path} {found:?}");
        }
        let (found, wanted) = (json!([{"a": 1, "b": 2, "default": 0}]), json!([{"a": 1}]));
        assert!(all.is_left_in(&set, &found, &wanted));
        assert!(!all.is_left_in(&set, &json!([{"a": 1, "default": 0}]), &wanted));
        let small = all.without_values();
        assert!(small.made(&gone, None) && !small.is_left_in(&set, &found, &wanted));
    }
}
