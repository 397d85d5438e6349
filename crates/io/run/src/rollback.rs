//! Going back to an earlier release, from what the cluster keeps of it.

use scantling_api::object;
use scantling_plan::{Outcome, Step};
use scantling_release::Release;
use serde_json::Value;

use crate::bundle::{Bundle, kept};
use crate::environment::Environment;
use crate::event::RunEvent;
use crate::history::{self, Ended};
use crate::journal::{Action, JOURNAL_NAME, Journal};
use crate::options::Options;
use crate::report::{RunError, RunReport};
use crate::session::Session;
use crate::state::State;
use crate::upgrade::bring;

/// Goes back to the release before, or to one that is named, by the bundle that the cluster keeps of it.
///
/// # Flow
/// As an upgrade to the earlier release. If an upgrade has stopped in the middle, the release before is the one that it
/// came from.
///
/// # Guarantees
/// - Definitions of kinds stay as they are: objects may hold what only the newer one knows. The report says so.
/// - Running notebooks are not restarted, generated secrets and what holds data stay.
///
/// # Errors
/// As an upgrade; [`RunError::Refused`] also when the cluster does not keep the release.
pub async fn rollback(
    env: &Environment,
    to: Option<&str>,
    options: &Options,
    sink: &mut dyn FnMut(RunEvent),
) -> Result<RunReport, RunError> {
    let (bundle, release) = earlier(env, to).await?;
    let options =
        Options { lock: bundle.lock.clone(), installed: None, bundle: Some(bundle), ..options.clone() };
    bring(env, &release, &options, Action::Rollback, sink).await
}

/// The namespace of the release that [`rollback`] would go back to: its pull secrets are there.
///
/// # Errors
/// As [`rollback`]'s before it begins.
pub async fn namespace_of_earlier(env: &Environment, to: Option<&str>) -> Result<Option<String>, RunError> {
    Ok(earlier(env, to).await?.1.namespace)
}

/// The release to go back to.
async fn earlier(env: &Environment, to: Option<&str>) -> Result<(Bundle, Release), RunError> {
    let stored = env.stored().await.map_err(RunError::unread)?;
    let version = match to {
        Some(version) => version.to_owned(),
        None => before(&stored).map_err(RunError::unread)?,
    };
    let bundle = Bundle::from_objects(&stored, &version).map_err(RunError::unread)?;
    let release = bundle.release().map_err(RunError::unread)?;
    Ok((bundle, release))
}

/// The version to go back to when none is named.
fn before(maps: &[Value]) -> Result<String, String> {
    let state = State::from_config_maps(maps).map_err(|e| e.to_string())?;
    let Some(state) = state else {
        return Err("no release has been installed whole, so there is none to go back to; \
                    uninstall takes away what is there"
            .to_owned());
    };
    let journal = maps.iter().find(|m| object::name(m) == JOURNAL_NAME).map(Journal::read).transpose();
    let journal = journal.map_err(|e| e.to_string())?;
    if let Some(open) = journal.filter(|j| j.open) {
        match open.action {
            // An upgrade that has stopped: what was there before it is what is stored.
            Action::Upgrade if open.version != state.version => return Ok(state.version),
            // Going back has been begun; it is continued.
            Action::Rollback => return Ok(open.version),
            Action::Upgrade | Action::Uninstall => {}
        }
    }
    let runs = history::read(maps);
    // Runs that brought a release to a cluster that had it already say nothing of what was before.
    let last = runs.iter().find(|run| {
        let again = run.from.as_ref() == Some(&run.version);
        run.outcome == Ended::Finished && run.version == state.version && !again
    });
    if let Some(from) = last.filter(|run| run.action == Action::Upgrade).and_then(|run| run.from.clone()) {
        return Ok(from);
    }
    let others: Vec<String> = kept(maps).into_iter().filter(|v| *v != state.version).collect();
    // The run that brought it was killed after it had stored that, and whoever continued it found it there already. Of the
    // two releases that are kept, the other one is what was there before.
    if let (None, [other]) = (last, others.as_slice()) {
        return Ok(other.clone());
    }
    Err(match others.as_slice() {
        [] => {
            format!("{} {} was the first release here; there is none before it", state.release, state.version)
        }
        others => format!(
            "it cannot be told which release was before {} {}; name one of those that are kept: {}",
            state.release,
            state.version,
            others.join(", ")
        ),
    })
}

impl Session<'_> {
    /// Going back leaves definitions as they are.
    pub(crate) fn keep_definitions(&mut self, steps: &mut [Step]) {
        if self.journal.action != Action::Rollback {
            return;
        }
        for step in steps.iter_mut().filter(|s| s.key.kind == "CustomResourceDefinition") {
            if !matches!(step.outcome, Outcome::Updated | Outcome::Replaced | Outcome::Conflict) {
                continue;
            }
            let stored = self.live.get(&step.key).and_then(|l| l.pointer("/status/storedVersions"));
            let stored: Vec<&str> =
                stored.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            step.outcome = Outcome::Kept;
            step.cause = format!(
                "definitions are not taken back: stored objects ({}) may hold fields that only the newer one has",
                if stored.is_empty() { "of any version".to_owned() } else { stored.join(", ") }
            );
            step.changes.clear();
            step.conflicts.clear();
            // What was applied last stays what was applied last.
            if let Some(applied) = self.previous.objects.get(&step.key)
                && let Some(desired) = self.desired.iter_mut().find(|d| d.key == step.key)
            {
                desired.value.clone_from(applied);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use scantling_plan::Counts;

    use super::*;
    use crate::history::PastRun;

    fn run(action: Action, from: Option<&str>, version: &str, outcome: Ended) -> PastRun {
        PastRun {
            action,
            release: "r".into(),
            version: version.into(),
            from: from.map(ToOwned::to_owned),
            started: String::new(),
            ended: String::new(),
            holder: String::new(),
            outcome,
            counts: Counts::default(),
            writes: 1,
            why: None,
            promises: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn the_release_before_is_found_in_the_history() {
        use Action::{Rollback, Upgrade};
        use Ended::{Finished, Stopped};
        let one = run(Upgrade, None, "1", Finished);
        let two = run(Upgrade, Some("1"), "2", Finished);
        let again = run(Upgrade, Some("2"), "2", Finished);
        let stopped = run(Upgrade, Some("1"), "2", Stopped);
        let back = run(Rollback, Some("3"), "2", Finished);
        for (runs, expected) in [
            (vec![&one, &two], Some("1")),
            (vec![&one, &two, &again, &again], Some("1")),
            (vec![&one, &stopped, &two], Some("1")),
            (vec![&one, &two, &back], None),
            (vec![&again], None),
            (vec![], None),
        ] {
            let state = State { release: "r".into(), version: "2".into(), ..State::default() };
            let mut maps = state.to_config_maps().unwrap();
            let mut known = Vec::new();
            for run in &runs {
                maps.retain(|map| object::name(map) != history::HISTORY_NAME);
                maps.push(history::with(known, (*run).clone()));
                known = history::read(&maps);
            }
            assert_eq!(before(&maps).ok().as_deref(), expected, "{runs:?}");
        }
    }

    #[test]
    fn a_run_that_was_continued_when_all_was_stored_leaves_the_release_before_among_those_kept() {
        let state = State { release: "r".into(), version: "2".into(), ..State::default() };
        let again = run(Action::Upgrade, Some("2"), "2", Ended::Finished);
        let back = run(Action::Rollback, Some("1"), "2", Ended::Finished);
        let bundle = |version: &str| {
            let files =
                scantling_release::Tree::from([("release.yaml".to_owned(), version.as_bytes().to_vec())]);
            let bundle = Bundle::of(files, scantling_release::Settings::default(), None);
            bundle.to_objects("r", version).unwrap()
        };
        for (last, others, expected) in
            [(&again, &["1"][..], Some("1")), (&again, &["0", "1"], None), (&back, &["1"], None)]
        {
            let mut maps = state.to_config_maps().unwrap();
            maps.extend(others.iter().chain(&["2"]).flat_map(|version| bundle(version)));
            maps.push(history::with(Vec::new(), last.clone()));
            assert_eq!(before(&maps).ok().as_deref(), expected, "{others:?}");
        }
    }
}
