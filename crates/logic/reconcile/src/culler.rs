//! Idle notebooks.
//!
//! # Flow
//! The operator asks every running notebook's server when somebody last did something, tells it here ([`LastUses`]), and writes it as
//! `notebooks.kubeflow.org/last-activity` for clients to read. It is held against the platform's policy: an idle notebook is stopped
//! (`kubeflow-resource-stopped`), or, where idle notebooks may only be restarted, one that an update waits for is.
//!
//! # Guarantees
//! - Nothing happens without a policy that says so, nor to a notebook that did not answer when it was asked the last time: that nobody
//!   could ask it for an hour does not mean that nobody used it.
//! - A later use that a client has written into the annotation counts.
//! - A notebook that has just started is not idle, whatever was written before it was stopped.
//! - One idle time gives one stop or one restart.
//!
//! # Assumptions
//! A server says that it was active while a kernel of it works.
//!
//! # Caveats
//! Whoever begins to work between the last question and the stop is interrupted.
//!
//! # Errors
//! None: a time that does not parse counts as none.

use std::collections::BTreeMap;

use scantling_observed::{
    ContainerState, Notebook, NotebookRestart, Observed, Pod, View, annotations, unix_seconds,
};

use crate::action::{Action, EventKind, Target};
use crate::condition;
use crate::context::{Context, LastUses};
use crate::notebook::UPDATE_PENDING;
use crate::reconciler::Reconciler;

/// The reconciler of idle notebooks.
pub const CULLER: Reconciler = Reconciler {
    name: "culler",
    watches: &[
        ("kubeflow.org", "v1", "Notebook"),
        ("apps", "v1", "StatefulSet"),
        ("", "v1", "Pod"),
        ("scantling.dev", "v1alpha1", "Platform"),
    ],
    named: &[],
    names: crate::reconciler::no_names,
    reconcile,
};

/// What an idle notebook comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stopped,
    Restarted,
}

fn reconcile(observed: &Observed, context: &Context<'_>) -> Vec<Action> {
    let policy = observed.policy().notebooks;
    let restarts = policy.restart == NotebookRestart::Idle;
    let Some(idle_after) = policy.culling.idle().filter(|_| policy.culling.enabled || restarts) else {
        return Vec::new();
    };
    let (Some(now), Ok(idle_after)) = (unix_seconds(context.now), i64::try_from(idle_after.as_secs())) else {
        return Vec::new();
    };
    let open = |notebook: &Notebook<'_>| {
        !notebook.is_being_deleted() && !notebook.is_stopped() && !notebook.wants_restart()
    };
    observed
        .notebooks()
        .filter(open)
        .filter_map(|notebook| {
            let (started, active) = times(observed, notebook, context.last_uses)?;
            let last = started.max(active);
            if now - last < idle_after {
                return None;
            }
            let end = if policy.culling.enabled {
                End::Stopped
            } else if is_update_pending(notebook) && !is_restart_under_way(notebook, started) {
                End::Restarted
            } else {
                return None;
            };
            actions(notebook, end, (now - last) / 60, context)
        })
        .flatten()
        .collect()
}

/// When the notebook's container started, and when somebody last did something; none while it does not run, or nobody knows.
fn times(observed: &Observed, notebook: Notebook<'_>, last_uses: &LastUses) -> Option<(i64, i64)> {
    let answered = *last_uses.get(notebook.uid())?;
    let written = notebook.annotation(annotations::LAST_ACTIVITY).and_then(unix_seconds);
    let active = written.map_or(answered, |written| written.max(answered));
    let pod: Pod<'_> = observed.one(notebook.namespace(), &format!("{}-0", notebook.name()))?;
    let is_its = observed.notebook_of(pod).is_some_and(|owner| owner.uid() == notebook.uid());
    if !is_its || !pod.is_running() {
        return None;
    }
    let name = notebook.container()?.name();
    let container = pod.regular_containers().find(|container| container.name == name)?;
    let ContainerState::Running { since } = container.state() else { return None };
    Some((unix_seconds(since)?, active))
}

fn is_update_pending(notebook: Notebook<'_>) -> bool {
    condition::live(notebook.object(), UPDATE_PENDING)
        .is_some_and(|live| live.get("status").and_then(serde_json::Value::as_str) == Some("True"))
}

/// Was a restart asked for that this container does not come from yet?
fn is_restart_under_way(notebook: Notebook<'_>, started: i64) -> bool {
    let asked = notebook.annotation(annotations::RESTART_REQUESTED).and_then(unix_seconds);
    asked.is_some_and(|asked| asked >= started)
}

fn actions(notebook: Notebook<'_>, end: End, minutes: i64, context: &Context<'_>) -> Option<[Action; 2]> {
    // Somebody may have done something in the meantime, or have decided the same.
    let target = Target::exactly(notebook.object())?;
    let now = Some(context.now.to_owned());
    let (annotations, reason, message) = match end {
        End::Stopped => (
            BTreeMap::from([
                (annotations::STOPPED.to_owned(), now),
                // What was before the stop says nothing about the next start.
                (annotations::LAST_ACTIVITY.to_owned(), None),
            ]),
            "Culled",
            format!(
                "nothing happened in it for {minutes} minutes, so it was stopped; its volumes are kept, and it can be started again"
            ),
        ),
        End::Restarted => (
            BTreeMap::from([(annotations::RESTART_REQUESTED.to_owned(), now)]),
            "RestartedIdle",
            format!("nothing happened in it for {minutes} minutes, so it was restarted to take its update"),
        ),
    };
    Some([
        Action::Annotate { target: target.clone(), annotations },
        Action::Event { target, kind: EventKind::Normal, reason: reason.to_owned(), message },
    ])
}
