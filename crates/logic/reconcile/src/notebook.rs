//! Notebooks.
//!
//! # Flow
//! `Notebook` (its annotation `notebooks.opendatahub.io/last-image-selection`) → entry of the catalogue (`NotebookImage`) → `StatefulSet` and
//! `Service`, with the image by digest; pod → `status`: what is claimed, desired and running.
//!
//! # Guarantees
//! - The image is written by digest. Without one there is nothing: an unknown selection makes a condition and no objects.
//! - While a notebook has started and is not stopped, its pod template is not written to, whatever changes in the catalogue or in the
//!   notebook: a write would restart it. The condition `UpdatePending` says what waits. It also holds while the pod is away (a drained
//!   node): the pod comes back with the image that it had.
//! - It moves when its owner says so: by stopping and starting it (`kubeflow-resource-stopped`), or by
//!   `notebooks.opendatahub.io/notebook-restart: "true"`, which is answered once, also by a driver that is killed in between.
//! - A template that never started is corrected at once.
//! - *Running* comes from the pod's image ID and nothing else.
//!
//! # Assumptions
//! A stateful set of the notebook's name that the notebook controls is its own, whoever made it; the fields that this reconciler sets are
//! taken over.
//!
//! # Caveats
//! Annotations of the notebook are not copied to its pod. The working folder and the group of the file system are not defaulted. A digest in an
//! image ID that nothing knows counts as another image and is marked as not known.
//!
//! # Errors
//! Conditions `ImageResolved` (reasons `NameTooLong`, `InvalidTemplate`, `NoSelection`, `NotPinned`, `UnknownSelection`, `BrokenEntry`,
//! `AmbiguousSelection`, `ForeignObject`) and events of the same reasons.

mod definition;
mod desired;
mod resolve;
mod status;

use std::collections::BTreeMap;

use scantling_api::object;
use scantling_observed::{
    ContainerState, Notebook, Observed, Pod, PodContainer, Service, StatefulSet, View, annotations,
};
use serde_json::{Value, json};

use crate::action::{Action, EventKind, MANAGER, Target};
use crate::applied::{APPLIED, is_applied};
use crate::catalogue::Catalogue;
use crate::condition::{self, Condition};
use crate::context::Context;
use crate::reconciler::Reconciler;
use resolve::{Refusal, Resolved, resolve};
use status::{Facts, IMAGE_RESOLVED, Running, UPDATE_PENDING};

pub(crate) use definition::NOTEBOOK_DEFINITION;
pub use definition::{
    Claimed, DesiredImage, NotebookCondition, NotebookSpec, NotebookStatus, NotebookTemplate, RunningImage,
};
pub(crate) use status::{patch, pending};

/// Longest name of a notebook, in bytes: a pod's label `controller-revision-hash` has the set's name and eleven characters more, and a
/// label has at most 63.
pub const MAX_NAME: usize = 52;

/// The reconciler of notebooks.
pub const NOTEBOOKS: Reconciler = Reconciler {
    name: "notebooks",
    watches: &[
        ("kubeflow.org", "v1", "Notebook"),
        ("scantling.dev", "v1alpha1", "NotebookImage"),
        ("apps", "v1", "StatefulSet"),
        ("", "v1", "Service"),
        ("", "v1", "Pod"),
    ],
    reconcile,
};

fn reconcile(observed: &Observed, context: &Context<'_>) -> Vec<Action> {
    let catalogue = Catalogue::of(observed);
    observed
        .notebooks()
        .filter(|notebook| !notebook.is_being_deleted())
        .flat_map(|notebook| One { observed, context, catalogue: &catalogue, notebook }.reconcile())
        .collect()
}

/// One notebook and what surrounds it.
#[derive(Clone, Copy)]
struct One<'a> {
    observed: &'a Observed,
    context: &'a Context<'a>,
    catalogue: &'a Catalogue,
    notebook: Notebook<'a>,
}

impl<'a> One<'a> {
    fn reconcile(self) -> Vec<Action> {
        let Some(target) = Target::of(self.notebook.object()) else { return Vec::new() };
        if self.notebook.wants_restart() {
            return vec![self.accept_restart(target)];
        }
        let resolved = resolve(self.notebook, self.catalogue, self.context);
        let set = self.observed.one::<StatefulSet<'_>>(self.notebook.namespace(), self.notebook.name());
        let service = self.observed.one::<Service<'_>>(self.notebook.namespace(), self.notebook.name());
        let foreign = [set.map(View::object), service.map(View::object)]
            .into_iter()
            .flatten()
            .find(|object| !self.controls(object));
        if let Some(object) = foreign {
            let kind = object::text(object, "/kind");
            let message = format!(
                "there is a {kind} {}/{} that this notebook does not control: remove it, or make the notebook anew under another name",
                self.notebook.namespace(),
                self.notebook.name()
            );
            return self.report(target, &Err(Refusal { reason: "ForeignObject", message }), None);
        }
        let mut actions = Vec::new();
        if let Some(image) = self.image(&resolved, set) {
            let wanted = desired::stateful_set(self.notebook, image, set);
            if !self.is_held(&wanted, set) {
                actions.extend(apply_unless_done(desired::service(self.notebook), service.map(View::object)));
                actions.extend(apply_unless_done(wanted, set.map(View::object)));
                actions.extend(self.replace_stuck_pod(set));
            }
        }
        actions.extend(self.report(target, &resolved, set));
        actions
    }

    /// Does the notebook control this object?
    fn controls(self, object: &Value) -> bool {
        object::controller(object).is_some_and(|owner| owner.uid == self.notebook.uid())
    }

    /// Turns the request for a restart into a time, in one write: whatever is read afterwards, it is answered exactly once.
    fn accept_restart(self, target: Target) -> Action {
        let annotations = BTreeMap::from([
            (annotations::RESTART.to_owned(), None),
            (annotations::RESTART_REQUESTED.to_owned(), Some(self.context.now.to_owned())),
        ]);
        Action::Annotate { target, annotations }
    }

    /// The image to write: the resolved one; else the one that the set has, so that stopping still works.
    fn image(
        self,
        resolved: &Result<Resolved<'a>, Refusal>,
        set: Option<StatefulSet<'a>>,
    ) -> Option<&'a str> {
        match resolved {
            Ok(resolved) => Some(resolved.image()),
            Err(_) => self.live_image(set),
        }
    }

    fn live_image(self, set: Option<StatefulSet<'a>>) -> Option<&'a str> {
        set?.image_of(self.notebook.container()?.name())
    }

    /// The pod of the set, if the set controls it.
    fn pod(self, set: Option<StatefulSet<'a>>) -> Option<Pod<'a>> {
        let set = set?;
        let pod: Pod<'a> =
            self.observed.one(self.notebook.namespace(), &format!("{}-0", self.notebook.name()))?;
        let owner = object::controller(pod.object())?;
        (owner.uid == set.uid()).then_some(pod)
    }

    fn container(self, pod: Pod<'a>) -> Option<PodContainer<'a>> {
        let name = self.notebook.container()?.name();
        pod.regular_containers().find(|container| container.name == name)
    }

    /// The image that has started since the notebook was last stopped; remembered in the status, because the pod may be away.
    fn started_image(self, set: Option<StatefulSet<'a>>) -> Option<&'a str> {
        if self.notebook.is_stopped() {
            return None;
        }
        let seen = self
            .pod(set)
            .and_then(|pod| self.container(pod))
            .filter(|container| container.has_started())
            .map(|container| container.image);
        seen.or_else(|| {
            Some(object::text(self.notebook.object(), "/status/startedImage"))
                .filter(|image| !image.is_empty())
        })
    }

    /// Must the set be left alone? Yes while it runs a template that has started, until the owner asks for a restart.
    fn is_held(self, wanted: &Value, set: Option<StatefulSet<'a>>) -> bool {
        let Some(live) = set.filter(|set| set.replicas() > 0) else { return false };
        if self.notebook.is_stopped() {
            return false;
        }
        let restart = |set: &Value| {
            set.pointer("/spec/template/metadata/annotations")
                .and_then(|annotations| annotations.get(desired::RESTARTED))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let asked = restart(wanted);
        let is_answered = asked.is_none() || asked == restart(live.object());
        let started = self.started_image(set);
        is_answered && started.is_some() && started == self.live_image(set)
    }

    /// A pod of an old template that cannot start keeps an ordered set from making a new one.
    fn replace_stuck_pod(self, set: Option<StatefulSet<'a>>) -> Option<Action> {
        let pod = self.pod(set)?;
        let newest = object::text(set?.object(), "/status/updateRevision");
        let revision = pod.label("controller-revision-hash")?;
        let is_old = !newest.is_empty() && revision != newest;
        let is_stuck = !pod.has_started() && pod.trouble().is_some() && !pod.is_being_deleted();
        (is_old && is_stuck)
            .then(|| Target::of(pod.object()).map(|target| Action::Delete { target }))
            .flatten()
    }

    /// The status and the events.
    fn report(
        self,
        target: Target,
        resolved: &Result<Resolved<'a>, Refusal>,
        set: Option<StatefulSet<'a>>,
    ) -> Vec<Action> {
        let pod = self.pod(set);
        let container = pod.and_then(|pod| self.container(pod));
        let running = pod.zip(container).and_then(|(pod, container)| Running::of(pod, container));
        let entry = resolved.as_ref().ok().and_then(Resolved::entry);
        let image = resolved.as_ref().ok().map(Resolved::image);
        let update = self.update_condition(resolved, running.as_ref(), set);
        let conditions = vec![resolved_condition(resolved), update];
        let mut actions = Vec::new();
        for condition in &conditions {
            let is_bad = (condition.kind == IMAGE_RESOLVED) != condition.status;
            if is_bad && condition.is_news(condition::live(self.notebook.object(), condition.kind)) {
                let kind =
                    if condition.kind == IMAGE_RESOLVED { EventKind::Warning } else { EventKind::Normal };
                actions.push(Action::Event {
                    target: target.clone(),
                    kind,
                    reason: condition.reason.to_owned(),
                    message: condition.message.clone(),
                });
            }
        }
        let facts = Facts {
            entry,
            image,
            running,
            ready: container.is_some_and(PodContainer::is_ready),
            container_state: container.map(|container| container_state(container.state())),
            started_image: self.started_image(set).map(str::to_owned),
            conditions,
        };
        let wanted = facts.to_json(self.notebook, self.catalogue, self.context);
        if let Some(status) = patch(self.notebook.object().get("status"), &wanted) {
            actions.push(Action::PatchStatus { target, status });
        }
        actions
    }

    fn update_condition(
        self,
        resolved: &Result<Resolved<'a>, Refusal>,
        running: Option<&Running>,
        set: Option<StatefulSet<'a>>,
    ) -> Condition {
        let condition = |status, reason, message: &str| Condition {
            kind: UPDATE_PENDING,
            status,
            reason,
            message: message.to_owned(),
        };
        let Some(live) = set.filter(|_| !self.notebook.is_stopped()) else {
            return condition(false, "Stopped", "the next start takes what the catalogue has then");
        };
        let Ok(resolved) = resolved else {
            return condition(false, "Unresolved", "it keeps the image that it has");
        };
        let wanted = desired::stateful_set(self.notebook, resolved.image(), set);
        if !self.is_held(&wanted, set) {
            return condition(false, "UpToDate", "it runs what its selection stands for");
        }
        let known = running.map(|running| running.digest.clone()).or_else(|| {
            let written = scantling_image::Reference::parse(self.live_image(set)?).ok()?;
            written.digest().cloned()
        });
        let text = resolved
            .entry()
            .zip(known)
            .and_then(|(entry, digest)| pending(self.catalogue, entry, &digest, self.context));
        if let Some(text) = text {
            return condition(true, "NewImage", &format!("a restart brings {text}"));
        }
        let seal = object::annotation(&wanted, APPLIED);
        if seal == object::annotation(live.object(), APPLIED) {
            condition(false, "UpToDate", "it runs what its selection stands for")
        } else {
            condition(
                true,
                "NotebookChanged",
                "the definition of the notebook has changed; a restart takes it",
            )
        }
    }
}

pub(crate) fn apply_unless_done(wanted: Value, live: Option<&Value>) -> Option<Action> {
    let done = live.is_some_and(|live| is_applied(&wanted, live));
    (!done).then(|| Action::Apply { object: wanted, manager: MANAGER.to_owned(), force: true })
}

fn resolved_condition(resolved: &Result<Resolved<'_>, Refusal>) -> Condition {
    match resolved {
        Ok(resolved) => Condition {
            kind: IMAGE_RESOLVED,
            status: true,
            reason: "Resolved",
            message: format!("it stands for {}", resolved.image()),
        },
        Err(refusal) => Condition {
            kind: IMAGE_RESOLVED,
            status: false,
            reason: refusal.reason,
            message: refusal.message.clone(),
        },
    }
}

/// As existing clients read it.
fn container_state(state: ContainerState<'_>) -> Value {
    match state {
        ContainerState::Waiting { reason, message } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        ContainerState::Running { since } => json!({"running": {"startedAt": since}}),
        ContainerState::Terminated { reason, exit_code } => {
            json!({"terminated": {"reason": reason, "exitCode": exit_code}})
        }
        ContainerState::Unreported => Value::Null,
    }
}
