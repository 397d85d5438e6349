//! Taking a release away: everything that we created, waves backwards, and nothing that belongs to people.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::Schema;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{ClusterError, Resource, Write};
use scantling_image::Digest;
use scantling_plan::{Origin, Outcome, Plan, Step, is_applied};
use scantling_release::{Release, Settings, Tree, Wave};
use serde_json::Value;

use crate::environment::Environment;
use crate::event::{RunEvent, Stage, What};
use crate::journal::{Action, JOURNAL_NAME};
use crate::options::Options;
use crate::report::{RunError, RunReport, Stop};
use crate::session::Session;
use crate::state::SYSTEM_NAMESPACE;
use crate::wait::Wait;

/// Between two looks at objects that are to be gone.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
/// Objects that are named when something is kept because of them; the rest is counted.
const NAMED: usize = 3;
/// Kinds that a server or its controllers keep for themselves, or show without storing them: nobody's data.
const NOBODYS: [(&str, &str); 8] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
    ("metrics.k8s.io", "PodMetrics"),
    ("packages.operators.coreos.com", "PackageManifest"),
    ("authorization.openshift.io", "RoleBindingRestriction"),
];
/// Objects that controllers put into every namespace.
const EVERYWHERE: [(&str, &str); 8] = [
    ("ServiceAccount", "default"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "deployer"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("RoleBinding", "system:image-pullers"),
    ("RoleBinding", "system:image-builders"),
    ("RoleBinding", "system:deployers"),
];
/// The group of the product's own kinds: their objects go with the product.
const OWN_GROUP: &str = "scantling.dev";

/// Takes the release away.
///
/// # Flow
/// Every object of the inventory is decided about, then waves go backwards: what a release brings last is deleted
/// first; a wave is gone before the next one goes; the namespace `scantling-system` is last.
///
/// # Guarantees
/// - What was there before Scantling is not deleted. Claims to storage, namespaces in which others have something, and
///   definitions of which others have objects stay, each with its cause in the report.
/// - Deleting names the uid that was read: another object of the same name stays.
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
        done = session.holding_the_lease(async |session| session.remove(&steps).await).await;
        if done.is_ok() {
            done = session.remove_own_namespace().await;
        }
    }
    session.end(done)
}

/// What is known of the cluster's objects when a removal is decided.
struct Around {
    /// Every object in namespaces that might go, and of kinds that might go.
    objects: BTreeMap<ObjectKey, Value>,
    /// Uids of what goes.
    going: BTreeSet<String>,
}

impl Around {
    /// What a namespace or a kind holds that is somebody's.
    fn others(&self, within: impl Fn(&ObjectKey) -> bool, steps: &[Step]) -> Vec<ObjectKey> {
        let ours: BTreeSet<&ObjectKey> =
            steps.iter().filter(|s| s.outcome == Outcome::Pruned).map(|s| &s.key).collect();
        self.objects
            .iter()
            .filter(|(key, object)| within(key) && !ours.contains(key) && self.is_somebodys(key, object))
            .map(|(key, _)| key.clone())
            .collect()
    }

    fn is_somebodys(&self, key: &ObjectKey, object: &Value) -> bool {
        let nobodys = NOBODYS.contains(&(key.group.as_str(), key.kind.as_str()))
            || EVERYWHERE.contains(&(key.kind.as_str(), key.name.as_str()))
            || object::label(object, "endpointslice.kubernetes.io/managed-by").is_some()
            || object::annotation(object, "kubernetes.io/service-account.name").is_some();
        let ours = key.group == OWN_GROUP
            || object::label(object, "app.kubernetes.io/managed-by") == Some("scantling")
            || key.namespace.as_deref() == Some(SYSTEM_NAMESPACE) && is_applied(object);
        !nobodys && !ours && !self.goes_along(object)
    }

    /// Whether an object goes with its owners, directly or by others.
    fn goes_along(&self, object: &Value) -> bool {
        let owners = object::owner_references(object);
        !owners.is_empty()
            && owners.iter().all(|owner| {
                self.going.contains(&owner.uid)
                    || self
                        .objects
                        .values()
                        .find(|o| object::uid(o) == owner.uid)
                        .is_none_or(|found| self.goes_along(found))
            })
    }
}

fn list_of(others: &[ObjectKey]) -> String {
    let named: Vec<String> = others.iter().take(NAMED).map(ToString::to_string).collect();
    match others.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

impl Session<'_> {
    /// Reads what is installed and decides about each object.
    async fn prepare_removal(&mut self) -> Result<Vec<Step>, Stop> {
        self.stage = Stage::Read;
        self.served = self.env.cluster.served().await?;
        self.read_installed().await?;
        self.read_objects(&[]).await?;
        self.claim_creates();
        let keys: Vec<ObjectKey> = self.previous.inventory.keys().cloned().collect();
        let around = self.read_around(&keys).await?;
        self.tell(What::ClusterRead { nodes: 0, platforms: Vec::new(), objects: self.live.len() });
        self.stage = Stage::Plan;
        let steps = self.decide_removal(around);
        let plan = Plan {
            release: self.report.release.clone(),
            version: self.report.version.clone(),
            from: self.previous.version.clone(),
            steps: steps.clone(),
            ..Plan::default()
        };
        let counts = plan.counts();
        self.report.plan = Some(plan);
        self.tell(What::Planned {
            create: 0,
            update: 0,
            replace: 0,
            adopt: 0,
            unchanged: 0,
            prune: counts.pruned,
        });
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

    /// Every object in a namespace that we created, and of every kind that we defined.
    async fn read_around(&mut self, keys: &[ObjectKey]) -> Result<Around, Stop> {
        let created = |key: &&ObjectKey| self.previous.inventory.get(*key) == Some(&Origin::Created);
        let mut scopes: Vec<(Resource, Option<String>)> = Vec::new();
        let mut going: BTreeSet<String> =
            keys.iter().filter(created).filter(|k| k.kind == "Namespace").map(|k| k.name.clone()).collect();
        going.insert(SYSTEM_NAMESPACE.to_owned());
        for namespace in going {
            let namespaced = self.served.iter().filter(|r| r.namespaced && r.offers("list"));
            scopes.extend(namespaced.map(|r| (r.clone(), Some(namespace.clone()))));
        }
        for key in keys.iter().filter(created).filter(|k| k.kind == "CustomResourceDefinition") {
            let of_it = |r: &&Resource| format!("{}.{}", r.plural, r.gvk.group) == key.name;
            scopes.extend(self.served.iter().filter(of_it).map(|r| (r.clone(), None)));
        }
        let mut objects = BTreeMap::new();
        for (resource, namespace) in scopes {
            if NOBODYS.contains(&(resource.gvk.group.as_str(), resource.gvk.kind.as_str())) {
                continue;
            }
            let found = match self.env.cluster.list(&resource, namespace.as_deref(), None).await {
                // Shown by an API server that does not answer at the moment, or a kind without a list.
                Err(ClusterError::NotFound { .. } | ClusterError::Status { .. }) => Vec::new(),
                found => found?,
            };
            for object in found {
                objects.insert(resource.key(object::namespace(&object), object::name(&object)), object);
            }
        }
        Ok(Around { objects, going: BTreeSet::new() })
    }

    fn decide_removal(&self, mut around: Around) -> Vec<Step> {
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
        around.going = steps
            .iter()
            .filter(|s| s.outcome == Outcome::Pruned)
            .map(|s| object::uid(&s.body).to_owned())
            .collect();
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
        for index in 0..steps.len() {
            let Some(step) = steps.get(index).filter(|s| s.outcome == Outcome::Pruned) else { continue };
            let others = match step.key.kind.as_str() {
                "CustomResourceDefinition" => {
                    let group = object::text(&step.body, "/spec/group").to_owned();
                    let kind = object::text(&step.body, "/spec/names/kind").to_owned();
                    around.others(|key| key.group == group && key.kind == kind, &steps)
                }
                _ => continue,
            };
            if !others.is_empty() {
                let why = format!("objects of this kind are other people's: {}", list_of(&others));
                if let Some(step) = steps.get_mut(index) {
                    keep(step, why);
                }
            }
        }
        for index in 0..steps.len() {
            let Some(step) = steps.get(index).filter(|s| s.outcome == Outcome::Pruned) else { continue };
            if step.key.kind != "Namespace" || step.key.name == SYSTEM_NAMESPACE {
                continue;
            }
            let name = step.key.name.clone();
            let others = around.others(|key| key.namespace.as_deref() == Some(name.as_str()), &steps);
            if !others.is_empty() {
                let why = format!("it holds what stays: {}", list_of(&others));
                if let Some(step) = steps.get_mut(index) {
                    keep(step, why);
                }
            }
        }
        steps.retain(|s| s.key != ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE));
        // What came last goes first: nothing may lose what it stands on.
        steps.sort_by(|a, b| (b.wave, &b.key).cmp(&(a.wave, &a.key)));
        steps
    }

    async fn remove(&mut self, steps: &[Step]) -> Result<(), Stop> {
        self.stage = Stage::Prune;
        for wave in Wave::ALL.into_iter().rev() {
            let of_wave: Vec<Step> = steps.iter().filter(|s| s.wave == wave).cloned().collect();
            let objects = of_wave.iter().filter(|s| s.writes()).count();
            if objects > 0 {
                self.tell(What::Wave { wave, objects });
            }
            self.prune(&of_wave).await?;
            for step in of_wave.iter().filter(|s| s.writes()) {
                self.wait_until_gone(&step.key, object::uid(&step.body)).await?;
            }
        }
        Ok(())
    }

    /// Waits until an object is gone; another one of the same name does not count.
    async fn wait_until_gone(&mut self, key: &ObjectKey, uid: &str) -> Result<(), Stop> {
        let mut wait = Wait::new(key.to_string(), self.options.waits.removal, PAUSE);
        loop {
            let found = self.read(key).await?.filter(|found| object::uid(found) == uid);
            let Some(found) = found else { return Ok(()) };
            let finalizers = found.pointer("/metadata/finalizers").and_then(Value::as_array);
            let finalizers: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
            let why = match finalizers.as_slice() {
                [] => "its removal has not ended".to_owned(),
                held => format!("finalizers hold it: {}", held.join(", ")),
            };
            if wait.is_over() {
                return Err(Stop::Halt(format!(
                    "{key} is not gone: {why}; see who answers for that, then uninstall again"
                )));
            }
            self.pause(&mut wait, why).await;
        }
    }

    /// The last of all: what the product keeps for itself. The run's lease goes with it.
    async fn remove_own_namespace(&mut self) -> Result<(), Stop> {
        self.stage = Stage::State;
        let key = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
        let Some(namespace) = self.read(&key).await? else { return Ok(()) };
        let around = self.read_around(&[]).await?;
        let others = around.others(|key| key.namespace.as_deref() == Some(SYSTEM_NAMESPACE), &[]);
        let step = removal(&key, &namespace, Outcome::Pruned, "nothing of the product is left".to_owned());
        if !others.is_empty() {
            for object in around.objects.values().filter(|o| is_bookkeeping(o)) {
                let uid = Some(object::uid(object).to_owned());
                self.send(Write::Delete { object: object.clone(), uid, grace_seconds: None }).await?;
            }
            let why = format!("others have something in it: {}", list_of(&others));
            self.ended(&step, Outcome::Kept, why);
            return Ok(());
        }
        let uid = object::uid(&namespace).to_owned();
        let delete = Write::Delete { object: namespace, uid: Some(uid.clone()), grace_seconds: None };
        match self.send(delete).await {
            Ok(_) | Err(ClusterError::Moved { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.wait_until_gone(&key, &uid).await?;
        self.ended(&step, Outcome::Pruned, step.cause.clone());
        self.tell(What::Finished { writes: self.report.writes });
        Ok(())
    }
}

/// What the product keeps for itself in its namespace.
fn is_bookkeeping(object: &Value) -> bool {
    let kind = object::text(object, "/kind");
    let name = object::name(object);
    kind == "ConfigMap" && (name == JOURNAL_NAME || name.starts_with("scantling-"))
        || kind == "Lease" && name.starts_with("scantling-")
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
