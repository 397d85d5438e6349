//! How a changed template reaches the pods.

use std::collections::BTreeMap;

use scantling_api::kserve::Raw;
use scantling_api::{ObjectKey, object};
use scantling_image::Digest;
use scantling_observed::{
    Deployment, InferenceService, ModelRoll, Node, Observed, PersistentVolumeClaim, Pod, Rollout, View as _,
    devices, whole,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::desired::{self, CONTAINER, WRITTEN_FOR};
use super::fields::DISABLE_AUTO_UPDATE;
pub(crate) use super::fields::ROLL;
use super::select::Runtime;
use super::storage::FETCHER;

/// How a predictor's pods get their new template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "how")]
pub enum Roll {
    /// There is no predictor yet.
    First,
    /// Nothing changes for the pods.
    Unchanged,
    /// A new pod is ready before an old one goes.
    Surge,
    /// Old pods go first; until the new ones are ready, nobody answers.
    Recreate {
        /// Why there is no room for both.
        why: String,
    },
    /// The pods keep what they have until another service, which needs the same devices, has its new pods.
    Queued {
        /// Which, and what both need.
        why: String,
    },
    /// The pods keep what they have until their owner says so.
    Waits {
        /// Who asked for that, and what takes the change.
        why: String,
    },
}

/// What a decision is made from.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) observed: &'a Observed,
    pub(crate) service: InferenceService<'a>,
    pub(crate) runtime: &'a Runtime<'a>,
    pub(crate) live: Option<Deployment<'a>>,
    /// The wanted template.
    pub(crate) template: &'a Value,
    /// The digest of what the owner has written.
    pub(crate) written_for: &'a str,
    /// Devices that services need which get new pods just now: by device, the service.
    pub(crate) rolling: &'a Rolling,
}

/// Devices that services need which get new pods just now: by device, the service. One after the other, each finds the room that the one
/// before gave back; all at once, none would.
pub(crate) type Rolling = BTreeMap<String, ObjectKey>;

/// Who gets new pods just now and needs devices for them.
pub(crate) fn rolling<'a>(
    observed: &'a Observed,
    services: impl Iterator<Item = (InferenceService<'a>, Deployment<'a>)>,
) -> Rolling {
    let mut rolling = Rolling::new();
    for (service, live) in services {
        let newest = live.template().map(desired::digest_of).unwrap_or_default();
        let is_old = |pod: Pod<'_>| pod.annotation(desired::TEMPLATE).unwrap_or_default() != newest;
        // One that failed does not hold up the others.
        let is_moving =
            matches!(live.rollout(), Rollout::Progressing(_)) && pods(observed, service).any(is_old);
        // What leaves has its devices until it is gone. On a node that does not answer that may be never.
        let answers = |name: &str| observed.nodes().any(|node| node.name() == name && node.is_ready());
        let leaves = |pod: Pod<'_>| pod.is_being_deleted() && pod.node().is_some_and(answers);
        if is_moving || all_pods(observed, service).any(leaves) {
            note(&mut rolling, service, live.template());
        }
    }
    rolling
}

/// Notes that a service gets new pods of a template.
pub(crate) fn note(rolling: &mut Rolling, service: InferenceService<'_>, template: Option<&Value>) {
    let needed = template.and_then(|template| template.get("spec")).map(devices).unwrap_or_default();
    for device in needed.into_keys() {
        rolling.entry(device).or_insert_with(|| service.key());
    }
}

/// What the owner decides about the pods: everything of the spec but their number and how they are replaced, the labels that they get,
/// and the request for a roll.
pub(crate) fn written_for(service: InferenceService<'_>) -> String {
    let mut spec = service.object().get("spec").cloned().unwrap_or_default();
    if let Some(predictor) = spec.get_mut("predictor").and_then(Value::as_object_mut) {
        for scale in ["minReplicas", "maxReplicas", "deploymentStrategy"] {
            predictor.remove(scale);
        }
    }
    let labels: BTreeMap<&str, &str> = object::labels(service.object()).collect();
    let text = json!([spec, labels, service.annotation(ROLL)]).to_string();
    format!("{:.16}", Digest::of(text.as_bytes()).hex())
}

impl Change<'_> {
    /// What is to be done.
    pub(crate) fn roll(self) -> Roll {
        let Some(live) = self.live else { return Roll::First };
        let running = live.template().map(desired::digest_of).unwrap_or_default();
        if running == desired::digest_of(self.template) {
            return Roll::Unchanged;
        }
        let same_owner_wish = object::annotation(live.object(), WRITTEN_FOR) == Some(self.written_for);
        if let Some(who) = self.manual()
            && same_owner_wish
        {
            let (namespace, name) = (self.service.namespace(), self.service.name());
            return Roll::Waits {
                why: format!(
                    "{who}; to take it: kubectl -n {namespace} annotate inferenceservice {name} {ROLL}=1 --overwrite (any other value than before)"
                ),
            };
        }
        if live.replicas() == 0 {
            return Roll::Surge;
        }
        if let Some(why) = self.queue() {
            return Roll::Queued { why };
        }
        match self.no_room(live) {
            Some(why) => Roll::Recreate { why },
            None => Roll::Surge,
        }
    }

    /// Who asked for updates to wait.
    fn manual(self) -> Option<String> {
        match self.service.annotation(DISABLE_AUTO_UPDATE) {
            Some("true") => return Some(format!("{DISABLE_AUTO_UPDATE} is set on this service")),
            Some("false") => return None,
            _ => {}
        }
        if object::annotation(self.runtime.object, DISABLE_AUTO_UPDATE) == Some("true") {
            return Some(format!("{DISABLE_AUTO_UPDATE} is set on {}", self.runtime.described()));
        }
        // A platform whose spec cannot be read asks for nothing; its own condition says so.
        let platform = self.observed.platform()?.spec().ok()?;
        (platform.models.roll == ModelRoll::Manual)
            .then(|| "the platform's policy is models.roll: manual".to_owned())
    }

    /// Whose new pods come first.
    fn queue(self) -> Option<String> {
        let needed = devices(self.template.get("spec")?);
        let own = self.service.key();
        let (device, first) =
            self.rolling.iter().find(|(device, by)| needed.contains_key(*device) && **by != own)?;
        let place = first.namespace.as_deref().unwrap_or_default();
        Some(format!(
            "InferenceService {place}/{} gets its new pods first, since both need {device}",
            first.name
        ))
    }

    /// Why a new pod cannot stand beside an old one, if that is so.
    fn no_room(self, live: Deployment<'_>) -> Option<String> {
        let spec = self.template.get("spec")?;
        let port = |template: &Value| desired::port_of(template).target;
        if let Some(before) = live.template().map(port).filter(|before| *before != port(self.template)) {
            let plain = |port: &Value| port.as_str().map_or_else(|| port.to_string(), str::to_owned);
            let (before, after) = (plain(&before), plain(&port(self.template)));
            return Some(format!(
                "its port is called {after} instead of {before}, and its Service can find only one of them"
            ));
        }
        let claims = |spec: Option<&Value>| -> Vec<String> {
            let volumes = spec.and_then(|spec| spec.get("volumes")).and_then(Value::as_array);
            let names = volumes.into_iter().flatten();
            let names = names.map(|volume| object::text(volume, "/persistentVolumeClaim/claimName"));
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let used = claims(live.template().and_then(|template| template.get("spec")));
        let shared = claims(Some(spec)).into_iter().find(|name| {
            let claim: Option<PersistentVolumeClaim<'_>> = self.observed.one(self.service.namespace(), name);
            used.contains(name) && claim.is_some_and(PersistentVolumeClaim::is_of_one_node)
        });
        if let Some(claim) = shared {
            return Some(format!(
                "PersistentVolumeClaim {claim} can be used by one node at a time (ReadWriteOnce)"
            ));
        }
        let needed = devices(spec);
        if needed.is_empty() {
            return None;
        }
        let room = self.observed.nodes().any(|node| has_room(self.observed, node, spec, &needed));
        let names: Vec<&str> = needed.keys().map(String::as_str).collect();
        (!room).then(|| format!("no node has {} free for one pod more", names.join(" and ")))
    }

    /// The strategy of the Deployment: the owner's, else one without a gap where there is room. It is decided when a template changes and
    /// stays until the next change, unless a new pod finds no room after all.
    pub(crate) fn strategy(self, roll: &Roll, owner: Option<&Raw>) -> Value {
        if let Some(owner) = owner {
            return Value::Object(owner.clone());
        }
        let recreate = match roll {
            Roll::Recreate { .. } => true,
            Roll::First | Roll::Surge => false,
            Roll::Unchanged | Roll::Queued { .. } | Roll::Waits { .. } => self.live.is_some_and(|live| {
                is_recreate(live) || (self.is_stuck(live) && self.no_room(live).is_some())
            }),
        };
        if recreate {
            json!({"type": "Recreate"})
        } else {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})
        }
    }

    /// Has a pod of the newest template found no node for as long as a rollout may take? Old pods answer meanwhile, and others may give
    /// back what it needs, or a node may come.
    fn is_stuck(self, live: Deployment<'_>) -> bool {
        matches!(live.rollout(), Rollout::Failed(_))
            && pods(self.observed, self.service).any(|pod| {
                pod.node().is_none() && pod.trouble().is_some_and(|(reason, _)| reason == "Unschedulable")
            })
    }
}

/// Do old pods go before new ones come?
pub(crate) fn is_recreate(live: Deployment<'_>) -> bool {
    object::text(live.object(), "/spec/strategy/type") == "Recreate"
}

/// The pods of a predictor that are not on their way out.
pub(crate) fn pods<'a>(
    observed: &'a Observed,
    service: InferenceService<'a>,
) -> impl Iterator<Item = Pod<'a>> + 'a {
    all_pods(observed, service).filter(|pod| !pod.is_being_deleted())
}

fn all_pods<'a>(observed: &'a Observed, service: InferenceService<'a>) -> impl Iterator<Item = Pod<'a>> + 'a {
    let app = format!("isvc.{}", desired::name(service));
    let finished = |pod: &Pod<'_>| matches!(pod.phase(), "Succeeded" | "Failed");
    observed
        .in_namespace::<Pod<'a>>(service.namespace())
        .filter(move |pod| pod.label("app") == Some(app.as_str()) && !finished(pod))
}

fn has_room(observed: &Observed, node: Node<'_>, spec: &Value, needed: &BTreeMap<String, u64>) -> bool {
    if !node.is_ready() || !node.is_schedulable() {
        return false;
    }
    let selector = object::mapping(spec, "/nodeSelector");
    if !selector.into_iter().flatten().all(|(key, value)| value.as_str() == node.label(key)) {
        return false;
    }
    let mut taken: BTreeMap<String, u64> = BTreeMap::new();
    let on_it = observed
        .pods()
        .filter(|pod| pod.node() == Some(node.name()) && !matches!(pod.phase(), "Succeeded" | "Failed"));
    for pod in on_it {
        for (name, amount) in pod.object().get("spec").map(devices).unwrap_or_default() {
            *taken.entry(name).or_default() += amount;
        }
    }
    needed.iter().all(|(name, amount)| {
        let all = node.object().pointer("/status/allocatable").and_then(|all| all.get(name)).and_then(whole);
        let taken = taken.get(name).copied().unwrap_or_default();
        all.unwrap_or_default() >= taken.saturating_add(*amount)
    })
}

/// The image that a template has for the container that serves.
pub(crate) fn image_of(template: &Value) -> Option<&str> {
    image_in(template, CONTAINER)
}

/// The image that a template has for the container that fetches the model.
pub(crate) fn fetcher_of(template: &Value) -> Option<&str> {
    image_in(template, FETCHER)
}

/// The environment of what fetches the model of a predictor.
pub(crate) fn fetching_env(live: Deployment<'_>) -> Vec<Value> {
    let spec = live.template().and_then(|template| template.get("spec"));
    let containers = spec.map(object::pod_containers).unwrap_or_default();
    let fetcher = containers.into_iter().find(|container| container.name() == FETCHER);
    fetcher.and_then(|fetcher| fetcher.value.get("env")?.as_array().cloned()).unwrap_or_default()
}

fn image_in<'a>(template: &'a Value, name: &str) -> Option<&'a str> {
    let containers = object::pod_containers(template.get("spec")?);
    containers.into_iter().find(|container| container.name() == name)?.image()
}

/// What differs between two templates, in words.
pub(crate) fn difference(from: &Value, to: &Value) -> String {
    match (image_of(from), image_of(to)) {
        (Some(from), Some(to)) if from != to => format!("image {from} → {to}"),
        _ => match (fetcher_of(from), fetcher_of(to)) {
            (Some(from), Some(to)) if from != to => format!("image that fetches the model {from} → {to}"),
            _ => "the pod's template has changed".to_owned(),
        },
    }
}
