//! Models that are served.
//!
//! # Flow
//! `InferenceService` → runtime (`ServingRuntime`, `ClusterServingRuntime`) by KServe's rules → pod template: the runtime's containers with
//! what the service writes merged over them, and the model from its storage → `Deployment`, `Service`, `NetworkPolicy` called
//! `NAME-predictor`; Deployment and pods → `status`.
//!
//! # Guarantees
//! - Nothing is half-made: a service that cannot be served as it is written gets a condition with the fix, and no object. One that has
//!   pods already keeps them as they are.
//! - A runtime that was chosen stays, whatever runtimes appear, while it exists and serves the model, until the owner asks for something else.
//! - Services whose new pods need the same devices get them one after the other.
//! - A service that is refused can be stopped and started all the same, and its pods stay guarded.
//! - A change of a runtime reaches the pods with a new pod ready before an old one goes; where there is no room for both it is announced
//!   that nobody answers for a moment; with `serving.kserve.io/disable-auto-update` or the platform's policy it waits, and a condition
//!   says for what.
//! - A new version of the platform's operator replaces no pods: those that run keep the image that fetched their model until they are
//!   replaced for another reason, or their owner asks.
//! - Equal content is equal text: images with a digest are written without their tag, so a new tag of the same digest restarts nothing.
//! - Values of secrets are in no object, condition or event: containers get them by reference.
//! - Nobody from another namespace gets an answer unless the service allows it.
//!
//! # Assumptions
//! The image that fetches models is that of the platform's operator, whose Deployment is `scantling-system/scantling-operator`; its entry
//! point is the program. Claims and accounts are watched, and the secrets that services name are read.
//!
//! # Caveats
//! `Ready` says whether pods answer. A rollout that fails while old pods answer shows in `RolloutPending` and `modelStatus`. No autoscaler is
//! made. While updates wait, a Deployment's template is not compared with anything.
//!
//! # Errors
//! Conditions `RuntimeResolved`, `ImageResolved`, `StorageReady`, `Pinned`, `RolloutPending`, `FieldsIgnored`, `PredictorReady`,
//! `IngressReady`, `Ready`, and events of the same reasons.

mod definition;
mod desired;
mod fields;
mod forecast;
mod placeholder;
mod refusal;
mod report;
mod rollout;
mod select;
mod spec;
mod status;
mod storage;

use std::collections::BTreeSet;

use scantling_api::kserve::{ModelSpec, PredictorSpec};
use scantling_api::object;
use scantling_observed::{Deployment, InferenceService, NetworkPolicy, Observed, Service, View};
use serde_json::Value;

use crate::action::{Action, MANAGER, Target};
use crate::applied::apply_unless_done;
use crate::context::{Context, Met};
use crate::isolation::{ALLOW_FROM, SYSTEM_NAMESPACE, allowed_namespaces};
use crate::reconciler::Reconciler;

use desired::Template;
use refusal::{Failure, Refusal};
use rollout::{Change, Rolling};
use select::Chosen;
use spec::account_of;
use storage::Places;

pub(crate) use definition::{CLUSTER_RUNTIME_DEFINITION, RUNTIME_DEFINITION, SERVICE_DEFINITION};
pub use definition::{InferenceServiceStatus, ModelStatus};
pub use fields::{ANNOTATIONS, Field, LABELS, RUNTIME_FIELDS, SERVICE_FIELDS, Use};
pub use forecast::{Forecast, rollout};
pub use rollout::Roll;

/// The Deployment of the platform's operator, whose image fetches models.
pub(crate) const OPERATOR: &str = "scantling-operator";

/// Longest name of a service, in bytes: the label `app` of its pods is `isvc.NAME-predictor`, and a label has at most 63.
pub const MAX_SERVICE_NAME: usize = 48;
/// Most pods of one service: more are a mistake, and would take the cluster down before anybody notices.
const MAX_REPLICAS: i32 = 1000;

/// The reconciler of models.
pub const SERVING: Reconciler = Reconciler {
    name: "model-serving",
    watches: &[
        ("serving.kserve.io", "v1beta1", "InferenceService"),
        ("serving.kserve.io", "v1alpha1", "ServingRuntime"),
        ("serving.kserve.io", "v1alpha1", "ClusterServingRuntime"),
        ("apps", "v1", "Deployment"),
        ("", "v1", "Service"),
        ("networking.k8s.io", "v1", "NetworkPolicy"),
        ("", "v1", "Pod"),
        ("", "v1", "Node"),
        ("", "v1", "PersistentVolumeClaim"),
        ("", "v1", "ServiceAccount"),
        ("scantling.dev", "v1alpha1", "Platform"),
    ],
    named: &[("", "v1", "Secret")],
    names: storage::names,
    reconcile,
};

fn reconcile(observed: &Observed, context: &Context<'_>) -> Vec<Action> {
    let services = observed.all::<InferenceService<'_>>();
    let all: Vec<One<'_>> = services
        .filter(|service| !service.is_being_deleted())
        .map(|service| One { observed, service, is_forecast: false })
        .collect();
    let mut rolling =
        rollout::rolling(observed, all.iter().filter_map(|one| Some((one.service, one.live()?))));
    all.into_iter().flat_map(|one| one.reconcile(context, &mut rolling)).collect()
}

/// One service and what surrounds it.
#[derive(Clone, Copy)]
struct One<'a> {
    observed: &'a Observed,
    service: InferenceService<'a>,
    /// Nobody acts on what is decided.
    is_forecast: bool,
}

/// What is to be made.
struct Wish {
    predictor: PredictorSpec,
    template: Template,
    has_storage: bool,
    /// The image that fetches models now, where the pods have another.
    newer_fetcher: Option<String>,
    allowed: BTreeSet<String>,
    chosen_for: String,
}

fn invalid(reason: &'static str, message: impl Into<String>) -> Refusal {
    Refusal {
        condition: status::RUNTIME_RESOLVED,
        reason,
        failure: Failure::InvalidPredictorSpec,
        message: message.into(),
    }
}

impl<'a> One<'a> {
    fn reconcile(self, context: &Context<'_>, rolling: &mut Rolling) -> Vec<Action> {
        let Some(target) = Target::of(self.service.object()) else { return Vec::new() };
        let (chosen, wish) = self.wish(context.met);
        let live = self.live();
        let mut writes = Vec::new();
        let mut roll = None;
        if let (Some(chosen), Ok(wish)) = (&chosen, &wish) {
            let written_for = rollout::written_for(self.service);
            let change = self.change(chosen, wish, live, &written_for, rolling);
            let decided = change.roll();
            writes = self.writes(change, wish, &decided, context);
            if matches!(decided, Roll::Surge | Roll::Recreate { .. }) {
                rollout::note(rolling, self.service, Some(&wish.template.value));
            }
            roll = Some(decided);
        } else {
            writes.extend(self.upkeep_of_refused(context));
        }
        // The status comes first: a write that fails, on a quota say, must not keep it back.
        let mut actions = self.report(&target, chosen.as_ref(), &wish, roll.as_ref(), context);
        actions.extend(writes);
        actions
    }

    fn name(self) -> String {
        desired::name(self.service)
    }

    fn live(self) -> Option<Deployment<'a>> {
        let found: Deployment<'a> = self.observed.one(self.service.namespace(), &self.name())?;
        self.controls(found.object()).then_some(found)
    }

    /// Does the service control this object?
    fn controls(self, object: &Value) -> bool {
        object::controller(object).is_some_and(|owner| owner.uid == self.service.uid())
    }

    fn change<'b>(
        self,
        chosen: &'b Chosen<'b>,
        wish: &'b Wish,
        live: Option<Deployment<'b>>,
        written_for: &'b str,
        rolling: &'b Rolling,
    ) -> Change<'b>
    where
        'a: 'b,
    {
        Change {
            observed: self.observed,
            service: self.service,
            runtime: &chosen.runtime,
            live,
            template: &wish.template.value,
            written_for,
            rolling,
        }
    }

    /// The runtime, as far as there is one, and what is to be made, or why nothing is.
    fn wish(self, met: &Met) -> (Option<Chosen<'a>>, Result<Wish, Refusal>) {
        let read = self.readable().and_then(|(predictor, model)| {
            let chosen = select::choose(self.observed, self.service, &model)?;
            Ok((predictor, model, chosen))
        });
        match read {
            Ok((predictor, model, chosen)) => {
                let wish = self.wish_of(predictor, &model, &chosen, met);
                (Some(chosen), wish)
            }
            Err(refusal) => (None, Err(refusal)),
        }
    }

    fn wish_of(
        self,
        predictor: PredictorSpec,
        model: &ModelSpec,
        chosen: &Chosen<'a>,
        met: &Met,
    ) -> Result<Wish, Refusal> {
        let runtime = &chosen.runtime;
        let spec = runtime.object.get("spec").unwrap_or(&Value::Null);
        if let Some(first) = fields::check_runtime(spec).refused.into_iter().next() {
            return Err(invalid("RuntimeNotSupported", format!("{}: {first}", runtime.described())));
        }
        let mut places = Places {
            observed: self.observed,
            namespace: self.service.namespace(),
            service_account: account_of(&predictor),
            fetch_image: None,
            assumed: self.is_forecast.then(|| self.live().map(rollout::fetching_env).unwrap_or_default()),
            unread: &met.unread,
        };
        let mut made = |fetch_image| -> Result<(bool, Template), Refusal> {
            places.fetch_image = fetch_image;
            let storage = places.storage(model)?;
            let has_storage = storage.init.is_some();
            Ok((has_storage, desired::template(self.service, &predictor, model, runtime, storage)?))
        };
        let (has_storage, template) = match self.kept(&mut made) {
            Some(kept) => kept,
            None => made(self.fetch_image())?,
        };
        let fetching = rollout::fetcher_of(&template.value);
        let newer_fetcher = self.fetch_image().filter(|image| fetching.is_some_and(|own| own != *image));
        let newer_fetcher = newer_fetcher.map(str::to_owned);
        let allowed = allowed_namespaces(self.service.annotation(ALLOW_FROM))
            .map_err(|error| invalid("AnnotationMalformed", error))?;
        self.nothing_foreign()?;
        let chosen_for = select::chosen_for(model);
        Ok(Wish { predictor, template, has_storage, newer_fetcher, allowed, chosen_for })
    }

    /// The image that fetches models now: that of the platform's operator.
    fn fetch_image(self) -> Option<&'a str> {
        let operator: Deployment<'a> = self.observed.one(SYSTEM_NAMESPACE, OPERATOR)?;
        operator.object().pointer("/spec/template/spec/containers/0/image")?.as_str()
    }

    /// The template that runs, where it differs from the wanted one only in the image that fetches: its model was fetched already, and a
    /// new operator is no reason for anybody's pods to be replaced. The new image comes with the next change, or when the owner asks.
    fn kept(
        self,
        made: &mut impl FnMut(Option<&'a str>) -> Result<(bool, Template), Refusal>,
    ) -> Option<(bool, Template)> {
        let live = self.live().filter(|live| live.replicas() > 0)?;
        let asked_for = object::annotation(live.object(), rollout::ROLL);
        if asked_for != self.service.annotation(rollout::ROLL) {
            return None;
        }
        let running = live.template()?;
        let (has_storage, template) = made(Some(rollout::fetcher_of(running)?)).ok()?;
        (desired::digest_of(&template.value) == desired::digest_of(running))
            .then_some((has_storage, template))
    }

    fn nothing_foreign(self) -> Result<(), Refusal> {
        let (namespace, name) = (self.service.namespace(), self.name());
        let found = [
            self.observed.one::<Deployment<'a>>(namespace, &name).map(View::object),
            self.observed.one::<Service<'a>>(namespace, &name).map(View::object),
            self.observed.one::<NetworkPolicy<'a>>(namespace, &name).map(View::object),
        ];
        match found.into_iter().flatten().find(|object| !self.controls(object)) {
            None => Ok(()),
            Some(object) => Err(invalid(
                "ForeignObject",
                format!(
                    "there is a {} {namespace}/{name} that this service does not control: remove it, or make the service anew under another name",
                    object::text(object, "/kind")
                ),
            )),
        }
    }

    fn is_stopped(self) -> bool {
        self.service.annotation(fields::STOP) == Some("true")
    }

    /// How many pods. Where somebody else decides, as many as there are: a number that is not written any more would be taken for one.
    fn replicas(self, predictor: &PredictorSpec) -> i64 {
        if self.is_stopped() {
            return 0;
        }
        let external = self.service.annotation(fields::AUTOSCALER_CLASS) == Some("external");
        let stopped = |live: &Deployment<'_>| object::annotation(live.object(), desired::STOPPED).is_some();
        match self.live().filter(|live| external && !stopped(live)) {
            Some(live) => live.replicas(),
            None => i64::from(predictor.min_replicas.unwrap_or(1)),
        }
    }

    /// What is missing of the predictor.
    fn writes(self, change: Change<'_>, wish: &Wish, roll: &Roll, context: &Context<'_>) -> Vec<Action> {
        let strategy = change.strategy(roll, wish.predictor.deployment_strategy.as_ref());
        let replicas = self.replicas(&wish.predictor);
        let waiting = matches!(roll, Roll::Waits { .. } | Roll::Queued { .. });
        if let Some(live) = change.live.filter(|_| waiting) {
            return self.upkeep(live, replicas, &strategy, Some(&wish.allowed), context);
        }
        let template = &wish.template.value;
        let mut writes = self.surroundings(template, Some(&wish.allowed), context);
        let roll = self.service.annotation(rollout::ROLL);
        let wanted =
            desired::deployment(self.service, template, replicas, &strategy, change.written_for, roll);
        writes.extend(apply_unless_done(wanted, change.live.map(View::object)));
        writes
    }

    /// What is missing of a predictor whose pods keep the template that they have.
    fn upkeep(
        self,
        live: Deployment<'_>,
        replicas: i64,
        strategy: &Value,
        allowed: Option<&BTreeSet<String>>,
        context: &Context<'_>,
    ) -> Vec<Action> {
        let template = live.template().unwrap_or(&Value::Null);
        let mut writes = self.surroundings(template, allowed, context);
        let kept = |name| object::annotation(live.object(), name);
        if replicas != live.replicas() {
            let written_for = kept(desired::WRITTEN_FOR).unwrap_or_default();
            let roll = kept(rollout::ROLL);
            let object = desired::deployment(self.service, template, replicas, strategy, written_for, roll);
            writes.push(Action::Apply { object, manager: MANAGER.to_owned(), force: true });
        }
        writes
    }

    /// A predictor that cannot be served as it is written: its pods stay as they are, guarded, and stop and start as their owner says.
    fn upkeep_of_refused(self, context: &Context<'_>) -> Vec<Action> {
        let Some(live) = self.live() else { return Vec::new() };
        let predictor = self.service.spec().map(|spec| spec.predictor).unwrap_or_default();
        let sane = predictor.min_replicas.is_none_or(|replicas| (1..=MAX_REPLICAS).contains(&replicas));
        let replicas = match self.is_stopped() {
            true => 0,
            false if live.replicas() > 0 || !sane => live.replicas(),
            false => self.replicas(&predictor),
        };
        let strategy = live.object().pointer("/spec/strategy").cloned().unwrap_or_default();
        let allowed = allowed_namespaces(self.service.annotation(ALLOW_FROM)).ok();
        self.upkeep(live, replicas, &strategy, allowed.as_ref(), context)
    }

    /// The policy and the Service of pods of a template, as far as nobody else has an object of that name.
    fn surroundings(
        self,
        template: &Value,
        allowed: Option<&BTreeSet<String>>,
        context: &Context<'_>,
    ) -> Vec<Action> {
        let (namespace, name) = (self.service.namespace(), self.name());
        let policy = self.observed.one::<NetworkPolicy<'_>>(namespace, &name).map(View::object);
        let service = self.observed.one::<Service<'_>>(namespace, &name).map(View::object);
        let ours = |found: Option<&Value>| found.is_none_or(|object| self.controls(object));
        let mut writes = Vec::new();
        // Guarded before there is anything to guard.
        if let Some(allowed) = allowed.filter(|_| ours(policy)) {
            let mut ports = vec![desired::port_of(template).number];
            // Pods that are still there may answer on another one.
            let newest = desired::digest_of(template);
            if rollout::pods(self.observed, self.service)
                .any(|pod| pod.annotation(desired::TEMPLATE) != Some(newest))
            {
                let before = policy.and_then(|policy| policy.pointer("/spec/ingress/1/ports")?.as_array());
                let before = before.into_iter().flatten().filter_map(|port| port.get("port")).cloned();
                ports.extend(before.filter(|port| *port != ports[0]).collect::<Vec<_>>());
            }
            let guard = desired::policy(self.service, &ports, context.namespace, allowed);
            writes.extend(apply_unless_done(guard, policy));
        }
        if ours(service) {
            writes.extend(apply_unless_done(desired::service(self.service, template), service));
        }
        writes
    }
}
