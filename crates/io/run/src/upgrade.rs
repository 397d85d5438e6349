//! The run from beginning to end. Installing is upgrading from nothing: there is no other path.

use std::collections::BTreeSet;
use std::time::Duration;

use scantling_api::{ObjectKey, object};
use scantling_cluster::Write;
use scantling_finding::Severity;
use scantling_plan::{
    Desired, Inventory, Origin, Outcome, Plan, PlannedImage, Step, on_offer, pulls, without_values,
};
use scantling_release::{Release, Wave};
use serde_json::Value;

use crate::catalogue::catalogue_keys;
use crate::claim::{Claim, LEASE_DURATION, LEASE_NAME, claim};
use crate::desired::kinds;
use crate::environment::Environment;
use crate::event::{RunEvent, Stage, What};
use crate::history::{self, Ended, PastRun};
use crate::journal::Action;
use crate::options::Options;
use crate::prepull::Needs;
use crate::promises::promises;
use crate::report::{CutOff, RunError, RunReport, Stop};
use crate::session::Session;
use crate::state::{InventoryEntry, SYSTEM_NAMESPACE, State};
use crate::streams::stream_keys;

/// How long it is tried to give the lease back.
const RELEASE: Duration = Duration::from_secs(5);

/// Brings a release to a cluster.
///
/// # Flow
/// read → gate → plan → for each wave: prepull (before workloads), write, wait for health; after configuration:
/// imports and builds → catalogue (claims against contents, prepull, publish) → verify → prune → store.
///
/// # Guarantees
/// - Nothing is written before gate and plan have passed: a refusal means 0 writes.
/// - A run with nothing to do writes nothing.
/// - A run that was killed at any point is continued by the next one, with the same end.
/// - Values of Secrets are in no event, report, plan or journal.
///
/// # Errors
/// [`RunError::Refused`] before, [`RunError::Stopped`] after the first write, each with the report so far.
pub async fn upgrade(
    env: &Environment,
    release: &Release,
    options: &Options,
    sink: &mut dyn FnMut(RunEvent),
) -> Result<RunReport, RunError> {
    bring(env, release, options, Action::Upgrade, sink).await
}

/// What [`upgrade`] would do: reads, asks registries and decides, and writes nothing. The plan is in the report.
///
/// # Errors
/// [`RunError::Refused`], as the upgrade would be.
pub async fn plan(
    env: &Environment,
    release: &Release,
    options: &Options,
    sink: &mut dyn FnMut(RunEvent),
) -> Result<RunReport, RunError> {
    let options = Options { dry_run: true, ..options.clone() };
    bring(env, release, &options, Action::Upgrade, sink).await
}

/// Brings a release to the cluster, as an upgrade or to go back.
pub(crate) async fn bring(
    env: &Environment,
    release: &Release,
    options: &Options,
    action: Action,
    sink: &mut dyn FnMut(RunEvent),
) -> Result<RunReport, RunError> {
    let mut session = Session::new(env, release, options, action, sink);
    let done = if options.dry_run {
        session.prepare().await.map(|_| ())
    } else {
        session.holding_the_lease(async |session| session.run().await).await
    };
    session.end(done)
}

impl Session<'_> {
    /// Does work that holds the run's lease from its first write on, and records how it ended.
    pub(crate) async fn holding_the_lease(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let env = self.env;
        let holder = &self.options.holder;
        let stop = self.options.stop.clone();
        let traffic = self.traffic.clone();
        let mut lease = env.cluster.lease(SYSTEM_NAMESPACE, LEASE_NAME, holder, LEASE_DURATION, env.clock);
        let (claim, keeper) = claim();
        self.claim = claim;
        let done = tokio::select! {
            biased;
            done = async {
                let done = work(self).await;
                self.record_end(done).await
            } => done,
            why = keeper.keep(&mut lease) => Err(Stop::Lost(why)),
            () = traffic.stopped(stop) => Err(Stop::Asked),
        };
        match done {
            Err(Stop::Lost(_)) => self.report.cut_off = lease.failed().and_then(CutOff::of),
            Err(Stop::Asked) => self.note_pause().await,
            _ => {}
        }
        // It ends by itself if it cannot be given back, and a cluster that is away keeps nobody waiting for it.
        if !matches!(done, Err(Stop::Lost(_))) {
            let _ = tokio::time::timeout(RELEASE, lease.release()).await;
        }
        done
    }

    /// Notes that a person has stopped the run, so that the operator does not go on with it. Without the note it does.
    async fn note_pause(&mut self) {
        if !self.options.pauses || self.journal_written.is_none() || !matches!(self.claim, Claim::Held) {
            return;
        }
        self.journal.paused = true;
        let Ok(map) = self.journal.to_config_map() else { return };
        // Past the way that is closed by now.
        let write = Write::Apply { object: map, force: true };
        let _ = tokio::time::timeout(RELEASE, self.env.cluster.write(&self.served, &write)).await;
    }

    /// Writes how the run ended, if it has written anything: the history, and that the journal is closed.
    async fn record_end(&mut self, done: Result<(), Stop>) -> Result<(), Stop> {
        let wrote = self.journal_written.is_some();
        let ends_another = self.left_open && done.is_ok();
        // What would be written goes with the platform.
        let is_gone = self.journal.action == Action::Uninstall && done.is_ok();
        if is_gone || !(wrote || ends_another) {
            return done;
        }
        if done.is_err() && !matches!(self.claim, Claim::Held) {
            return done;
        }
        let run = PastRun {
            action: self.journal.action,
            release: self.report.release.clone(),
            version: self.report.version.clone(),
            from: self.report.from.clone(),
            started: self.journal.started.clone(),
            ended: self.env.clock.now_rfc3339(),
            holder: self.options.holder.clone(),
            outcome: if done.is_ok() { Ended::Finished } else { Ended::Stopped },
            counts: self.report.plan.as_ref().map(Plan::counts).unwrap_or_default(),
            writes: self.traffic.writes(),
            why: done.as_ref().err().map(ToString::to_string),
            promises: promises(&self.report),
        };
        let map = history::with(history::read(&self.system_maps), run);
        let written = self.write(Write::Apply { object: map, force: true }).await;
        // Why the run stopped says more than why that could not be written down.
        done?;
        written?;
        self.close_journal().await
    }

    pub(crate) fn end(mut self, done: Result<(), Stop>) -> Result<RunReport, RunError> {
        self.report.findings.dedup();
        self.report.writes = self.traffic.writes();
        let stage = self.stage;
        if let Err(Stop::Cluster(error)) = &done {
            self.report.cut_off = CutOff::of(error);
        }
        let report = Box::new(std::mem::take(&mut self.report));
        match done {
            Ok(()) => Ok(*report),
            Err(stop) if report.writes == 0 => Err(RunError::Refused { why: stop.to_string(), report }),
            Err(stop) => Err(RunError::Stopped { stage, why: stop.to_string(), report }),
        }
    }

    /// Everything before the first write.
    pub(crate) async fn prepare(&mut self) -> Result<Vec<Step>, Stop> {
        let kinds = kinds(self.release);
        self.read_cluster(&kinds).await?;
        self.refuse_faults()?;
        self.check_succession()?;
        self.gate().await?;
        self.stage = Stage::Plan;
        self.make_desired()?;
        let mut steps = self.settle_repeats(self.decide_all()?).await?;
        let mut coming = catalogue_keys(self.release, self.has_streams());
        let retired = self.retired_in_use(&coming).await?;
        coming.extend(retired.iter().map(|entry| entry.key.clone()));
        if self.has_streams() && !self.release.images.is_empty() {
            coming.extend(stream_keys(&retired));
        }
        steps.retain(|s| !coming.contains(&s.key));
        self.keep_definitions(&mut steps);
        self.refuse_what_is_in_the_way(&mut steps)?;
        let mut plan = self.plan_of(&steps);
        plan.notebooks = self.plan_notebooks().await?;
        plan.models = self.plan_models().await?;
        self.planned(plan)?;
        let conflicts: Vec<Step> = steps.iter().filter(|s| s.outcome == Outcome::Conflict).cloned().collect();
        if let Some(first) = conflicts.first() {
            let what = match (first.immutable.is_empty(), conflicts.len()) {
                (true, 1) => "1 object has fields that others changed".to_owned(),
                (true, number) => format!("{number} objects have fields that others changed"),
                (false, 1) => "1 object cannot be brought to what the release has".to_owned(),
                (false, number) => format!("{number} objects cannot be brought to what the release has"),
            };
            let why = format!("{what}; {}: {}", first.key, first.cause);
            for step in &conflicts {
                self.conflict(step);
                self.ended(step, Outcome::Conflict, step.cause.clone());
            }
            return Err(self.refuse(why));
        }
        if steps.iter().any(Step::writes) {
            self.check_rights().await?;
            self.refuse_what_is_foreseen(&steps).await?;
        }
        for step in &steps {
            self.journal.note(step);
        }
        let made = |s: &&Step| matches!(s.outcome, Outcome::Created | Outcome::Replaced);
        let creates = steps.iter().filter(made).map(|s| s.key.clone());
        self.journal
            .creates
            .extend(creates.chain(coming.into_iter().filter(|key| !self.live.contains_key(key))));
        Ok(steps)
    }

    /// Puts a plan into the report, and refuses one that differs from what somebody has agreed to.
    pub(crate) fn planned(&mut self, plan: Plan) -> Result<(), Stop> {
        let counts = plan.counts();
        let approved = self.options.approved.as_ref().filter(|_| !self.options.dry_run);
        let moved = approved.is_some_and(|approved| *approved != plan.digest());
        self.report.plan = Some(plan);
        self.tell(What::Planned {
            create: counts.created,
            update: counts.updated,
            replace: counts.replaced,
            adopt: counts.adopted,
            unchanged: counts.unchanged,
            prune: counts.pruned,
        });
        if moved {
            return Err(self.refuse(
                "the cluster has moved since the plan was shown, and the plan is another one now".to_owned(),
            ));
        }
        Ok(())
    }

    async fn run(&mut self) -> Result<(), Stop> {
        let steps = self.prepare().await?;
        let keys: BTreeSet<ObjectKey> = self.desired.iter().map(|d| d.key.clone()).collect();
        let (wanted, leftovers): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|s| keys.contains(&s.key));
        self.want().await?;
        let mut held = self.hold_conversions();
        self.tell_held(&held);
        for wave in Wave::ALL {
            if wave == Wave::Webhooks {
                self.arm_conversions(std::mem::take(&mut held), &wanted).await?;
            }
            if wave == Wave::Workloads {
                self.settle_images().await?;
                self.prepull_workloads(&wanted).await?;
            }
            self.apply_wave(wave, &wanted).await?;
            self.settle_wave(wave).await?;
            // The first install has brought the kind only now.
            if wave == Wave::Definitions {
                self.want().await?;
            }
        }
        Box::pin(self.publish_catalogue()).await?;
        if self.journal_written.is_some() {
            self.decide_again().await?;
            self.renew_credentials().await;
        }
        self.verify().await?;
        self.look_around().await?;
        self.prune(&leftovers).await?;
        self.store(&leftovers).await?;
        self.tell(What::Finished { writes: self.traffic.writes() });
        Ok(())
    }

    /// Refuses a release in which something was found wrong when it was read. What could not be read of it would otherwise be
    /// taken for what it no longer has, and be removed.
    fn refuse_faults(&mut self) -> Result<(), Stop> {
        let errors = self.release.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let errors: Vec<_> = errors.cloned().collect();
        let Some(first) = errors.first() else { return Ok(()) };
        let more = match errors.len() - 1 {
            0 => String::new(),
            1 => ", and 1 more error is in it".to_owned(),
            more => format!(", and {more} more errors are in it"),
        };
        let place = Some(first.place.to_string()).filter(|place| !place.is_empty());
        let at = place.map(|place| format!("{place}: ")).unwrap_or_default();
        let why = format!("the release is not sound: {at}{} ({}){more}", first.message, first.code);
        self.report.findings.extend(errors);
        Err(self.refuse(why))
    }

    /// A release follows only the releases that it names, whoever installed those.
    fn check_succession(&mut self) -> Result<(), Stop> {
        let (release, version) = match (&self.state, &self.options.installed) {
            (Some(state), _) => (state.release.clone(), state.version.clone()),
            (None, Some(old)) => {
                (old.name.clone(), old.version.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            (None, None) => return Ok(()),
        };
        if release != self.release.name {
            let why = format!("the cluster has the release {release}, which this one does not follow");
            return Err(self.refuse(why));
        }
        if self.journal.action == Action::Rollback {
            return Ok(());
        }
        let same = version == self.report.version;
        if same {
            self.refuse_over_open()?;
        }
        let named = self.release.follows.iter().any(|v| v.as_str() == version);
        if same || named {
            return Ok(());
        }
        let may: Vec<&str> = self.release.follows.iter().map(scantling_release::Version::as_str).collect();
        let why = format!(
            "the cluster has {release} {version}, and {} follows only {}",
            self.report.version,
            if may.is_empty() { "nothing".to_owned() } else { may.join(", ") },
        );
        Err(self.refuse(why))
    }

    /// The installed release is not brought as an upgrade over a run to or from another one: that is going back, which leaves
    /// definitions as they are.
    fn refuse_over_open(&mut self) -> Result<(), Stop> {
        let Some(open) = self.open_run().map_err(Stop::Refuse)? else { return Ok(()) };
        // It has told at most what it wants, and nothing of the platform is of it.
        if open.reached == Stage::Plan.to_string() {
            return Ok(());
        }
        let (is, own) = (&open.version, &self.report.version);
        let why = match open.action {
            Action::Upgrade if is != own => format!(
                "an upgrade to {is} is open; `scantling rollback` goes back to {own}, `scantling upgrade` with {is} goes on"
            ),
            Action::Rollback if is == own => {
                format!("a rollback to {own} is open; `scantling rollback` goes on with it")
            }
            Action::Upgrade | Action::Rollback | Action::Uninstall => return Ok(()),
        };
        Err(self.refuse(why))
    }

    fn plan_of(&self, steps: &[Step]) -> Plan {
        let images = self
            .images
            .iter()
            .map(|image| {
                let pinned = image.pinned().written().to_owned();
                let used_by =
                    self.desired.iter().filter(|d| names(&d.value, &pinned)).map(|d| d.key.clone()).collect();
                PlannedImage {
                    written: image.reference.written().to_owned(),
                    pinned: Some(pinned),
                    size_bytes: image.platforms.iter().map(|p| p.size).max(),
                    used_by,
                }
            })
            .collect();
        let needs = self.workload_needs(steps);
        let borrowed: Vec<(&Value, BTreeSet<String>)> = needs.iter().map(|(s, i)| (s, i.clone())).collect();
        Plan {
            release: self.report.release.clone(),
            version: self.report.version.clone(),
            from: self.previous.version.clone(),
            steps: steps.to_vec(),
            images,
            nodes: pulls(&self.nodes, &borrowed),
            notebooks: Vec::new(),
            models: Vec::new(),
            on_offer: on_offer(self.release, &self.nodes),
        }
    }

    /// The pod specs of workloads that are about to be written, with the images by digest that they name.
    fn workload_needs(&self, steps: &[Step]) -> Needs {
        let written: BTreeSet<&ObjectKey> = steps.iter().filter(|s| s.writes()).map(|s| &s.key).collect();
        self.desired
            .iter()
            .filter(|d| d.wave == Wave::Workloads && written.contains(&d.key))
            .filter_map(|d| {
                let gvk = object::gvk(&d.value).ok()?;
                let spec = d.value.pointer(object::pod_spec_pointer(&gvk)?)?.clone();
                let images: BTreeSet<String> = object::pod_containers(&spec)
                    .iter()
                    .filter_map(scantling_api::object::Container::image)
                    .filter(|image| image.contains('@'))
                    .map(ToOwned::to_owned)
                    .collect();
                Some((spec, images))
            })
            .collect()
    }

    async fn prepull_workloads(&mut self, steps: &[Step]) -> Result<(), Stop> {
        let needs = self.workload_needs(steps);
        if needs.iter().all(|(_, images)| images.is_empty()) {
            return Ok(());
        }
        let of_workload = |d: &&Desired| d.wave == Wave::Workloads;
        let namespace = self
            .release
            .namespace
            .clone()
            .or_else(|| self.desired.iter().find(of_workload).and_then(|d| d.key.namespace.clone()));
        match namespace {
            Some(namespace) => self.prepull(&namespace, &needs).await,
            None => Ok(()),
        }
    }

    /// Stage 9: stores what was done, if it differs from what is stored.
    async fn store(&mut self, leftovers: &[Step]) -> Result<(), Stop> {
        self.stage = Stage::State;
        let state = self.new_state(leftovers);
        if self.state.as_ref() != Some(&state) {
            self.write_state(&state).await?;
        }
        if self.bundle_to_store()?.is_some() {
            self.open().await?;
            self.store_bundle().await?;
        }
        Ok(())
    }

    fn new_state(&self, leftovers: &[Step]) -> State {
        let mut inventory: Inventory = self
            .desired
            .iter()
            .map(|d| {
                let known = self.previous.inventory.get(&d.key).copied();
                let made =
                    if self.journal.creates.contains(&d.key) { Origin::Created } else { Origin::Adopted };
                (d.key.clone(), known.unwrap_or(made))
            })
            .collect();
        // What was kept although the release no longer has it stays known as ours.
        for step in leftovers.iter().filter(|s| matches!(s.outcome, Outcome::KeptByUser | Outcome::Kept)) {
            if let Some(origin) = self.previous.inventory.get(&step.key) {
                inventory.insert(step.key.clone(), *origin);
            }
        }
        let images: Vec<_> = self
            .recorded
            .iter()
            .filter(|(tag, _)| self.recorded_now.contains(*tag))
            .map(|(_, i)| i.clone())
            .collect();
        let in_use: BTreeSet<String> = self
            .pins
            .values()
            .map(|p| p.written().to_owned())
            .chain(images.iter().map(|i| i.reference.clone()))
            .collect();
        let nodes: BTreeSet<&String> = self.nodes.iter().map(|n| &n.uid).collect();
        let prepulled = self
            .prepulled
            .iter()
            .filter(|(uid, _)| nodes.contains(uid))
            .map(|(uid, had)| (uid.clone(), had.intersection(&in_use).cloned().collect::<Vec<_>>()))
            .filter(|(_, had)| !had.is_empty())
            .collect();
        let mut known_images = self.known_images.clone();
        known_images.sort_by(|a, b| a.identity.digests().cmp(&b.identity.digests()));
        let mut objects: Vec<(&ObjectKey, Value)> =
            self.desired.iter().map(|d| (&d.key, without_values(&d.key, &d.value))).collect();
        objects.sort_by(|a, b| a.0.cmp(b.0));
        State {
            release: self.report.release.clone(),
            version: self.report.version.clone(),
            objects: objects.into_iter().map(|(_, value)| value).collect(),
            lock: self.images.clone(),
            inventory: inventory.into_iter().map(|(key, origin)| InventoryEntry { key, origin }).collect(),
            images,
            known_images,
            prepulled,
        }
    }
}

/// Whether a text stands anywhere in a value as a whole string.
fn names(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|v| names(v, text)),
        Value::Object(fields) => fields.values().any(|v| names(v, text)),
        _ => false,
    }
}
