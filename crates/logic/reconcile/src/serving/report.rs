//! What is told about a service: status and events.

use scantling_observed::{Deployment, Rollout, Service, View};
use serde_json::{Value, json};

use super::desired::{self, Template};
use super::refusal::Refusal;
use super::rollout::{self, Roll};
use super::select::{self, Chosen};
use super::spec::sentences;
use super::status::{self, Pods, Told};
use super::{One, Wish, fields};
use crate::action::{Action, EventKind, Target};
use crate::condition;
use crate::context::Context;
use crate::status_patch::patch;

impl<'a> One<'a> {
    /// The status and the events.
    pub(super) fn report(
        self,
        target: &Target,
        chosen: Option<&Chosen<'a>>,
        wish: &Result<Wish, Refusal>,
        roll: Option<&Roll>,
        context: &Context<'_>,
    ) -> Vec<Action> {
        let live = self.live();
        let newest = live.and_then(Deployment::template).map(desired::digest_of).unwrap_or_default();
        let pods = Pods::of(rollout::pods(self.observed, self.service), newest);
        let refusal = wish.as_ref().err();
        let refused = context.refused(&self.service.key());
        let predictor = status::predictor_ready(live, refusal, refused.as_ref(), self.is_stopped(), &pods);
        let ingress = self.ingress();
        let mut conditions = vec![
            self.runtime_condition(chosen, refusal),
            image_condition(wish),
            self.storage_condition(wish, &pods),
        ];
        if let Ok(wish) = wish {
            conditions.push(pinned_condition(&wish.template));
        }
        conditions.push(Self::rollout_condition(live, wish, roll, refused.as_ref(), &pods));
        let raw = self.service.object().get("spec").unwrap_or(&Value::Null);
        let mut ignored = fields::check_service(raw).ignored;
        if let Some(chosen) = chosen {
            let spec = chosen.runtime.object.get("spec").unwrap_or(&Value::Null);
            let of_runtime = fields::check_runtime(spec).ignored.into_iter();
            ignored.extend(of_runtime.map(|text| format!("{}: {text}", chosen.runtime.described())));
        }
        if !ignored.is_empty() {
            conditions.push(Told::new(
                status::FIELDS_IGNORED,
                Some(true),
                "FieldsIgnored",
                sentences(&ignored),
            ));
        }
        if self.is_stopped() {
            let gone = pods.total == 0;
            conditions.push(Told::new(
                status::STOPPED,
                Some(gone),
                "Stopped",
                "by the annotation serving.kserve.io/stop",
            ));
        }
        conditions.push(status::ready(&predictor, &ingress));
        conditions.push(predictor);
        conditions.push(ingress);
        let mut actions = self.events(target, chosen, &conditions);
        let wanted = self.status(chosen, wish, &conditions, &pods, context);
        if let Some(status) = patch(self.service.object().get("status"), &wanted) {
            actions.push(Action::PatchStatus { target: target.clone(), status });
        }
        actions
    }

    fn status(
        self,
        chosen: Option<&Chosen<'a>>,
        wish: &Result<Wish, Refusal>,
        conditions: &[Told],
        pods: &Pods,
        context: &Context<'_>,
    ) -> Value {
        let object = self.service.object();
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|told| told.to_json(condition::live(object, told.kind), context.now))
            .collect();
        let has_address = self.ingress().status == Some(true);
        // The namespace's domain is left to the resolver: clusters have names of their own.
        let url = has_address.then(|| format!("http://{}.{}.svc", self.name(), self.service.namespace()));
        let (own, cluster) = match chosen {
            Some(chosen) if chosen.runtime.is_of_cluster() => (None, Some(chosen.runtime.name())),
            Some(chosen) => (Some(chosen.runtime.name()), None),
            // What it had is remembered also while it cannot be resolved.
            None => match select::remembered(self.service) {
                Some((true, name)) => (None, Some(name)),
                Some((false, name)) => (Some(name), None),
                None => (None, None),
            },
        };
        let remembered = Some(self.service.status_text("runtimeChosenFor")).filter(|text| !text.is_empty());
        let chosen_for = wish.as_ref().ok().map(|wish| wish.chosen_for.as_str()).or(remembered);
        json!({
            "observedGeneration": self.service.generation(),
            "deploymentMode": self.mode().ok().or_else(|| {
                Some(self.service.status_text("deploymentMode")).filter(|mode| !mode.is_empty())
            }),
            "conditions": conditions,
            "url": url,
            "address": url.as_ref().map(|url| json!({"url": url})),
            "components": url.as_ref().map(|url| json!({"predictor": {"url": url}})),
            "modelStatus": status::model_status(wish.as_ref().err(), self.live(), pods),
            "servingRuntimeName": own,
            "clusterServingRuntimeName": cluster,
            "runtimeChosenFor": chosen_for,
        })
    }

    fn ingress(self) -> Told {
        let service: Option<Service<'_>> = self.observed.one(self.service.namespace(), &self.name());
        match service.filter(|service| self.controls(service.object())) {
            Some(_) => Told::new(
                status::INGRESS_READY,
                Some(true),
                "ServiceMade",
                "pods of the cluster reach it by its Service",
            ),
            None => Told::new(status::INGRESS_READY, None, "NoService", "its Service is not made yet"),
        }
    }

    fn runtime_condition(self, chosen: Option<&Chosen<'a>>, refusal: Option<&Refusal>) -> Told {
        match (refusal.filter(|refusal| refusal.condition == status::RUNTIME_RESOLVED), chosen) {
            (Some(refusal), _) => {
                let mut told = Told::of(refusal);
                if self.live().is_some() {
                    told.message.push_str("; the pods that it has stay as they are");
                }
                told
            }
            (None, Some(chosen)) => {
                let message = format!("{} serves it", chosen.runtime.described());
                Told::new(status::RUNTIME_RESOLVED, Some(true), "Resolved", message)
            }
            (None, None) => Told::new(status::RUNTIME_RESOLVED, None, "NotReached", ""),
        }
    }

    fn storage_condition(self, wish: &Result<Wish, Refusal>, pods: &Pods) -> Told {
        let told =
            |status, reason: &str, message: &str| Told::new(status::STORAGE_READY, status, reason, message);
        let wish = match wish {
            Ok(wish) => wish,
            Err(refusal) if refusal.condition == status::STORAGE_READY => return Told::of(refusal),
            Err(_) => return told(None, "NotReached", ""),
        };
        if !wish.has_storage {
            return told(Some(true), "NotNeeded", "the service names no storage");
        }
        if let Some(trouble) = pods.troubles.iter().find(|trouble| trouble.fetching) {
            let message = format!("pod {}: {}", trouble.pod, trouble.message);
            return told(Some(false), "ModelNotFetched", &message);
        }
        if pods.newest_initialized > 0 {
            told(Some(true), "Fetched", "the model is where the runtime looks for it")
        } else if self.is_stopped() {
            told(None, "Stopped", "it is fetched when the service is started")
        } else {
            told(None, "Fetching", "no pod has it yet")
        }
    }

    fn rollout_condition(
        live: Option<Deployment<'_>>,
        wish: &Result<Wish, Refusal>,
        roll: Option<&Roll>,
        refused: Option<&(&'static str, String)>,
        pods: &Pods,
    ) -> Told {
        let told = |status, reason: &str, message: String| {
            Told::new(status::ROLLOUT_PENDING, Some(status), reason, message)
        };
        let differs = live
            .and_then(Deployment::template)
            .zip(wish.as_ref().ok())
            .map(|(live, wish)| rollout::difference(live, &wish.template.value))
            .unwrap_or_default();
        if let Some((reason, why)) = refused.filter(|_| live.is_some()) {
            return told(true, reason, format!("{why}; the pods that it has stay as they are"));
        }
        if let (Err(refusal), Some(_)) = (wish, live) {
            let message = format!("{}; the pods that it has stay as they are", refusal.message);
            return told(true, "Blocked", message);
        }
        match roll {
            Some(Roll::Queued { why }) => return told(true, "Queued", format!("{differs}; {why}")),
            Some(Roll::Waits { why }) => return told(true, "WaitsForOwner", format!("{differs}; {why}")),
            Some(Roll::Recreate { why }) => {
                let message = format!(
                    "{differs}; {why}, so the old pods go first and nobody answers until the new ones are ready"
                );
                return told(true, "Recreating", message);
            }
            Some(Roll::Surge) => {
                return told(
                    true,
                    "RollingOut",
                    format!("{differs}; a new pod is ready before an old one goes"),
                );
            }
            Some(Roll::First | Roll::Unchanged) | None => {}
        }
        let Some(live) = live else { return told(false, "NothingRuns", String::new()) };
        if pods.total <= pods.newest {
            let waits = wish.as_ref().ok().and_then(|wish| wish.newer_fetcher.as_ref());
            let waits = waits.map(|image| {
                format!("; models are fetched by {image} now, which comes with the next change, or with another value of the annotation {}", rollout::ROLL)
            });
            return told(
                false,
                "UpToDate",
                format!("pods run what is declared{}", waits.unwrap_or_default()),
            );
        }
        let reason = if rollout::is_recreate(live) { "Recreating" } else { "RollingOut" };
        match live.rollout() {
            Rollout::Failed(why) => told(true, "RolloutFailed", format!("{why}; old pods still answer")),
            Rollout::Progressing(why) => {
                let stuck = pods
                    .troubles
                    .first()
                    .map(|trouble| format!("; pod {}: {}", trouble.pod, trouble.message));
                told(true, reason, format!("{why}{}", stuck.unwrap_or_default()))
            }
            Rollout::Complete | Rollout::NotApplicable(_) => {
                told(true, reason, "old pods are leaving".to_owned())
            }
        }
    }

    /// What people are told once.
    fn events(self, target: &Target, chosen: Option<&Chosen<'a>>, conditions: &[Told]) -> Vec<Action> {
        let mut events = Vec::new();
        let mut say = |kind, reason: &str, message: &str| {
            let (reason, message) = (reason.to_owned(), message.to_owned());
            events.push(Action::Event { target: target.clone(), kind, reason, message });
        };
        if let Some((chosen, before)) = chosen.and_then(|chosen| Some((chosen, chosen.instead_of.as_ref()?)))
        {
            let message = format!(
                "the runtime {before} is gone or no longer serves the model; {} serves it now",
                chosen.runtime.described()
            );
            say(EventKind::Warning, "RuntimeReselected", &message);
        }
        for told in conditions {
            let kind = match (told.kind, told.status) {
                (status::ROLLOUT_PENDING, Some(true)) if told.reason == "RollingOut" => EventKind::Normal,
                (
                    status::RUNTIME_RESOLVED
                    | status::IMAGE_RESOLVED
                    | status::STORAGE_READY
                    | status::PINNED,
                    Some(false),
                )
                | (status::FIELDS_IGNORED | status::ROLLOUT_PENDING, Some(true)) => EventKind::Warning,
                (status::PREDICTOR_READY, Some(false)) if is_alarming(&told.reason) => EventKind::Warning,
                _ => continue,
            };
            if told.is_news(condition::live(self.service.object(), told.kind)) {
                say(kind, &told.reason, &told.message);
            }
        }
        events
    }
}

/// Reasons of a predictor that does not answer which do not pass by waiting, and are not told by another condition.
fn is_alarming(reason: &str) -> bool {
    status::is_hopeless(reason)
        || matches!(reason, "QuotaExceeded" | "Refused" | "PodsNotMade" | "Unschedulable")
}

fn image_condition(wish: &Result<Wish, Refusal>) -> Told {
    match wish {
        Ok(wish) => Told::new(status::IMAGE_RESOLVED, Some(true), "Resolved", wish.template.image.clone()),
        Err(refusal) if refusal.condition == status::IMAGE_RESOLVED => Told::of(refusal),
        Err(_) => Told::new(status::IMAGE_RESOLVED, None, "NotReached", ""),
    }
}

fn pinned_condition(template: &Template) -> Told {
    if template.unpinned.is_empty() {
        return Told::new(status::PINNED, Some(true), "ByDigest", "every image is written by its digest");
    }
    let message = format!(
        "{} can change under the name: write a digest into the runtime",
        template.unpinned.join(" and ")
    );
    Told::new(status::PINNED, Some(false), "ByTag", message)
}
