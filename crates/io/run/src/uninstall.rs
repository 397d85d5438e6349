//! Taking a release away: everything that we created, waves backwards, and nothing that belongs to people.

use std::collections::BTreeSet;

use scantling_api::schema::Schema;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{ClusterError, Write};
use scantling_image::Digest;
use scantling_plan::{Origin, Outcome, Plan, Step, is_applied};
use scantling_release::{Release, Settings, Tree, Wave};
use serde_json::{Value, json};

use crate::around::{Around, Decided, OWN_GROUP, Scope};
use crate::bundle::is_of_a_bundle;
use crate::claim::LEASE_NAME;
use crate::environment::Environment;
use crate::event::{RunEvent, Stage, What};
use crate::history::HISTORY_NAME;
use crate::journal::{Action, JOURNAL_NAME};
use crate::lost::{in_words, traces};
use crate::options::Options;
use crate::packed::is_part;
use crate::removal::Going;
use crate::report::{RunError, RunReport, Stop};
use crate::session::Session;
use crate::state::{STATE_NAME, SYSTEM_NAMESPACE};

/// Takes the release away.
///
/// # Flow
/// Every object of the inventory is decided about, then waves go backwards: what a release brings last is deleted
/// first; a wave is gone before the next one goes; the namespace `scantling-system` is last, and with it the run's lease.
///
/// # Guarantees
/// - What was there before Scantling is not deleted. Claims to storage, namespaces in which others have something, and
///   definitions of which others have objects stay, each with its cause in the report. So do namespaces and definitions of
///   which it cannot be told. Both are looked at once more just before they are deleted.
/// - Nothing is deleted by another plan than the one that was agreed to, if there is one.
/// - Deleting names the uid and the version that were read: an object that has changed is read again, another one of the
///   same name stays.
/// - Without a stored state nothing is deleted: what there is of the platform is told, and the uninstall is refused.
/// - Killed at any point, it is continued by the next uninstall, with the same end.
///
/// # Errors
/// [`RunError::Stopped`] when something is not gone in time: a finalizer of others may hold it.
pub async fn uninstall(
    env: &Environment,
    options: &Options,
    sink: &mut dyn FnMut(RunEvent),
) -> Result<RunReport, RunError> {
    let nothing = Release::read(&Tree::new(), &Settings::default()).map_err(RunError::unread)?;
    let options = Options { lock: None, installed: None, bundle: None, ..options.clone() };
    let mut session = Session::new(env, &nothing, &options, Action::Uninstall, sink);
    let mut steps = Vec::new();
    let mut done = session.prepare_removal().await.map(|decided| steps = decided);
    if done.is_ok() && !options.dry_run {
        let mut namespace = None;
        done = session
            .holding_the_lease(async |session| {
                session.remove(&mut steps).await?;
                namespace = session.remove_own_namespace(&steps).await?;
                Ok(())
            })
            .await;
        if let (Ok(()), Some(step)) = (&done, &namespace) {
            done = session.see_namespace_go(step).await;
        }
        if done.is_ok() {
            session.tell(What::Finished { writes: session.traffic.writes() });
        }
    }
    session.end(done)
}

impl Session<'_> {
    /// Reads what is installed and decides about each object.
    async fn prepare_removal(&mut self) -> Result<Vec<Step>, Stop> {
        self.stage = Stage::Read;
        self.served = self.env.cluster.served().await?;
        self.read_installed().await?;
        if self.state.is_none() && !self.left_open {
            let traces = traces(self.env, &self.served, &self.system_maps).await?;
            if let Some(what) = in_words(&traces) {
                return Err(self.refuse(format!(
                    "the state is gone, so that it cannot be told what Scantling has created ({what}); \
                     `scantling upgrade RELEASE` with the installed release makes it anew"
                )));
            }
        }
        self.read_objects(&[]).await?;
        self.claim_creates();
        let created = self.previous.inventory.iter().filter(|(_, origin)| **origin == Origin::Created);
        let mut scopes: BTreeSet<Scope> =
            created.filter_map(|(key, _)| Scope::of(key, self.live.get(key)?)).collect();
        scopes.remove(&Scope::Namespace(SYSTEM_NAMESPACE.to_owned()));
        let around = self.read_around(&Vec::from_iter(scopes)).await?;
        self.tell(What::ClusterRead { nodes: 0, platforms: Vec::new(), objects: self.live.len() });
        self.stage = Stage::Plan;
        let steps = self.decide_removal(&around);
        let plan = Plan {
            release: self.report.release.clone(),
            version: self.report.version.clone(),
            from: self.previous.version.clone(),
            steps: steps.clone(),
            ..Plan::default()
        };
        self.planned(plan)?;
        Ok(steps)
    }

    /// What is stored of the release that is installed, and of an uninstall that has not ended.
    async fn read_installed(&mut self) -> Result<(), Stop> {
        self.read_state().await?;
        let open = self.open_run().map_err(Stop::Refuse)?;
        let known = self.state.as_ref().map(|s| (s.release.clone(), s.version.clone()));
        let (release, version) = known.or_else(|| open.map(|j| (j.release, j.version))).unwrap_or_default();
        self.report.release.clone_from(&release);
        self.report.version.clone_from(&version);
        self.report.from = Some(version.clone()).filter(|v| !v.is_empty());
        self.journal.release = release;
        self.journal.version = version;
        self.tell(What::Started {
            release: self.report.release.clone(),
            version: self.report.version.clone(),
            from: self.report.from.clone(),
        });
        Ok(())
    }

    fn decide_removal(&self, around: &Around) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (key, origin) in &self.previous.inventory {
            let Some(live) = self.live.get(key) else { continue };
            let (outcome, cause) = match (origin, key.group.as_str(), key.kind.as_str()) {
                (Origin::Adopted, ..) => (Outcome::Kept, "it was there before Scantling".to_owned()),
                (_, "", "PersistentVolumeClaim" | "PersistentVolume") => {
                    (Outcome::Kept, "it holds data; delete it when nobody needs that any more".to_owned())
                }
                _ => (Outcome::Pruned, "the release is taken away".to_owned()),
            };
            steps.push(removal(key, live, outcome, cause));
        }
        // The product's own objects that no inventory names, as the `Platform`.
        for (key, object) in &around.objects {
            if key.group == OWN_GROUP && !self.previous.inventory.contains_key(key) {
                steps.push(removal(key, object, Outcome::Pruned, "it is the product's own".to_owned()));
            }
        }
        // Credentials are needed as long as the data that they open.
        let data: BTreeSet<Option<String>> = steps
            .iter()
            .filter(|s| s.outcome == Outcome::Kept && s.key.kind == "PersistentVolumeClaim")
            .map(|s| s.key.namespace.clone())
            .collect();
        for step in steps.iter_mut().filter(|s| s.key.group.is_empty() && s.key.kind == "Secret") {
            if step.outcome == Outcome::Pruned && data.contains(&step.key.namespace) {
                keep(step, "data of its namespace stays, which it may open".to_owned());
            }
        }
        steps.retain(|s| s.key != ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE));
        // Definitions before namespaces, which hold what stays with its definition.
        for definitions in [true, false] {
            let decided = Decided::of(&steps);
            for step in steps.iter_mut().filter(|s| s.outcome == Outcome::Pruned) {
                let Some(scope) = Scope::of(&step.key, &step.body) else { continue };
                if matches!(scope, Scope::Kind { .. }) == definitions
                    && let Some(why) = around.stays(&scope, &decided)
                {
                    keep(step, why);
                }
            }
        }
        // What came last goes first: nothing may lose what it stands on.
        steps.sort_by(|a, b| (b.wave, &b.key).cmp(&(a.wave, &a.key)));
        steps
    }

    async fn remove(&mut self, steps: &mut [Step]) -> Result<(), Stop> {
        self.stage = Stage::Prune;
        for wave in Wave::ALL.into_iter().rev() {
            self.look_again(wave, steps).await?;
            let of_wave: Vec<Step> = steps.iter().filter(|s| s.wave == wave).cloned().collect();
            let objects = of_wave.iter().filter(|s| s.writes()).count();
            if objects > 0 {
                self.tell(What::Wave { wave, objects });
            }
            let going = self.remove_all(&of_wave).await?;
            self.wait_until_gone(going).await?;
        }
        Ok(())
    }

    /// Looks once more at the namespaces and definitions of a wave that are about to go: waves take minutes, in which people
    /// work.
    async fn look_again(&mut self, wave: Wave, steps: &mut [Step]) -> Result<(), Stop> {
        let goes = |step: &&mut Step| step.wave == wave && step.outcome == Outcome::Pruned;
        let scopes: Vec<Scope> =
            steps.iter_mut().filter(goes).filter_map(|step| Scope::of(&step.key, &step.body)).collect();
        if scopes.is_empty() {
            return Ok(());
        }
        // A kind may have been added, too.
        self.served = self.env.cluster.served().await?;
        let around = self.read_around(&scopes).await?;
        let decided = Decided::of(steps);
        for step in steps.iter_mut().filter(goes) {
            let scope = Scope::of(&step.key, &step.body);
            if let Some(why) = scope.and_then(|scope| around.stays(&scope, &decided)) {
                keep(step, why);
            }
        }
        Ok(())
    }

    /// The last of all: what the product keeps for itself. The run's lease is held until the server has accepted that it
    /// goes, so that nobody begins a run in between. What is returned is the namespace, if it is on its way.
    async fn remove_own_namespace(&mut self, steps: &[Step]) -> Result<Option<Step>, Stop> {
        let key = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
        let Some(namespace) = self.read(&key).await? else { return Ok(None) };
        let step = removal(&key, &namespace, Outcome::Pruned, "nothing of the product is left".to_owned());
        let scope = Scope::Namespace(SYSTEM_NAMESPACE.to_owned());
        let known = self.previous.inventory.get(&key);
        let adopted = known.map_or_else(|| !is_applied(&namespace), |origin| *origin == Origin::Adopted);
        let decided = Decided::of(steps);
        let why_kept = |around: &Around| {
            let before = adopted.then(|| "it was there before Scantling".to_owned());
            before.or_else(|| around.stays(&scope, &decided))
        };
        if self.journal_written.is_none() {
            let around = self.read_around(std::slice::from_ref(&scope)).await?;
            let nothing_of_ours = !around.objects.values().any(is_bookkeeping);
            if let Some(why) = why_kept(&around).filter(|_| nothing_of_ours) {
                self.ended(&step, Outcome::Kept, why);
                return Ok(None);
            }
        }
        self.open().await?;
        self.stage = Stage::State;
        let around = self.read_around(std::slice::from_ref(&scope)).await?;
        if let Some(why) = why_kept(&around) {
            for object in around.objects.values().filter(|o| is_bookkeeping(o)) {
                let uid = Some(object::uid(object).to_owned());
                self.delete_mine(Write::Delete { object: object.clone(), uid, grace_seconds: None }).await?;
            }
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": LEASE_NAME, "namespace": SYSTEM_NAMESPACE},
            });
            // Who may not delete it leaves a lease that nobody holds.
            match self.send(Write::Delete { object: lease, uid: None, grace_seconds: None }).await {
                Ok(_) | Err(ClusterError::Moved { .. } | ClusterError::Forbidden { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            self.ended(&step, Outcome::Kept, why);
            return Ok(None);
        }
        let uid = object::uid(&namespace).to_owned();
        self.delete_mine(Write::Delete { object: namespace, uid: Some(uid), grace_seconds: None }).await?;
        Ok(Some(step))
    }

    /// Deletes what is ours; another object of the same name is not.
    async fn delete_mine(&mut self, delete: Write) -> Result<(), Stop> {
        match self.send(delete).await {
            Ok(_) | Err(ClusterError::Moved { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn see_namespace_go(&mut self, step: &Step) -> Result<(), Stop> {
        let uid = object::uid(&step.body).to_owned();
        self.wait_until_gone(vec![Going { key: step.key.clone(), uid }]).await?;
        self.ended(step, Outcome::Pruned, step.cause.clone());
        Ok(())
    }
}

/// What the product keeps for itself in its namespace.
fn is_bookkeeping(object: &Value) -> bool {
    let name = object::name(object);
    matches!(object::text(object, "/kind"), "ConfigMap" | "Secret")
        && is_applied(object)
        && ([STATE_NAME, JOURNAL_NAME, HISTORY_NAME].contains(&name)
            || is_part(object)
            || is_of_a_bundle(object))
}

fn removal(key: &ObjectKey, live: &Value, outcome: Outcome, cause: String) -> Step {
    let known = |schema: &Schema, gvk: &scantling_api::GroupVersionKind| {
        schema.kind(&gvk.group, &gvk.version, &gvk.kind).is_some()
    };
    let wave = object::gvk(live).map_or(Wave::Resources, |gvk| {
        let built_in = known(Schema::kubernetes(), &gvk) || known(Schema::openshift(), &gvk);
        Wave::of(&gvk, built_in)
    });
    Step::removal(key, wave, outcome, cause, live.clone(), Digest::of(object::uid(live).as_bytes()))
}

fn keep(step: &mut Step, why: String) {
    step.outcome = Outcome::Kept;
    step.cause = why;
}
