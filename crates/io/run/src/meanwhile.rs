//! What others did while a run was under way, and what the run did about it.
//!
//! A run takes minutes, and the cluster is used all the time: nodes are drained, models are scaled, notebooks are opened, fields are
//! edited, passwords are changed. What the run wrote is looked at once more before it is held against the lock, and decided again by the
//! same rules if somebody has changed it since. The rest is people's: it is left alone, and said.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use scantling_api::{ObjectKey, object};
use scantling_cluster::ClusterError;
use scantling_finding::{Finding, Place, codes};
use scantling_observed::{InferenceService, Notebook, View as _, annotations};
use scantling_plan::{ForeignField, NodeFacts, Outcome, Step};
use scantling_registry::Verdict;
use scantling_release::Rule;
use serde::Serialize;
use serde_json::Value;

use crate::event::What;
use crate::health::{health, judged};
use crate::report::Stop;
use crate::session::Session;

/// Objects that are read one by one; of more, whole lists are read.
const ONE_BY_ONE: usize = 64;
/// Reads under way at the same time, as for writes.
const AT_ONCE: usize = 16;

/// What sort of thing somebody did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// An object that the run had written was changed or deleted.
    Edit,
    /// A node came, went, or was cordoned or let in again.
    Node,
    /// A pod of the run was removed, as a drain does it.
    Eviction,
    /// A notebook came, went or was changed.
    Notebook,
    /// A model came, went, was changed or scaled.
    Model,
    /// A secret with which images are pulled was changed.
    PullSecret,
}

/// Something that somebody else did while the run was under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Meanwhile {
    /// What sort of thing it is.
    pub doing: Doing,
    /// The object.
    pub object: ObjectKey,
    /// What happened to it.
    pub what: String,
    /// What the run did about it.
    pub did: String,
}

/// What people had when the run began, as far as it shows whether they did something since.
#[derive(Debug, Clone, Default)]
pub(crate) struct People {
    /// Generations of notebooks.
    pub(crate) notebooks: BTreeMap<ObjectKey, i64>,
    /// Models; none before anybody has looked.
    pub(crate) models: Option<BTreeMap<ObjectKey, Model>>,
}

/// What of a model shows that somebody did something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    generation: i64,
    /// How many pods it is to have; none where there is no predictor.
    replicas: Option<i64>,
}

impl People {
    /// Takes in notebooks.
    pub(crate) fn saw_notebooks(&mut self, notebooks: &[Value]) {
        self.notebooks = keyed(notebooks).map(|(key, object)| (key, generation(object))).collect();
    }

    /// Takes in models, with the deployments among `around`, when they are looked at for the first time.
    pub(crate) fn saw_models(&mut self, services: &[Value], around: &[Value]) {
        let seen = || models(services, around).into_iter().map(|(key, model, _)| (key, model)).collect();
        self.models.get_or_insert_with(seen);
    }
}

fn keyed(objects: &[Value]) -> impl Iterator<Item = (ObjectKey, &Value)> {
    objects.iter().filter_map(|object| Some((object::key(object).ok()?, object)))
}

fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
}

/// Models, each with its predictor's pods: ready ones of all.
fn models(services: &[Value], around: &[Value]) -> Vec<(ObjectKey, Model, String)> {
    let predictors: BTreeMap<(Option<&str>, &str), &Value> = around
        .iter()
        .filter(|object| object::text(object, "/kind") == "Deployment")
        .map(|object| ((object::namespace(object), object::name(object)), object))
        .collect();
    keyed(services)
        .map(|(key, service)| {
            let name = format!("{}-predictor", InferenceService::of(service).name());
            let predictor = predictors.get(&(object::namespace(service), name.as_str()));
            let number = |at: &str| predictor.and_then(|found| found.pointer(at)).and_then(Value::as_i64);
            let replicas = number("/spec/replicas");
            let ready = number("/status/readyReplicas").unwrap_or_default();
            let pods = replicas.map_or_else(
                || "it has no predictor yet".to_owned(),
                |all| format!("{ready} of {all} pods are ready"),
            );
            (key, Model { generation: generation(service), replicas }, pods)
        })
        .collect()
}

/// What became of a model, if something did.
fn change(before: Option<&Model>, now: &Model) -> Option<String> {
    let Some(before) = before else { return Some("it was made".to_owned()) };
    let spec = (before.generation != now.generation).then_some("its spec was changed");
    let scaled = match (before.replicas, now.replicas) {
        (Some(then), Some(now)) if then != now => Some(format!("it was scaled from {then} to {now} pods")),
        _ => None,
    };
    match (spec, scaled) {
        (Some(spec), Some(scaled)) => Some(format!("{spec}, {scaled}")),
        (spec, scaled) => spec.map(ToOwned::to_owned).or(scaled),
    }
}

fn owners(fields: &[ForeignField]) -> String {
    let owners: BTreeSet<&str> = fields.iter().flat_map(|f| f.owners.iter().map(String::as_str)).collect();
    if owners.is_empty() { "somebody".to_owned() } else { owners.into_iter().collect::<Vec<_>>().join(", ") }
}

fn changed(fields: &[ForeignField]) -> String {
    let names: Vec<&str> = fields.iter().map(|f| f.field.as_str()).collect();
    let were = if names.len() == 1 { "was" } else { "were" };
    format!("{} {were} changed by {}", names.join(", "), owners(fields))
}

impl Session<'_> {
    /// Notes what somebody did, and what came of it.
    pub(crate) fn meanwhile(&mut self, doing: Doing, object: ObjectKey, what: String, did: String) {
        self.tell(What::Meanwhile { object: object.clone(), did: format!("{what}; {did}") });
        self.report.meanwhile.push(Meanwhile { doing, object, what, did });
    }

    /// Looks at what the run wrote once more. What others have changed since is decided again, by the release's rules: taken, kept, or
    /// the end of the run. Objects that the run has created are not among them: nobody had them before.
    pub(crate) async fn decide_again(&mut self) -> Result<(), Stop> {
        let written: BTreeSet<ObjectKey> = self
            .report
            .outcomes
            .iter()
            .filter(|o| matches!(o.outcome, Outcome::Updated | Outcome::Adopted | Outcome::Replaced))
            .map(|o| o.key.clone())
            .collect();
        let now = self.read_again(&written).await?;
        let desired = std::mem::take(&mut self.desired);
        let mut done = Ok(());
        for wanted in desired.iter().filter(|d| written.contains(&d.key)) {
            let Some(now) = now.get(&wanted.key) else { continue };
            let known = self.live.get(&wanted.key).map(|o| object::resource_version(o).to_owned());
            if known.as_deref() == now.as_ref().map(object::resource_version) {
                continue;
            }
            done = self.edited(wanted, now.as_ref()).await;
            if done.is_err() {
                break;
            }
        }
        self.desired = desired;
        done
    }

    /// Objects as they are now; none for those that are gone.
    async fn read_again(
        &mut self,
        keys: &BTreeSet<ObjectKey>,
    ) -> Result<BTreeMap<ObjectKey, Option<Value>>, ClusterError> {
        if keys.len() > ONE_BY_ONE {
            let mut found: BTreeMap<ObjectKey, Option<Value>> =
                keys.iter().map(|key| (key.clone(), None)).collect();
            let scopes: BTreeSet<(&str, &str, Option<&str>)> =
                keys.iter().map(|k| (k.group.as_str(), k.kind.as_str(), k.namespace.as_deref())).collect();
            for (group, kind, namespace) in scopes {
                for object in self.list(group, kind, namespace).await? {
                    if let Some(place) = object::key(&object).ok().and_then(|key| found.get_mut(&key)) {
                        *place = Some(object);
                    }
                }
            }
            return Ok(found);
        }
        let session: &Self = self;
        let reads = futures::stream::iter(keys)
            .map(|key| async move { session.read(key).await.map(|object| (key.clone(), object)) });
        let read: Vec<_> = reads.buffered(AT_ONCE).collect().await;
        read.into_iter().collect()
    }

    /// Decides about an object that is no longer as the run left it.
    async fn edited(&mut self, wanted: &scantling_plan::Desired, now: Option<&Value>) -> Result<(), Stop> {
        // What was there before this run counts no more: the run has applied what it wants.
        let step = self.decide_upon(wanted, Some(&wanted.value), None, now)?;
        match now {
            Some(now) => self.live.insert(wanted.key.clone(), now.clone()),
            None => self.live.remove(&wanted.key),
        };
        let key = wanted.key.clone();
        if step.outcome == Outcome::Conflict {
            let what = if step.conflicts.is_empty() { step.cause.clone() } else { changed(&step.conflicts) };
            self.conflict(&step);
            self.ended(&step, Outcome::Conflict, format!("after it was written, {what}"));
            self.meanwhile(
                Doing::Edit,
                key.clone(),
                what.clone(),
                "the run stopped: no rule says who wins".to_owned(),
            );
            return Err(Stop::Halt(format!("{key} was changed after the run had written it: {what}")));
        }
        let kept = self.newly_kept(&step);
        if step.writes() {
            self.apply(wanted).await?;
            if judged(&key) {
                self.settle(&key, self.options.waits.rollout, health).await?;
            }
        }
        if now.is_none() {
            let did = "it was created again".to_owned();
            self.meanwhile(Doing::Edit, key, "it was deleted".to_owned(), did);
            return Ok(());
        }
        if !step.taken.is_empty() {
            let did = "it was written again, for the release's rule is `take`".to_owned();
            self.meanwhile(Doing::Edit, key.clone(), changed(&step.taken), did);
        } else if !step.changes.is_empty() {
            let what = format!("it was changed: {}", step.cause);
            self.meanwhile(Doing::Edit, key.clone(), what, "it was written again".to_owned());
        }
        if !kept.is_empty() {
            let did = "it was kept, for the release's rule is `keep`".to_owned();
            self.meanwhile(Doing::Edit, key, changed(&kept), did);
        }
        Ok(())
    }

    /// Fields that a rule leaves to somebody who did not have them when the run wrote the object.
    fn newly_kept(&self, step: &Step) -> Vec<ForeignField> {
        let before = self.report.outcomes.iter().rev().find(|o| o.key == step.key);
        let known = |field: &ForeignField| before.is_some_and(|before| before.kept.contains(field));
        step.kept.iter().filter(|f| f.rule == Some(Rule::Keep) && !known(f)).cloned().collect()
    }

    /// Says what others did beside the run, if it has written anything.
    pub(crate) async fn look_around(&mut self) -> Result<(), Stop> {
        if self.journal_written.is_none() {
            return Ok(());
        }
        let has_images = !self.release.references.is_empty();
        if has_images {
            self.look_at_nodes().await?;
        }
        if !self.release.images.is_empty() || self.release.catalogue.is_some() {
            self.look_at_notebooks().await?;
            self.look_at_models().await?;
        }
        if has_images {
            self.renew_credentials().await;
            self.try_new_secrets().await;
        }
        Ok(())
    }

    async fn look_at_nodes(&mut self) -> Result<(), ClusterError> {
        let now: BTreeMap<String, NodeFacts> = self
            .list("", "Node", None)
            .await?
            .iter()
            .map(|node| (object::uid(node).to_owned(), NodeFacts::read(node)))
            .collect();
        let before: BTreeMap<String, NodeFacts> =
            self.nodes.iter().map(|node| (node.uid.clone(), node.clone())).collect();
        let uids: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for uid in uids {
            let given = |node: &NodeFacts| self.report.prepulled.get(&node.name).map_or(0, Vec::len);
            let (node, what, did) = match (before.get(uid), now.get(uid)) {
                (None, Some(new)) => (
                    new,
                    "it came",
                    "it was not given the release's images: the first pod there pulls them, by digest"
                        .to_owned(),
                ),
                (Some(old), None) => (old, "it is gone", "it was not waited for".to_owned()),
                (Some(old), Some(new)) if new.unschedulable && !old.unschedulable => {
                    let did = match given(new) {
                        0 => "it was not given images; pods that land there when it is let in again pull them, by digest".to_owned(),
                        number => format!("it has {number} of the release's images; where the platform's pods went was waited for and held against the lock"),
                    };
                    (new, "it was cordoned", did)
                }
                (Some(old), Some(new)) if old.unschedulable && !new.unschedulable => {
                    (new, "it was let in again", format!("it has {} of the release's images", given(new)))
                }
                (Some(old), Some(new)) if old.ready && !new.ready => {
                    (new, "it became unready", "it was not waited for".to_owned())
                }
                _ => continue,
            };
            let key = ObjectKey::cluster("", "Node", node.name.clone());
            self.meanwhile(Doing::Node, key, what.to_owned(), did);
        }
        Ok(())
    }

    async fn look_at_notebooks(&mut self) -> Result<(), ClusterError> {
        let now = self.list("kubeflow.org", "Notebook", None).await?;
        let before = std::mem::take(&mut self.people.notebooks);
        let news: Vec<(ObjectKey, &str, String)> = keyed(&now)
            .filter_map(|(key, notebook)| {
                let what = match before.get(&key) {
                    None => "it was made",
                    Some(then) if *then != generation(notebook) => "its spec was changed",
                    Some(_) => return None,
                };
                Some((key, what, self.did_for_notebook(notebook)))
            })
            .collect();
        for (key, what, did) in news {
            self.meanwhile(Doing::Notebook, key, what.to_owned(), did);
        }
        let there: BTreeSet<ObjectKey> = keyed(&now).map(|(key, _)| key).collect();
        for key in before.into_keys().filter(|key| !there.contains(key)) {
            self.meanwhile(
                Doing::Notebook,
                key,
                "it was deleted".to_owned(),
                "nothing had to be done".to_owned(),
            );
        }
        Ok(())
    }

    /// What a notebook has of what the release brings.
    fn did_for_notebook(&self, notebook: &Value) -> String {
        let selection = Notebook::of(notebook).annotation(annotations::SELECTION).unwrap_or_default();
        let entry = self.desired.iter().find(|d| {
            d.key.kind == "NotebookImage" && object::text(&d.value, "/spec/selection") == selection
        });
        let Some(image) = entry.map(|entry| object::text(&entry.value, "/spec/image")) else {
            return "it was left alone: the release offers nothing of that name".to_owned();
        };
        let identity = self.identity(image);
        let short = |image: &str| {
            image.rsplit_once('@').map_or(image, |(_, digest)| digest).chars().take(19).collect::<String>()
        };
        let has = |digest: &str| {
            scantling_image::Digest::parse(digest).is_ok_and(|digest| identity.contains(&digest))
        };
        match object::text(notebook, "/status/running/digest") {
            "" => format!(
                "it gets what {selection} stands for when its pod is made, which is {} now",
                short(image)
            ),
            running if has(running) => {
                format!("it runs what {selection} stands for now, {}", short(image))
            }
            running => format!(
                "it was left alone: it runs {}, and a restart brings what {selection} stands for now, {}",
                short(running),
                short(image)
            ),
        }
    }

    async fn look_at_models(&mut self) -> Result<(), ClusterError> {
        let services = self.list("serving.kserve.io", "InferenceService", None).await?;
        let before = self.people.models.take().unwrap_or_default();
        let around =
            if services.is_empty() { Vec::new() } else { self.list("apps", "Deployment", None).await? };
        for (key, model, pods) in models(&services, &around) {
            let Some(what) = change(before.get(&key), &model) else { continue };
            let did = format!("it was left to whoever did it, and to the operator; {pods}");
            self.meanwhile(Doing::Model, key, what, did);
        }
        let there: BTreeSet<ObjectKey> = keyed(&services).map(|(key, _)| key).collect();
        for key in before.into_keys().filter(|key| !there.contains(key)) {
            self.meanwhile(
                Doing::Model,
                key,
                "it was deleted".to_owned(),
                "nothing had to be done".to_owned(),
            );
        }
        Ok(())
    }

    /// Asks registries with the cluster's pull secrets as they are now. What cannot be read stays as it was.
    pub(crate) async fn renew_credentials(&mut self) -> bool {
        let namespace = self.release.namespace.as_deref();
        let Ok(secrets) =
            crate::registry_rules::pull_secrets(&self.env.cluster, &self.served, namespace, &mut Vec::new())
                .await
        else {
            return false;
        };
        let mut keyring = self.registry.keyring().clone();
        let mut news = Vec::new();
        for secret in &secrets {
            let before = keyring.clone();
            // A secret that is none is none for the kubelet, too: what could not be pulled says so.
            let _ = keyring.renew_secret(secret);
            if keyring != before
                && let Ok(key) = object::key(secret)
            {
                news.push(key);
            }
        }
        if news.is_empty() {
            return false;
        }
        self.registry = self.registry.with_keyring(keyring);
        let stage = self.stage;
        for key in news {
            self.rotated.insert(key, stage);
        }
        true
    }

    /// Says of secrets that were changed whether images can be pulled with what they have now.
    async fn try_new_secrets(&mut self) {
        if self.rotated.is_empty() {
            return;
        }
        let pinned: Vec<_> = self.pins.values().cloned().collect();
        let mut refused = Vec::new();
        for reference in &pinned {
            let probe = self.registry.probe(reference, &[]).await;
            if probe.verdict != Verdict::Pullable {
                refused.push((reference.written().to_owned(), probe.verdict));
            }
        }
        for (reference, verdict) in &refused {
            let place =
                Place { object: self.rotated.keys().next().map(ToString::to_string), ..Place::default() };
            let message = format!(
                "{reference} cannot be pulled with the secret that was changed during the run: {verdict}"
            );
            self.report.findings.push(Finding::new(codes::publication::CANNOT_BE_PULLED, message, place));
        }
        for (key, stage) in std::mem::take(&mut self.rotated) {
            let did = format!(
                "registries were asked with what it has now from stage {stage} on; {} of {} images can be pulled with it",
                pinned.len() - refused.len(),
                pinned.len()
            );
            self.meanwhile(Doing::PullSecret, key, "it was changed".to_owned(), did);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn how_models_were_is_what_was_seen_first() {
        let service = |generation: i64| {
            json!({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
                "metadata": {"name": "iris", "namespace": "anna", "generation": generation}})
        };
        let mut people = People::default();
        people.saw_models(&[service(1)], &[]);
        people.saw_models(&[service(2)], &[]);
        let generations = |people: &People| -> Vec<i64> {
            people.models.iter().flatten().map(|(_, model)| model.generation).collect()
        };
        assert_eq!(generations(&people), [1]);
        // Where there was none, the first one is news.
        let mut people = People::default();
        people.saw_models(&[], &[]);
        people.saw_models(&[service(1)], &[]);
        assert!(generations(&people).is_empty());
    }

    #[test]
    fn what_shows_of_a_model() {
        let service = json!({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
            "metadata": {"name": "iris", "namespace": "n", "generation": 3}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "iris-predictor", "namespace": "n"},
            "spec": {"replicas": 2}, "status": {"readyReplicas": 1}});
        let found = models(std::slice::from_ref(&service), &[deployment]);
        let told: Vec<_> =
            found.iter().map(|(_, model, pods)| (model.generation, model.replicas, pods.as_str())).collect();
        assert_eq!(told, [(3, Some(2), "1 of 2 pods are ready")]);
        let was = Model { generation: 2, replicas: Some(1) };
        let is = Model { generation: 3, replicas: Some(2) };
        assert_eq!(change(Some(&is), &is), None);
        assert_eq!(
            change(Some(&was), &is).unwrap_or_default(),
            "its spec was changed, it was scaled from 1 to 2 pods"
        );
        let found = models(&[service], &[]);
        assert_eq!(
            found.iter().map(|(.., pods)| pods.as_str()).collect::<Vec<_>>(),
            ["it has no predictor yet"]
        );
    }
}
