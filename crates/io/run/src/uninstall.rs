//! Taking a release away: everything that we created, waves backwards, and nothing that belongs to people.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use scantling_api::schema::Schema;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{ClusterError, Resource, Write};
use scantling_image::Digest;
use scantling_plan::{Origin, Outcome, Plan, Step, is_applied};
use scantling_release::{Release, Settings, Tree, Wave};
use serde_json::Value;

use crate::apply::AT_ONCE;
use crate::bundle::is_bundle;
use crate::environment::Environment;
use crate::event::{RunEvent, Stage, What};
use crate::history::HISTORY_NAME;
use crate::journal::{Action, JOURNAL_NAME};
use crate::options::Options;
use crate::packed::is_part;
use crate::removal::Going;
use crate::report::{RunError, RunReport, Stop};
use crate::session::Session;
use crate::state::{STATE_NAME, SYSTEM_NAMESPACE};

/// Owners of owners that are followed: a Deployment's pod has two.
const OWNERS: usize = 16;
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
/// - Deleting names the uid and the version that were read: an object that has changed is decided about again, another
///   one of the same name stays.
/// - What could not be read counts as somebody's: a namespace or a definition of which it is not known what it holds
///   stays.
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
        let mut last = Vec::new();
        done = session
            .holding_the_lease(
                async |session| session.remove(&steps).await,
                async |session| {
                    last = session.remove_own_namespace(&steps).await?;
                    Ok(())
                },
            )
            .await;
        if done.is_ok() {
            done = session.wait_until_gone(last).await;
        }
        if done.is_ok() {
            session.tell(What::Finished { writes: session.traffic.writes() });
        }
    }
    session.end(done)
}

/// What is known of the cluster's objects when a removal is decided.
#[derive(Default)]
pub(crate) struct Around {
    /// Every object in namespaces that might go, and of kinds that might go.
    objects: BTreeMap<ObjectKey, Value>,
    /// Kinds of which everything in a namespace was read: an owner of such a kind that is not there is gone.
    listed: BTreeSet<(String, String, Option<String>)>,
    /// What could not be read, with the reason: kinds, and the namespace in which they were looked for.
    unread: Vec<(ObjectKey, String)>,
    /// Uids of what goes, and of what went along with it when it was looked at before.
    going: BTreeSet<String>,
}

impl Around {
    /// What a namespace or a kind holds that is somebody's, in words; none if there is nothing.
    fn others(&self, within: impl Fn(&ObjectKey) -> bool, steps: &[Step]) -> Option<String> {
        let outcomes: BTreeMap<&ObjectKey, Outcome> = steps.iter().map(|s| (&s.key, s.outcome)).collect();
        let others: Vec<ObjectKey> = self
            .objects
            .iter()
            .filter(|(key, object)| {
                within(key)
                    && match outcomes.get(key) {
                        Some(Outcome::Pruned) => false,
                        Some(_) => true,
                        None => self.is_somebodys(key, object),
                    }
            })
            .map(|(key, _)| key.clone())
            .collect();
        let unread = self.unread.iter().find(|(key, _)| within(key));
        match (others.is_empty(), unread) {
            (false, _) => Some(list_of(&others)),
            (true, Some((key, why))) => Some(format!("it cannot be told which {} ({why})", key.kind)),
            (true, None) => None,
        }
    }

    /// Notes what goes along with what goes: it may outlive its owner for a moment.
    fn follow_owners(&mut self) {
        let by_uid: BTreeMap<&str, &Value> = self.objects.values().map(|o| (object::uid(o), o)).collect();
        let along: Vec<String> = self
            .objects
            .values()
            .filter(|object| self.goes_along(object, &by_uid, OWNERS))
            .map(|object| object::uid(object).to_owned())
            .collect();
        self.going.extend(along);
    }

    fn is_somebodys(&self, key: &ObjectKey, object: &Value) -> bool {
        let nobodys = NOBODYS.contains(&(key.group.as_str(), key.kind.as_str()))
            || EVERYWHERE.contains(&(key.kind.as_str(), key.name.as_str()))
            || object::label(object, "endpointslice.kubernetes.io/managed-by").is_some()
            || object::annotation(object, "kubernetes.io/service-account.name").is_some();
        let ours = key.group == OWN_GROUP
            || object::label(object, "app.kubernetes.io/managed-by") == Some("scantling")
            || key.namespace.as_deref() == Some(SYSTEM_NAMESPACE) && is_applied(object);
        let going = self.going.contains(object::uid(object))
            || object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string);
        !nobodys && !ours && !going
    }

    /// Whether an object goes with its owners, directly or by others, or they are gone already. An owner of which nothing is
    /// known does not go.
    fn goes_along(&self, object: &Value, by_uid: &BTreeMap<&str, &Value>, depth: usize) -> bool {
        let owners = object::owner_references(object);
        !owners.is_empty()
            && owners.iter().all(|owner| match by_uid.get(owner.uid.as_str()) {
                _ if self.going.contains(&owner.uid) => true,
                Some(found) => depth > 0 && self.goes_along(found, by_uid, depth - 1),
                None => {
                    let namespace = object::namespace(object).map(ToOwned::to_owned);
                    self.listed.contains(&(owner.gvk.group.clone(), owner.gvk.kind.clone(), namespace))
                }
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
        self.around = self.read_around(&keys).await?;
        self.tell(What::ClusterRead { nodes: 0, platforms: Vec::new(), objects: self.live.len() });
        self.stage = Stage::Plan;
        let steps = self.decide_removal();
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
        self.check_approval()?;
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
        let mut around = Around::default();
        let mut scopes: Vec<(Resource, Option<String>)> = Vec::new();
        let mut going: BTreeSet<String> =
            keys.iter().filter(created).filter(|k| k.kind == "Namespace").map(|k| k.name.clone()).collect();
        going.insert(SYSTEM_NAMESPACE.to_owned());
        let nobodys = |group: &str, kind: &str| {
            NOBODYS.iter().any(|(g, k)| *g == group && (kind.is_empty() || *k == kind))
        };
        for namespace in going {
            for (group, why) in self.served.unanswered() {
                if !nobodys(group, "") {
                    let any =
                        ObjectKey::namespaced(group, format!("objects of {group}"), namespace.as_str(), "");
                    around.unread.push((any, why.clone()));
                }
            }
            let namespaced = self.served.iter().filter(|r| r.namespaced && r.offers("list"));
            scopes.extend(namespaced.map(|r| (r.clone(), Some(namespace.clone()))));
        }
        for key in keys.iter().filter(created).filter(|k| k.kind == "CustomResourceDefinition") {
            let of_it = |r: &&Resource| format!("{}.{}", r.plural, r.gvk.group) == key.name;
            let kinds: Vec<_> = self.served.iter().filter(of_it).map(|r| (r.clone(), None)).collect();
            if let (true, Some(definition)) = (kinds.is_empty(), self.live.get(key)) {
                let text = |pointer: &str| object::text(definition, pointer).to_owned();
                let kind = ObjectKey::cluster(text("/spec/group"), text("/spec/names/kind"), "");
                // One that was never established never had objects.
                if crate::health::health(definition)
                    == crate::health::Health::Healthy("established".to_owned())
                {
                    around.unread.push((kind, "the server does not say that it serves them".to_owned()));
                }
            }
            scopes.extend(kinds);
        }
        scopes.retain(|(resource, _)| !nobodys(&resource.gvk.group, &resource.gvk.kind));
        let session: &Self = self;
        let lists: Vec<_> = futures::stream::iter(scopes)
            .map(|(resource, namespace)| async move {
                let list = session.env.cluster.list(&resource, namespace.as_deref(), None).await;
                (resource, namespace, list)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (resource, namespace, list) in lists {
            let found = match list {
                // Not served any more since discovery, or a kind without a list.
                Err(ClusterError::NotFound { .. }) => continue,
                Err(error @ ClusterError::Status { .. }) => {
                    around.unread.push((resource.key(namespace.as_deref(), ""), error.to_string()));
                    continue;
                }
                found => found?,
            };
            let kind = (resource.gvk.group.clone(), resource.gvk.kind.clone(), namespace);
            around.listed.insert(kind);
            for object in found {
                around
                    .objects
                    .insert(resource.key(object::namespace(&object), object::name(&object)), object);
            }
        }
        Ok(around)
    }

    fn decide_removal(&mut self) -> Vec<Step> {
        let mut around = std::mem::take(&mut self.around);
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
        around.follow_owners();
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
        keep_for_others(&mut steps, &around);
        self.around = around;
        steps.retain(|s| s.key != ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE));
        // What came last goes first: nothing may lose what it stands on.
        steps.sort_by(|a, b| (b.wave, &b.key).cmp(&(a.wave, &a.key)));
        steps
    }

    async fn remove(&mut self, steps: &[Step]) -> Result<(), Stop> {
        self.stage = Stage::Prune;
        for wave in Wave::ALL.into_iter().rev() {
            let mut of_wave: Vec<Step> = steps.iter().filter(|s| s.wave == wave).cloned().collect();
            if matches!(wave, Wave::Definitions | Wave::Namespaces) && of_wave.iter().any(Step::writes) {
                self.look_again(&mut of_wave, steps).await?;
            }
            let objects = of_wave.iter().filter(|s| s.writes()).count();
            if objects > 0 {
                self.tell(What::Wave { wave, objects });
            }
            let going = self.remove_all(&of_wave).await?;
            self.wait_until_gone(going).await?;
        }
        Ok(())
    }

    /// What people have made since it was decided keeps its namespace and its kind.
    async fn look_again(&mut self, of_wave: &mut [Step], steps: &[Step]) -> Result<(), Stop> {
        let keys: Vec<ObjectKey> = of_wave.iter().filter(|s| s.writes()).map(|s| s.key.clone()).collect();
        let mut around = self.read_around(&keys).await?;
        around.going = std::mem::take(&mut self.around.going);
        around.follow_owners();
        let mut again = steps.to_vec();
        keep_for_others(&mut again, &around);
        self.around = around;
        for step in of_wave {
            if let Some(now) = again.iter().find(|now| now.key == step.key) {
                step.outcome = now.outcome;
                step.cause.clone_from(&now.cause);
            }
        }
        Ok(())
    }

    /// The last of all: what the product keeps for itself. The run's lease goes with it.
    async fn remove_own_namespace(&mut self, steps: &[Step]) -> Result<Vec<Going>, Stop> {
        self.stage = Stage::State;
        let key = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
        let Some(namespace) = self.read(&key).await? else { return Ok(Vec::new()) };
        self.hold().await?;
        let mut around = self.read_around(&[]).await?;
        around.going = std::mem::take(&mut self.around.going);
        around.follow_owners();
        let others = around.others(|key| key.namespace.as_deref() == Some(SYSTEM_NAMESPACE), steps);
        let step = removal(&key, &namespace, Outcome::Pruned, "nothing of the product is left".to_owned());
        if let Some(others) = others {
            for object in around.objects.values().filter(|o| is_bookkeeping(o)) {
                let uid = Some(object::uid(object).to_owned());
                self.send(Write::Delete { object: object.clone(), uid, grace_seconds: None }).await?;
            }
            self.ended(&step, Outcome::Kept, format!("others have something in it: {others}"));
            return Ok(Vec::new());
        }
        let uid = object::uid(&namespace).to_owned();
        let delete = Write::Delete { object: namespace, uid: Some(uid.clone()), grace_seconds: None };
        match self.send(delete).await {
            Ok(_) | Err(ClusterError::Moved { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.ended(&step, Outcome::Pruned, step.cause.clone());
        Ok(vec![Going { key, uid }])
    }
}

/// What others have keeps the definition of its kind, and its namespace.
fn keep_for_others(steps: &mut [Step], around: &Around) {
    for definitions in [true, false] {
        for index in 0..steps.len() {
            let Some(step) = steps.get(index).filter(|s| s.outcome == Outcome::Pruned) else { continue };
            let key = step.key.clone();
            let why = match key.kind.as_str() {
                "CustomResourceDefinition" if definitions => {
                    let group = object::text(&step.body, "/spec/group").to_owned();
                    let kind = object::text(&step.body, "/spec/names/kind").to_owned();
                    let others = around.others(|key| key.group == group && key.kind == kind, steps);
                    others.map(|others| format!("objects of this kind are other people's: {others}"))
                }
                "Namespace" if !definitions && key.name != SYSTEM_NAMESPACE => {
                    let within = |other: &ObjectKey| other.namespace.as_ref() == Some(&key.name);
                    around.others(within, steps).map(|others| format!("it holds what stays: {others}"))
                }
                _ => None,
            };
            if let (Some(why), Some(step)) = (why, steps.get_mut(index)) {
                keep(step, why);
            }
        }
    }
}

/// What the product keeps for itself in its namespace, by name, and written by nobody else.
fn is_bookkeeping(object: &Value) -> bool {
    let name = object::name(object);
    match object::text(object, "/kind") {
        "Lease" => name.starts_with("scantling-"),
        "ConfigMap" | "Secret" => {
            is_applied(object)
                && ([JOURNAL_NAME, HISTORY_NAME, STATE_NAME].contains(&name)
                    || is_bundle(object)
                    || is_part(object))
        }
        _ => false,
    }
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
