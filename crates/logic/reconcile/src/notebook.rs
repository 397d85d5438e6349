//! Notebooks.
//!
//! # Flow
//! `Notebook` (its annotation `notebooks.opendatahub.io/last-image-selection`) → entry of the catalogue (`NotebookImage`) → `StatefulSet`,
//! `Service` and `NetworkPolicy`, with the image by digest; where a volume is asked for, a `PersistentVolumeClaim`; pod → `status`: what is
//! claimed, desired and running.
//!
//! # Guarantees
//! - The image is written by digest. Without one there is nothing: an unknown selection makes a condition and no objects. The same is true
//!   of an unknown hardware profile, a missing volume and an annotation that cannot be read.
//! - While a notebook has started and is not stopped, its pod template is not written to, whatever changes in the catalogue, in the
//!   notebook or in this code: a write would restart it. The condition `UpdatePending` says what waits. It also holds while the pod is away (a
//!   drained node) or its stateful set was deleted: the pod comes back with the image that it had.
//! - It moves when its owner says so: by stopping and starting it (`kubeflow-resource-stopped`), or by
//!   `notebooks.opendatahub.io/notebook-restart: "true"`, which is answered once, also by a driver that is killed in between.
//! - That a template has started is known from the template: a pod whose image was rewritten when it was admitted is of it all the same.
//! - A template that never started is corrected at once.
//! - A volume claim is created, and never written to or deleted: nobody owns it.
//! - No pod of another namespace gets an answer, unless the annotation `scantling.dev/allow-from` or the label of a gateway says so.
//! - *Running* comes from the pod's image ID and nothing else.
//!
//! # Assumptions
//! A stateful set of the notebook's name that the notebook controls is its own, whoever made it; the fields that this reconciler sets are
//! taken over. Network policies are enforced by the cluster's network.
//!
//! # Caveats
//! A digest in an image ID that nothing knows counts as another image and is marked as not known. What keeps a stateful set from making its
//! pod is only said in events, which the cluster forgets after an hour; what was read from one is kept until a pod is there.
//!
//! # Errors
//! Conditions `ImageResolved` (reasons `InvalidName`, `NameTooLong`, `InvalidTemplate`, `NoSelection`, `NotPinned`, `UnknownTag`,
//! `UnknownStream`, `BrokenEntry`, `AmbiguousSelection`, `ForeignObject`) and `Startable` (`InvalidAnnotation`, `UnknownProfile`,
//! `BrokenProfile`, `VolumeMissing`, `QuotaExceeded`, `Refused`, `NotAdmitted`, `PodNotCreated`, `ImagePull`, `CrashLoop`, `Unschedulable`,
//! `ContainerNotMade`, `NotStarting`), `Supported` (`Ignored`), and events of the same reasons.

mod definition;
mod desired;
mod obstacle;
mod pod;
mod resolve;
mod settings;
mod status;
mod unsupported;

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_api::object::{self, Container, ContainerKind};
use scantling_image::Sameness;
use scantling_observed::{
    ContainerState, Notebook, Observed, Pod, PodContainer, Service, StatefulSet, View, annotations,
};
use serde_json::{Value, json};

use crate::action::{Action, EventKind, Target};
use crate::applied::apply_unless_done;
use crate::catalogue::Catalogue;
use crate::condition::{self, Condition};
use crate::context::Context;
use crate::reconciler::Reconciler;
use crate::status_patch::patch;
pub(crate) use definition::NOTEBOOK_DEFINITION;
pub use definition::{
    Claimed, DesiredImage, NotebookCondition, NotebookSpec, NotebookStatus, NotebookTemplate, RunningImage,
};
use resolve::{Refusal, Resolved, resolve};
use settings::{Settings, settings};
use status::{Facts, IMAGE_RESOLVED, Running, STARTABLE, SUPPORTED};
pub(crate) use status::{UPDATE_PENDING, pending};

/// Longest name of a notebook, in bytes: a pod's label `controller-revision-hash` has the set's name and eleven characters more, and a
/// label has at most 63.
pub const MAX_NAME: usize = 52;

/// The reconciler of notebooks.
pub const NOTEBOOKS: Reconciler = Reconciler {
    name: "notebooks",
    watches: &[
        ("kubeflow.org", "v1", "Notebook"),
        ("scantling.dev", "v1alpha1", "NotebookImage"),
        ("infrastructure.opendatahub.io", "v1", "HardwareProfile"),
        ("apps", "v1", "StatefulSet"),
        ("networking.k8s.io", "v1", "NetworkPolicy"),
        ("", "v1", "Service"),
        ("", "v1", "PersistentVolumeClaim"),
        ("", "v1", "Namespace"),
        ("", "v1", "Pod"),
        ("", "v1", "Event"),
    ],
    named: &[],
    names: crate::reconciler::no_names,
    reconcile,
};

fn reconcile(observed: &Observed, context: &Context<'_>) -> Vec<Action> {
    let catalogue = Catalogue::of(observed);
    observed
        .notebooks()
        .filter(|notebook| !notebook.is_being_deleted())
        .flat_map(|notebook| One::of(observed, context, &catalogue, notebook).reconcile())
        .collect()
}

/// One notebook and what surrounds it.
struct One<'a> {
    observed: &'a Observed,
    context: &'a Context<'a>,
    catalogue: &'a Catalogue,
    notebook: Notebook<'a>,
    set: Option<StatefulSet<'a>>,
    resolved: Result<Resolved<'a>, Refusal>,
    settings: Result<Settings, Refusal>,
}

impl<'a> One<'a> {
    fn of(
        observed: &'a Observed,
        context: &'a Context<'a>,
        catalogue: &'a Catalogue,
        notebook: Notebook<'a>,
    ) -> Self {
        Self {
            observed,
            context,
            catalogue,
            notebook,
            set: observed.one(notebook.namespace(), notebook.name()),
            resolved: resolve(notebook, catalogue, context),
            settings: settings(notebook, observed, context),
        }
    }

    fn reconcile(mut self) -> Vec<Action> {
        let Some(target) = Target::of(self.notebook.object()) else { return Vec::new() };
        if self.notebook.wants_restart() {
            return self.accept_restart().into_iter().collect();
        }
        let service = self.observed.one::<Service<'_>>(self.notebook.namespace(), self.notebook.name());
        let policy = self.policy();
        let foreign = [self.set.map(View::object), service.map(View::object), policy]
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
            self.resolved = Err(Refusal { reason: "ForeignObject", message });
            self.set = None;
            return self.report(target);
        }
        // The status comes first: a write that the server refuses must not keep it back.
        let mut actions = self.report(target);
        actions.extend(self.objects(service, policy));
        actions
    }

    /// Writes what is missing of the notebook's objects.
    fn objects(&self, service: Option<Service<'a>>, policy: Option<&'a Value>) -> Vec<Action> {
        let mut actions = Vec::new();
        let image = self.image();
        let (Some(image), Some(settings)) = (image, self.usable_settings()) else { return actions };
        let wanted = desired::stateful_set(self.notebook, image, &settings, self.set);
        let held = self.is_held(&wanted);
        let container = if held { self.live_container() } else { self.notebook.container() };
        let wanted_service = desired::service(self.notebook, container);
        let wanted_policy = desired::policy(self.notebook, container, &settings, self.context.namespace);
        // The policy first: there is no moment in which somebody else could ask.
        actions.extend(apply_unless_done(wanted_policy, policy));
        actions.extend(apply_unless_done(wanted_service, service.map(View::object)));
        if let Some(volume) = &settings.volume {
            let claim = volume.claim(self.notebook);
            let is_there = object::key(&claim).is_ok_and(|key| self.observed.contains(&key));
            if !is_there {
                actions.push(Action::Create { object: claim, of: self.notebook.key() });
            }
        }
        if !held {
            actions.extend(apply_unless_done(wanted, self.set.map(View::object)));
            actions.extend(self.replace_stuck_pod());
        }
        actions
    }

    /// The settings to make objects with. What cannot be given keeps a notebook from being made or started, but not from being stopped.
    fn usable_settings(&self) -> Option<Settings> {
        let is_there = self.set.is_some();
        let runs = self.set.is_some_and(|set| set.replicas() > 0);
        match &self.settings {
            Ok(settings) if runs || self.notebook.is_stopped() || self.missing_claim().is_none() => {
                Some(settings.clone())
            }
            Err(_) if is_there && self.notebook.is_stopped() => Some(Settings::default()),
            _ => None,
        }
    }

    fn missing_claim(&self) -> Option<Refusal> {
        obstacle::missing_claim(self.notebook, self.observed, self.settings.as_ref().ok()?)
    }

    /// The network policy of the notebook's name.
    fn policy(&self) -> Option<&'a Value> {
        self.observed.get(&ObjectKey::namespaced(
            "networking.k8s.io",
            "NetworkPolicy",
            self.notebook.namespace(),
            self.notebook.name(),
        ))
    }

    /// Does the notebook control this object?
    fn controls(&self, object: &Value) -> bool {
        object::controller(object).is_some_and(|owner| owner.uid == self.notebook.uid())
    }

    /// Turns the request for a restart into a time, in one write that only succeeds for the notebook as it was seen: whatever is read
    /// afterwards, and whoever else reads it, it is answered exactly once.
    fn accept_restart(&self) -> Option<Action> {
        let annotations = BTreeMap::from([
            (annotations::RESTART.to_owned(), None),
            (annotations::RESTART_REQUESTED.to_owned(), Some(self.context.now.to_owned())),
        ]);
        Some(Action::Annotate { target: Target::exactly(self.notebook.object())?, annotations })
    }

    /// The image to write: the resolved one; else the one that the set has, so that stopping still works. A notebook whose set somebody
    /// deleted comes back with what it ran.
    fn image(&self) -> Option<&'a str> {
        if self.set.is_none() && self.notebook.container().is_some() && self.started_image().is_some() {
            return self.started_image();
        }
        match &self.resolved {
            Ok(resolved) => Some(resolved.image()),
            Err(_) => self.live_image(),
        }
    }

    fn live_image(&self) -> Option<&'a str> {
        self.set?.image_of(self.notebook.container()?.name())
    }

    /// The notebook's container in the template of its set.
    fn live_container(&self) -> Option<Container<'a>> {
        let name = self.notebook.container()?.name();
        let spec = self.set?.template()?.get("spec")?;
        object::pod_containers(spec)
            .into_iter()
            .find(|container| container.kind == ContainerKind::Regular && container.name() == name)
    }

    /// The pod of the set, if the set controls it.
    fn pod(&self) -> Option<Pod<'a>> {
        let set = self.set?;
        let pod: Pod<'a> =
            self.observed.one(self.notebook.namespace(), &format!("{}-0", self.notebook.name()))?;
        let owner = object::controller(pod.object())?;
        (owner.uid == set.uid()).then_some(pod)
    }

    fn container(&self, pod: Pod<'a>) -> Option<PodContainer<'a>> {
        let name = self.notebook.container()?.name();
        pod.regular_containers().find(|container| container.name == name)
    }

    /// The image that has started since the notebook was last stopped; remembered in the status, because the pod may be away.
    fn started_image(&self) -> Option<&'a str> {
        if self.notebook.is_stopped() {
            return None;
        }
        let remembered = Some(object::text(self.notebook.object(), "/status/startedImage"));
        let remembered = remembered.filter(|image| !image.is_empty());
        let Some((pod, container)) = self.pod().and_then(|pod| Some((pod, self.container(pod)?))) else {
            return remembered;
        };
        if !container.has_started() {
            return remembered;
        }
        // What the pod says is its image may have been rewritten when it was admitted, as for a mirror: the template has the word.
        if self.is_of_live_template(pod) { self.live_image() } else { remembered.or(Some(container.image)) }
    }

    /// Was this pod made from the template that the set has now?
    fn is_of_live_template(&self, pod: Pod<'a>) -> bool {
        let Some(template) = self.set.and_then(StatefulSet::template) else { return false };
        let of = |metadata: Option<&'a Value>, name: &str| metadata?.get("annotations")?.get(name)?.as_str();
        let [made_from, restarted] = [desired::POD, desired::RESTARTED]
            .map(|name| (of(template.get("metadata"), name), pod.annotation(name)));
        made_from.0.is_some() && made_from.0 == made_from.1 && restarted.0 == restarted.1
    }

    /// Must the set be left alone? Yes while it runs a template that has started, until the owner asks for a restart.
    fn is_held(&self, wanted: &Value) -> bool {
        let Some(live) = self.set.filter(|set| set.replicas() > 0) else { return false };
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
        let started = self.started_image();
        is_answered && started.is_some() && started == self.live_image()
    }

    /// A pod of an old template that cannot start keeps an ordered set from making a new one.
    fn replace_stuck_pod(&self) -> Option<Action> {
        let pod = self.pod()?;
        let newest = object::text(self.set?.object(), "/status/updateRevision");
        let revision = pod.label("controller-revision-hash")?;
        let is_old = !newest.is_empty() && revision != newest;
        let is_stuck = !pod.has_started() && pod.trouble().is_some() && !pod.is_being_deleted();
        (is_old && is_stuck)
            .then(|| {
                Target::of(pod.object()).map(|target| Action::Delete { target, of: self.notebook.key() })
            })
            .flatten()
    }

    /// The status and the events.
    fn report(&self, target: Target) -> Vec<Action> {
        let pod = self.pod();
        let container = pod.and_then(|pod| self.container(pod));
        let running = pod.zip(container).and_then(|(pod, container)| Running::of(pod, container));
        let conditions = vec![
            self.resolved_condition(),
            self.startable(),
            self.supported(),
            self.update_condition(running.as_ref()),
        ];
        let mut actions = Vec::new();
        for condition in &conditions {
            let Some(reason) = condition.reason else { continue };
            if condition.is_news(condition::live(self.notebook.object(), condition.kind)) {
                let kind =
                    if condition.kind == UPDATE_PENDING { EventKind::Normal } else { EventKind::Warning };
                let event = Action::Event {
                    target: target.clone(),
                    kind,
                    reason: reason.to_owned(),
                    message: condition.message.clone(),
                };
                // Two conditions may say the same.
                if !actions.contains(&event) {
                    actions.push(event);
                }
            }
        }
        let facts = Facts {
            entry: self.resolved.as_ref().ok().and_then(Resolved::entry),
            image: self.resolved.as_ref().ok().map(Resolved::image),
            running,
            ready: container.is_some_and(PodContainer::is_ready),
            container_state: container.map(|container| container_state(container.state())),
            started_image: self.started_image().map(str::to_owned),
            pod,
            conditions,
        };
        let wanted = facts.status(self.notebook, self.catalogue, self.context);
        if let Some(status) = patch(self.notebook.object().get("status"), &status::whole(&wanted)) {
            actions.push(Action::PatchStatus { target, status });
        }
        actions
    }

    fn resolved_condition(&self) -> Condition {
        match &self.resolved {
            Ok(resolved) => {
                Condition::good(IMAGE_RESOLVED, true, format!("it stands for {}", resolved.image()))
            }
            Err(refusal) => Condition::bad(IMAGE_RESOLVED, false, refusal.reason, refusal.message.clone()),
        }
    }

    /// Whether something keeps it from starting.
    fn startable(&self) -> Condition {
        match self.obstacle() {
            Some(refusal) => Condition::bad(STARTABLE, false, refusal.reason, refusal.message),
            None => Condition::good(STARTABLE, true, "nothing keeps it from starting".to_owned()),
        }
    }

    /// Whether everything that it asks for is done.
    fn supported(&self) -> Condition {
        match unsupported::ignored(self.notebook) {
            Some(text) => Condition::bad(SUPPORTED, false, "Ignored", text),
            None => Condition::good(SUPPORTED, true, "everything that it asks for is done".to_owned()),
        }
    }

    fn obstacle(&self) -> Option<Refusal> {
        self.own_obstacle().or_else(|| {
            let (reason, message) = self.context.refused(&self.notebook.key())?;
            Some(Refusal { reason, message })
        })
    }

    fn own_obstacle(&self) -> Option<Refusal> {
        // With neither a choice that can be had nor an image that it had, nothing can start.
        if let (Err(refusal), None) = (&self.resolved, self.image()) {
            return Some(refusal.clone());
        }
        if let Err(refusal) = &self.settings {
            return Some(refusal.clone());
        }
        if self.notebook.is_stopped() {
            return None;
        }
        if let Some(pod) = self.pod() {
            return obstacle::trouble(pod);
        }
        if let Some(missing) = self.missing_claim() {
            return Some(missing);
        }
        let set = self.set.filter(|set| set.replicas() > 0)?;
        obstacle::failed_create(set, self.observed).or_else(|| self.remembered_obstacle())
    }

    /// What an event said that the cluster has forgotten since.
    fn remembered_obstacle(&self) -> Option<Refusal> {
        let live = condition::live(self.notebook.object(), STARTABLE)?;
        let reason = object::text(live, "/reason");
        let reason =
            ["QuotaExceeded", "NotAdmitted", "PodNotCreated"].into_iter().find(|known| *known == reason)?;
        Some(Refusal { reason, message: object::text(live, "/message").to_owned() })
    }

    fn update_condition(&self, running: Option<&Running>) -> Condition {
        let none = |message: &str| Condition::good(UPDATE_PENDING, false, message.to_owned());
        // The column of `kubectl get` says this: who is refused sees it there.
        let refused = self.resolved.as_ref().err().or(self.settings.as_ref().err());
        let Some(live) = self.set.filter(|_| !self.notebook.is_stopped()) else {
            return match refused {
                Some(refusal) => none(&format!("it cannot start: {}", refusal.message)),
                None => none("the next start takes what the catalogue has then"),
            };
        };
        let (Ok(resolved), Ok(settings)) = (&self.resolved, &self.settings) else {
            let why = refused.map(|refusal| refusal.message.as_str()).unwrap_or_default();
            return none(&format!("it keeps what it has: {why}"));
        };
        let wanted = desired::stateful_set(self.notebook, resolved.image(), settings, self.set);
        if !self.is_held(&wanted) {
            let is_old = running.zip(resolved.entry()).is_some_and(|(running, entry)| {
                self.catalogue.compare(entry, &running.digest, self.context) != Sameness::Same
            });
            return none(if is_old {
                "it is being restarted"
            } else {
                "it runs what its selection stands for"
            });
        }
        let known = running.map(|running| running.digest.clone()).or_else(|| {
            let written = scantling_image::Reference::parse(self.live_image()?).ok()?;
            written.digest().cloned()
        });
        let text = resolved
            .entry()
            .zip(known)
            .and_then(|(entry, digest)| pending(self.catalogue, entry, &digest, self.context));
        if let Some(text) = text {
            let message = format!("a restart brings {text}");
            return Condition::bad(UPDATE_PENDING, true, "NewImage", message);
        }
        let made_from = object::annotation(&wanted, desired::POD);
        if made_from == object::annotation(live.object(), desired::POD) {
            none("it runs what its selection stands for")
        } else {
            let message = "the definition of the notebook, or what the platform makes of it, has changed; a restart takes it";
            Condition::bad(UPDATE_PENDING, true, "NotebookChanged", message.to_owned())
        }
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
