//! Stage 5: writing objects, wave by wave. Each is decided on what was read of it; if it has moved since, the server
//! refuses the write, and it is decided again on what is there by then.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{ClusterError, Write, Written};
use scantling_finding::{Finding, Place, codes};
use scantling_plan::{Desired, Frame, Outcome, Sides, Step, Traces, decide, is_applied, is_only_ours, steps};
use scantling_release::Wave;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::event::{Stage, What};
use crate::guarded::{self, is_webhook_away};
use crate::health::health;
use crate::report::Stop;
use crate::session::Session;
use crate::wait::Wait;

/// How often an object is decided again when it moves between reading and writing. A busy controller writes a few
/// times in a row; more than this is a fight, and a person has to look.
pub(crate) const DECISIONS: usize = 5;
/// Writes under way at the same time. More does not make an API server faster, and it serves others, too.
pub(crate) const AT_ONCE: usize = 16;
/// Objects after which it is told how they ended: often enough to be watched, seldom enough to keep the writes going.
const BATCH: usize = 512;
/// Between two looks at an object that is to be gone before it is created again.
const GONE_PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

/// One object that is brought to the cluster.
#[derive(Clone, Copy)]
struct Job<'j> {
    wanted: &'j Desired,
    /// What the plan says of it, if it is in the plan: nothing is written over that the plan did not show.
    planned: Option<&'j Step>,
}

/// What became of it.
struct Brought {
    /// The decision that names how it ended: the first, which tells what the object was before the run touched it.
    told: Option<Step>,
    outcome: Outcome,
    /// What the cluster has now, if that is known.
    object: Option<Value>,
    /// Somebody else was first, so that it is not ours to prune.
    foreign: bool,
    end: Result<(), Bad>,
}

/// Why an object was not brought.
enum Bad {
    /// Not begun, because another one failed.
    NotBegun,
    /// It has changed since the plan was made.
    Changed(Box<Step>, String),
    /// It could not be written.
    NotWritten(Box<Step>, ClusterError),
    /// A webhook that guards it does not answer yet.
    Guarded(Box<Step>, ClusterError),
    /// Anything else.
    Stop(Stop),
}

impl From<Stop> for Bad {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<ClusterError> for Bad {
    fn from(error: ClusterError) -> Self {
        Self::Stop(Stop::Cluster(error))
    }
}

impl Session<'_> {
    fn frame(&self) -> Frame<'_> {
        Frame {
            schema: &self.schema,
            rules: &self.release.ownership,
            legacy_managers: &self.options.legacy_managers,
        }
    }

    /// All steps on the cluster as it was read.
    pub(crate) fn decide_all(&self) -> Result<Vec<Step>, scantling_plan::PlanError> {
        steps(&self.frame(), &self.desired, &self.previous, &self.live)
    }

    fn decide_one(&self, wanted: &Desired, live: Option<&Value>) -> Result<Step, Stop> {
        let key = &wanted.key;
        self.decide_upon(wanted, self.previous.objects.get(key), self.previous.traces.get(key), live)
    }

    /// Decides about an object upon what was last applied to it, and what unfinished runs have made of it since.
    pub(crate) fn decide_upon(
        &self,
        wanted: &Desired,
        base: Option<&Value>,
        traces: Option<&Traces>,
        live: Option<&Value>,
    ) -> Result<Step, Stop> {
        let made = self.journal.creates.contains(&wanted.key) && live.is_some_and(is_applied);
        let origin = self.previous.inventory.get(&wanted.key);
        let sides = Sides {
            desired: &wanted.value,
            base,
            traces,
            live,
            ours: origin.is_some() || made,
            created: origin.map_or(made, |origin| *origin == scantling_plan::Origin::Created),
        };
        let step = decide(&self.frame(), &wanted.key, wanted.wave, sides)?;
        Ok(Step { adjusted: wanted.adjusted.clone(), ..step })
    }

    /// Brings one wave to the cluster. Among workloads the product's own operator comes first and is waited for: the new
    /// one is to see what the others become.
    pub(crate) async fn apply_wave(&mut self, wave: Wave, steps: &[Step]) -> Result<(), Stop> {
        self.stage = Stage::Apply;
        let of_wave: Vec<&Step> = steps.iter().filter(|s| s.wave == wave).collect();
        let objects = of_wave.iter().filter(|s| s.writes()).count();
        if objects > 0 {
            self.tell(What::Wave { wave, objects });
        }
        let operator = self.release.operator.clone().filter(|_| wave == Wave::Workloads);
        let (first, rest): (Vec<&Step>, Vec<&Step>) =
            of_wave.into_iter().partition(|s| Some(&s.key) == operator.as_ref());
        if let (Some(key), false) = (operator, first.is_empty()) {
            self.apply_steps(&first).await?;
            self.settle(&key, self.options.waits.rollout, health).await?;
        }
        self.apply_steps(&rest).await
    }

    pub(crate) async fn apply_steps(&mut self, steps: &[&Step]) -> Result<(), Stop> {
        let desired = std::mem::take(&mut self.desired);
        let done = self.apply_batches(steps, &desired).await;
        self.desired = desired;
        done
    }

    async fn apply_batches(&mut self, steps: &[&Step], desired: &[Desired]) -> Result<(), Stop> {
        let by_key: BTreeMap<&ObjectKey, &Desired> = desired.iter().map(|d| (&d.key, d)).collect();
        for batch in steps.chunks(BATCH) {
            let wanted = |step: &&&Step| by_key.get(&step.key).copied().filter(|_| step.writes());
            let jobs: Vec<Job<'_>> = batch
                .iter()
                .filter_map(|step| Some(Job { wanted: wanted(&step)?, planned: Some(step) }))
                .collect();
            for step in jobs.iter().filter_map(|job| job.planned) {
                self.journal.note(step);
            }
            let mut brought = self.bring_patiently(&jobs).await?.into_iter();
            let mut stop = None;
            for step in batch {
                if wanted(&step).is_none() {
                    self.ended(step, step.outcome, step.cause.clone());
                } else if let Some(brought) = brought.next() {
                    let done = self.take_in(&step.key, brought);
                    stop = stop.or(done.err());
                }
            }
            if let Some(stop) = stop {
                return Err(stop);
            }
        }
        Ok(())
    }

    /// Notes what bringing objects would make of their fields, so that one writing of the journal speaks of them all.
    pub(crate) fn announce(&mut self, wanted: &[Desired]) -> Result<(), Stop> {
        for wanted in wanted {
            let step = self.decide_one(wanted, self.live.get(&wanted.key))?;
            self.journal.note(&step);
        }
        Ok(())
    }

    /// Brings one object to the cluster.
    pub(crate) async fn apply(&mut self, wanted: &Desired) -> Result<(), Stop> {
        let step = self.decide_one(wanted, self.live.get(&wanted.key))?;
        let step = self.settle_repeats(vec![step.clone()]).await?.pop().unwrap_or(step);
        if !step.writes() && step.outcome != Outcome::Conflict {
            self.ended(&step, step.outcome, step.cause.clone());
            return Ok(());
        }
        self.journal.note(&step);
        let brought = self.bring_patiently(&[Job { wanted, planned: None }]).await?;
        brought.into_iter().try_for_each(|brought| self.take_in(&wanted.key, brought))
    }

    /// Brings objects to the cluster, those again that a webhook guards until it answers.
    async fn bring_patiently(&mut self, jobs: &[Job<'_>]) -> Result<Vec<Brought>, Stop> {
        let mut brought = self.bring_all(jobs).await?;
        let mut wait = Wait::new("a webhook".to_owned(), self.options.waits.rollout, guarded::PAUSE);
        loop {
            let is_held = |brought: &Brought| matches!(brought.end, Err(Bad::Guarded(..)));
            let held: Vec<usize> =
                brought.iter().enumerate().filter(|(_, b)| is_held(b)).map(|(at, _)| at).collect();
            let why = held.first().and_then(|at| match &brought.get(*at)?.end {
                Err(Bad::Guarded(_, error)) => Some(error.to_string()),
                _ => None,
            });
            let failed = brought.iter().any(|b| b.end.is_err() && !is_held(b));
            let Some(why) = why.filter(|_| !failed && !wait.is_over()) else { return Ok(brought) };
            self.pause(&mut wait, why).await;
            let again: Vec<Job<'_>> = held.iter().filter_map(|at| jobs.get(*at)).copied().collect();
            for (at, now) in held.into_iter().zip(self.bring_all(&again).await?) {
                if let Some(before) = brought.get_mut(at) {
                    *before = now;
                }
            }
        }
    }

    /// Brings objects to the cluster, several at a time; what comes out is in the order of the jobs. When one fails,
    /// those that have begun are brought to their end.
    async fn bring_all(&mut self, jobs: &[Job<'_>]) -> Result<Vec<Brought>, Stop> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        self.open().await?;
        let session: &Self = self;
        let stopped = AtomicBool::new(false);
        let stopped = &stopped;
        let brought = futures::stream::iter(jobs)
            .map(|job| async move {
                let mut brought = Brought {
                    told: None,
                    outcome: Outcome::Failed,
                    object: None,
                    foreign: false,
                    end: Err(Bad::NotBegun),
                };
                if !stopped.load(Ordering::Relaxed) {
                    brought.end = session.bring_one(job, &mut brought).await;
                    if !matches!(brought.end, Ok(()) | Err(Bad::Guarded(..))) {
                        stopped.store(true, Ordering::Relaxed);
                    }
                }
                brought
            })
            .buffered(AT_ONCE)
            .collect::<Vec<Brought>>()
            .await;
        Ok(brought)
    }

    async fn bring_one(&self, job: &Job<'_>, brought: &mut Brought) -> Result<(), Bad> {
        let key = &job.wanted.key;
        for attempt in 0..DECISIONS {
            let live =
                if attempt == 0 { self.live.get(key).cloned() } else { self.read_as(job.wanted).await? };
            let step = self.decide_one(job.wanted, live.as_ref())?;
            if step.outcome == Outcome::Conflict {
                let why = format!("{key} has changed since the plan was made: {}", step.cause);
                return Err(Bad::Changed(Box::new(step), why));
            }
            let beyond = job.planned.map(|planned| step.beyond(planned)).unwrap_or_default();
            if !beyond.is_empty() {
                let why = format!(
                    "{key} has changed since the plan was made, which did not say that {} would be written over; run again to see the new plan",
                    beyond.join(", ")
                );
                return Err(Bad::Changed(Box::new(step), why));
            }
            let told = brought.told.get_or_insert_with(|| step.clone());
            // What others did between the reading and the write shows in a later decision only.
            told.kept.clone_from(&step.kept);
            if !step.taken.is_empty() {
                told.taken.clone_from(&step.taken);
            }
            brought.outcome = told.outcome;
            if !step.writes() {
                brought.object = live;
                return Ok(());
            }
            match self.write_step(&step, live.as_ref()).await {
                Ok(written) => {
                    let late = step.outcome == Outcome::Created && !written.created;
                    brought.foreign = late && !is_only_ours(&written.object)
                        || live.as_ref().is_some_and(|live| !is_applied(live));
                    if late && brought.foreign {
                        brought.outcome = Outcome::Adopted;
                        if let Some(told) = &mut brought.told {
                            "somebody created it at the same time".clone_into(&mut told.cause);
                        }
                    }
                    brought.object = Some(written.object);
                    return Ok(());
                }
                Err(
                    ClusterError::Moved { .. }
                    | ClusterError::AlreadyExists { .. }
                    | ClusterError::FieldConflicts { .. },
                ) => {}
                Err(error) if is_webhook_away(&error) => return Err(Bad::Guarded(Box::new(step), error)),
                Err(error) => return Err(Bad::NotWritten(Box::new(step), error)),
            }
        }
        Err(Bad::Stop(Stop::Halt(format!(
            "{key} changed {DECISIONS} times between reading and writing; see who else writes it (its managedFields tell)"
        ))))
    }

    async fn write_step(&self, step: &Step, live: Option<&Value>) -> Result<Written, ClusterError> {
        let mut live = live;
        if let (Outcome::Replaced, Some(object)) = (step.outcome, live) {
            let uid = object::uid(object);
            let delete =
                Write::Delete { object: object.clone(), uid: Some(uid.to_owned()), grace_seconds: None };
            self.put(&delete).await?;
            self.until_gone(&step.key, uid).await?;
            live = None;
        }
        let mut version = live.and_then(|l| l.pointer("/metadata/resourceVersion")).cloned();
        if let (Some(managed_fields), Some(read)) = (&step.managed_fields, &version) {
            // With the resource version, which makes it a conflict if the object has moved.
            let patch = json!({"metadata": {"resourceVersion": read, "managedFields": managed_fields}});
            let write = Write::MergePatch { object: step.body.clone(), subresource: None, patch };
            let written = self.put(&write).await?;
            version = written.object.pointer("/metadata/resourceVersion").cloned();
        }
        let mut body = step.body.clone();
        // What is there was decided about field by field, and ownership is taken for those that are in the body. What was
        // not there must not have come in between: then nobody's field is taken.
        let force = version.is_some();
        if let (Some(version), Some(metadata)) =
            (version, body.get_mut("metadata").and_then(Value::as_object_mut))
        {
            // Refuses the write when the object is no longer the one that was decided about.
            metadata.insert("resourceVersion".to_owned(), version);
        }
        self.put(&Write::Apply { object: body, force }).await
    }

    /// Waits until an object is gone, so that one of the same name can be created.
    async fn until_gone(&self, key: &ObjectKey, uid: &str) -> Result<(), ClusterError> {
        let deadline = Instant::now() + self.options.waits.removal;
        loop {
            let found = self.read(key).await?;
            if found.is_none_or(|found| object::uid(&found) != uid) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(ClusterError::Invalid {
                    what: format!("replace {key}"),
                    message: "the old one is not gone in time; finalizers of others may hold it".to_owned(),
                    fields: Vec::new(),
                });
            }
            sleep(GONE_PAUSE).await;
        }
    }

    /// Takes in what became of an object, and tells it.
    fn take_in(&mut self, key: &ObjectKey, brought: Brought) -> Result<(), Stop> {
        if brought.foreign {
            self.journal.creates.remove(key);
        }
        match brought.end {
            Ok(()) => {
                // It is as this run wants it: what is otherwise from now on is somebody's.
                self.previous.traces.remove(key);
                self.remember(key, brought.object);
                if let Some(told) = brought.told {
                    self.ended(&told, brought.outcome, told.cause.clone());
                }
                Ok(())
            }
            Err(Bad::NotBegun) => Ok(()),
            Err(Bad::Changed(step, why)) => {
                self.conflict(&step);
                self.ended(&step, Outcome::Conflict, why.clone());
                Err(Stop::Halt(why))
            }
            Err(Bad::NotWritten(step, error) | Bad::Guarded(step, error)) => {
                Err(self.not_written(&step, error))
            }
            Err(Bad::Stop(stop)) => Err(stop),
        }
    }

    pub(crate) fn remember(&mut self, key: &ObjectKey, object: Option<Value>) {
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
        for field in &step.immutable {
            let place =
                Place { file: file.clone(), object: Some(step.key.to_string()), field: Some(field.clone()) };
            let message = format!("{field} of {} cannot be changed", step.key);
            let finding = Finding::new(codes::run::FIELD_FIXED, message, place);
            self.report.findings.push(finding.with_cause(step.cause.clone()));
        }
    }

    pub(crate) fn not_written(&mut self, step: &Step, error: ClusterError) -> Stop {
        self.will_not_be_written(step, &error);
        Stop::Cluster(error)
    }

    /// Tells that an object is not written, and the server's words.
    pub(crate) fn will_not_be_written(&mut self, step: &Step, error: &ClusterError) {
        let file = self.release.objects.iter().find(|o| o.key == step.key).and_then(|o| o.place.file.clone());
        let field = match error {
            ClusterError::Invalid { fields, .. } => fields.first().cloned(),
            _ => None,
        };
        let place = Place { file, object: Some(step.key.to_string()), field };
        self.report.findings.push(
            Finding::new(codes::run::NOT_WRITTEN, format!("{} was not written", step.key), place)
                .with_cause(error.to_string()),
        );
        self.ended(step, Outcome::Failed, error.to_string());
    }
}
