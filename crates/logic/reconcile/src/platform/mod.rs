//! The platform: what is to be done about its release, and what its status says.
//!
//! # Flow
//! What the cluster's bookkeeping says ([`PlatformFacts`], read by whoever runs this) and the `Platform` object → [`next`] says whether a
//! run is due; [`PLATFORM`] writes the status.
//!
//! # Guarantees
//! - A run begins only while nobody else holds the run lease, and only for a release whose files are stored in the cluster.
//! - A run that somebody has begun is continued without being approved anew. One that was rolled back is not begun again by itself.
//! - A promise is called kept or broken only with evidence; where nobody has looked it is `Unknown`.
//! - The status has no time of its own in it, so a settled platform is not written to.
//!
//! # Assumptions
//! There is one object, called `platform`; the definition refuses others, and where they exist all the same they are not looked at.
//!
//! # Caveats
//! `Pinned` and `Truthful` are held against what runs now. The other promises are as the last run found them.
//!
//! # Errors
//! None: what is wrong becomes the condition `Degraded` and, for people who watch events, an event of the same reason.

mod definition;
mod evidence;
mod facts;
mod next;
mod status;

pub(crate) use definition::PLATFORM_DEFINITION;
pub use facts::{Evidence, LastRun, Outcome, PlatformFacts, Promise, RunKind};
pub use next::{Next, next};

use scantling_observed::{Observed, PlatformStatus, View as _};
use serde_json::json;

use crate::action::{Action, EventKind, Target};
use crate::context::Context;
use crate::reconciler::Reconciler;

/// The reconciler of the platform's status.
pub const PLATFORM: Reconciler = Reconciler {
    name: "platform",
    watches: &[
        ("scantling.dev", "v1alpha1", "Platform"),
        ("scantling.dev", "v1alpha1", "NotebookImage"),
        ("kubeflow.org", "v1", "Notebook"),
        ("apps", "v1", "StatefulSet"),
        ("apps", "v1", "Deployment"),
        ("", "v1", "Pod"),
    ],
    named: &[],
    names: crate::reconciler::no_names,
    reconcile,
};

/// The conditions whose change people are told by an event.
const TOLD: [&str; 3] = ["Ready", "Upgrading", "Degraded"];

fn reconcile(observed: &Observed, context: &Context<'_>) -> Vec<Action> {
    let (Some(platform), Some(facts)) = (observed.platform(), context.platform) else { return Vec::new() };
    if platform.is_being_deleted() {
        return Vec::new();
    }
    let live = platform.status();
    let status = status::status(platform, observed, facts, context);
    let Some(target) = Target::of(platform.object()).filter(|_| live != status) else { return Vec::new() };
    let mut actions = vec![Action::PatchStatus { target: target.clone(), status: patch(&status) }];
    for condition in status.conditions.iter().filter(|condition| TOLD.contains(&condition.kind.as_str())) {
        let before = live.conditions.iter().find(|before| before.kind == condition.kind);
        let news = before.is_none_or(|b| (&b.status, &b.reason) != (&condition.status, &condition.reason));
        // That something is not the case, and never was, is no event.
        let worth = condition.status == "True" || before.is_some_and(|before| before.status == "True");
        if news && worth {
            let bad = (condition.kind == "Degraded") == (condition.status == "True");
            actions.push(Action::Event {
                target: target.clone(),
                kind: if bad && condition.kind != "Upgrading" {
                    EventKind::Warning
                } else {
                    EventKind::Normal
                },
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            });
        }
    }
    actions
}

/// The merge patch that makes a status this one: what is not there is taken away.
fn patch(status: &PlatformStatus) -> serde_json::Value {
    let mut patch = serde_json::to_value(status).unwrap_or_default();
    for field in ["release", "run"] {
        if patch.get(field).is_none() {
            patch[field] = serde_json::Value::Null;
        }
    }
    // Within a run, too: a holder that is gone.
    if patch["run"].is_object() && patch["run"].get("holder").is_none() {
        patch["run"]["holder"] = json!(null);
    }
    patch
}
