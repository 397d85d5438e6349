//! Stage 5: writing objects, wave by wave, each decided again on what is there just before the write.

use scantling_api::ObjectKey;
use scantling_cluster::{ClusterError, Write};
use scantling_finding::{Finding, Place, codes};
use scantling_plan::{Desired, Frame, Outcome, PlanError, Sides, Step, decide, is_applied, steps};
use scantling_release::Wave;
use serde_json::{Value, json};

use crate::event::{Stage, What};
use crate::report::Stop;
use crate::session::Session;

/// How often an object is decided again when it moves between reading and writing. A busy controller writes a few
/// times in a row; more than this is a fight, and a person has to look.
const DECISIONS: usize = 5;

impl Session<'_> {
    fn frame(&self) -> Frame<'_> {
        Frame {
            schema: &self.schema,
            rules: &self.release.ownership,
            legacy_managers: &self.options.legacy_managers,
        }
    }

    /// All steps on the cluster as it was read.
    pub(crate) fn decide_all(&self) -> Result<Vec<Step>, PlanError> {
        steps(&self.frame(), &self.desired, &self.previous, &self.live)
    }

    fn decide_one(&self, wanted: &Desired, live: Option<&Value>) -> Result<Step, PlanError> {
        let sides = Sides {
            desired: &wanted.value,
            base: self.previous.objects.get(&wanted.key),
            live,
            ours: self.previous.inventory.contains_key(&wanted.key)
                || (self.journal.creates.contains(&wanted.key) && live.is_some_and(is_applied)),
        };
        decide(&self.frame(), &wanted.key, wanted.wave, sides)
    }

    /// Brings one wave to the cluster. Objects are written in the order of their keys.
    pub(crate) async fn apply_wave(&mut self, wave: Wave, steps: &[Step]) -> Result<(), Stop> {
        self.stage = Stage::Apply;
        let of_wave: Vec<&Step> = steps.iter().filter(|s| s.wave == wave).collect();
        let objects = of_wave.iter().filter(|s| s.writes()).count();
        if objects > 0 {
            self.tell(What::Wave { wave, objects });
        }
        for step in of_wave {
            if step.writes() {
                let wanted = self.desired.iter().find(|d| d.key == step.key).cloned();
                if let Some(wanted) = wanted {
                    self.apply(&wanted, Some(step)).await?;
                }
            } else {
                self.ended(step, step.outcome, step.cause.clone());
            }
        }
        Ok(())
    }

    /// Brings one object to the cluster. `planned` is what the plan says of it, if it is in the plan: nothing is written
    /// over that the plan did not show.
    pub(crate) async fn apply(&mut self, wanted: &Desired, planned: Option<&Step>) -> Result<(), Stop> {
        // The outcome tells what the object was before the run touched it, so the first decision names it.
        let mut first: Option<Step> = None;
        for _ in 0..DECISIONS {
            let live = self.read(&wanted.key).await?;
            if live.as_ref().is_some_and(|live| !is_applied(live)) {
                // Somebody else was first, so that it is not ours to prune. The journal says so before it is touched.
                self.journal.creates.remove(&wanted.key);
            }
            let step = self.decide_one(wanted, live.as_ref())?;
            if step.outcome == Outcome::Conflict {
                self.conflict(&step);
                self.ended(&step, Outcome::Conflict, step.cause.clone());
                return Err(Stop::Halt(format!(
                    "{} has changed since the plan was made: {}",
                    step.key, step.cause
                )));
            }
            let beyond = planned.map(|planned| step.beyond(planned)).unwrap_or_default();
            if !beyond.is_empty() {
                let why = format!(
                    "{} has changed since the plan was made, which did not say that {} would be written over; run again to see the new plan",
                    step.key,
                    beyond.join(", ")
                );
                self.ended(&step, Outcome::Conflict, why.clone());
                return Err(Stop::Halt(why));
            }
            if !step.writes() {
                let told = first.as_ref().unwrap_or(&step);
                let (told, outcome) = (told.clone(), told.outcome);
                self.remember(&wanted.key, live);
                self.ended(&told, outcome, told.cause.clone());
                return Ok(());
            }
            self.open().await?;
            match self.write_step(&step, live.as_ref()).await {
                Ok(object) => {
                    self.remember(&wanted.key, Some(object));
                    let told = first.unwrap_or_else(|| step.clone());
                    let outcome = told.outcome;
                    self.ended(&told, outcome, told.cause.clone());
                    return Ok(());
                }
                Err(ClusterError::Moved { .. } | ClusterError::AlreadyExists { .. }) => {
                    first.get_or_insert(step);
                }
                Err(error) => return Err(self.not_written(&step, error)),
            }
        }
        Err(Stop::Halt(format!(
            "{} changed {DECISIONS} times between reading and writing; see who else writes it (its managedFields tell)",
            wanted.key
        )))
    }

    async fn write_step(&mut self, step: &Step, live: Option<&Value>) -> Result<Value, ClusterError> {
        let mut version = live.and_then(|l| l.pointer("/metadata/resourceVersion")).cloned();
        if let (Some(managed_fields), Some(read)) = (&step.managed_fields, &version) {
            let patch = json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": read},
                {"op": "replace", "path": "/metadata/managedFields", "value": managed_fields},
            ]);
            let written = self.send(Write::JsonPatch { object: step.body.clone(), patch }).await?;
            version = written.object.pointer("/metadata/resourceVersion").cloned();
        }
        let mut body = step.body.clone();
        if let (Some(version), Some(metadata)) =
            (version, body.get_mut("metadata").and_then(Value::as_object_mut))
        {
            // Refuses the write when the object is no longer the one that was decided about.
            metadata.insert("resourceVersion".to_owned(), version);
        }
        // Every field has been decided, so ownership is taken for those that are in the body.
        Ok(self.send(Write::Apply { object: body, force: true }).await?.object)
    }

    fn remember(&mut self, key: &ObjectKey, object: Option<Value>) {
        match object {
            Some(object) => self.live.insert(key.clone(), object),
            None => self.live.remove(key),
        };
    }

    /// A finding for every field that stops the run.
    pub(crate) fn conflict(&mut self, step: &Step) {
        let file = self.release.objects.iter().find(|o| o.key == step.key).and_then(|o| o.place.file.clone());
        for field in &step.conflicts {
            let place = Place {
                file: file.clone(),
                object: Some(step.key.to_string()),
                field: Some(field.field.clone()),
            };
            let who = if field.owners.is_empty() { "somebody".to_owned() } else { field.owners.join(", ") };
            let message = format!("{} of {} was changed by {who}", field.field, step.key);
            self.report.findings.push(Finding::new(codes::run::FIELD_CHANGED, message, place));
        }
    }

    fn not_written(&mut self, step: &Step, error: ClusterError) -> Stop {
        let file = self.release.objects.iter().find(|o| o.key == step.key).and_then(|o| o.place.file.clone());
        let field = match &error {
            ClusterError::Invalid { fields, .. } => fields.first().cloned(),
            _ => None,
        };
        let place = Place { file, object: Some(step.key.to_string()), field };
        self.report.findings.push(
            Finding::new(codes::run::NOT_WRITTEN, format!("{} was not written", step.key), place)
                .with_cause(error.to_string()),
        );
        self.ended(step, Outcome::Failed, error.to_string());
        Stop::Cluster(error)
    }

    /// Stage 8: removes what only the previous release had.
    pub(crate) async fn prune(&mut self, steps: &[Step]) -> Result<(), Stop> {
        self.stage = Stage::Prune;
        for step in steps {
            if step.outcome != Outcome::Pruned {
                self.ended(step, step.outcome, step.cause.clone());
                continue;
            }
            let uid = step.body.pointer("/metadata/uid").and_then(Value::as_str).map(ToOwned::to_owned);
            let delete = Write::Delete { object: step.body.clone(), uid, grace_seconds: None };
            match self.try_write(delete).await? {
                // Another object of the same name is not the one that we created.
                Ok(_) | Err(ClusterError::Moved { .. }) => {}
                Err(error) => return Err(self.not_written(step, error)),
            }
            self.remember(&step.key, None);
            self.ended(step, Outcome::Pruned, step.cause.clone());
        }
        Ok(())
    }
}
