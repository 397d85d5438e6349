//! What is installed, whether it is whole, and what is going on.

use std::collections::{BTreeMap, BTreeSet};

use std::time::Duration;

use jiff::SignedDuration;
use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_cluster::{ClusterError, Resource, Served};
use serde::Serialize;
use serde_json::Value;

use crate::bundle::kept;
use crate::claim::{LEASE_DURATION, LEASE_NAME};
use crate::edited::{Compared, Edited, compare};
use crate::environment::Environment;
use crate::health::{Health, health, judged};
use crate::history::{self, PastRun};
use crate::journal::{Action, JOURNAL_NAME, Journal};
use crate::lost::{in_words, traces};
use crate::report::RunError;
use crate::state::{SYSTEM_NAMESPACE, State};
use crate::why::why_not_ready;

/// Workloads that do not work and are asked why: each costs a request or two, and the first ones tell enough.
const EXPLAINED: usize = 20;
/// A lease that seems old is looked at again after this time; its holder renews it three times in its duration.
const LOOK_AGAIN: Duration = Duration::from_secs(7);

/// What a cluster has of the platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The release that was applied last; none if Scantling has applied none.
    pub installed: Option<Installed>,
    /// A run that has begun and not ended.
    pub open: Option<OpenRun>,
    /// Who holds the run's lease; none if nobody does. A holder that has not renewed it in time is looked at for some seconds before it is taken for gone.
    pub holder: Option<String>,
    /// The last run that changed something.
    pub last: Option<PastRun>,
    /// The versions that can be gone back to.
    pub kept: Vec<String>,
    /// Objects of the release that are not there.
    pub missing: Vec<ObjectKey>,
    /// Objects of the release that do not work.
    pub unhealthy: Vec<Unhealthy>,
    /// Objects of the release with fields that differ from what it wants. Looked for only while no run is open: then what was
    /// applied last is what is wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<Edited>,
    /// Objects with fields that are left to whoever wrote them: by a rule of the release, or because it says nothing of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Edited>,
    /// Why fields could not be compared with what the release wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncompared: Option<String>,
    /// What tells that the platform is there although the state of it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// The release that was applied last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Installed {
    /// Its name.
    pub release: String,
    /// Its version.
    pub version: String,
    /// How many objects it has.
    pub objects: usize,
}

/// A run that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenRun {
    /// What it is to do.
    pub action: Action,
    /// Name of its release.
    pub release: String,
    /// Its version.
    pub version: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// The stage that it has reached.
    pub reached: String,
    /// Who began it or continued it last.
    pub holder: String,
    /// Whether a person has stopped it, so that only a person goes on with it.
    pub paused: bool,
}

impl From<Journal> for OpenRun {
    fn from(journal: Journal) -> Self {
        let Journal { action, holder, release, version, started, reached, paused, .. } = journal;
        Self { action, release, version, started, reached, holder, paused }
    }
}

/// An object that does not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unhealthy {
    /// The object.
    pub key: ObjectKey,
    /// What is missing.
    pub why: String,
}

/// Reads what a cluster has. One list for each kind and namespace of the release; nothing is written.
///
/// # Errors
/// When the cluster cannot be read, or what is stored there is damaged.
pub async fn status(env: &Environment) -> Result<Status, RunError> {
    let served = env.cluster.served().await.map_err(RunError::unread)?;
    let maps = match served.by_kind("", "ConfigMap") {
        Some(resource) => env.cluster.list(resource, Some(SYSTEM_NAMESPACE), None).await,
        None => Ok(Vec::new()),
    };
    let maps = maps.map_err(RunError::unread)?;
    let state = State::from_config_maps(&maps).map_err(RunError::unread)?;
    let journal = maps.iter().find(|m| object::name(m) == JOURNAL_NAME).map(Journal::read).transpose();
    let journal = journal.map_err(RunError::unread)?.filter(|j| j.open);
    let lease = ObjectKey::namespaced("coordination.k8s.io", "Lease", SYSTEM_NAMESPACE, LEASE_NAME);
    let lease = env.cluster.get_by_key(&served, &lease).await.map_err(RunError::unread)?;
    let holder = match lease {
        Some(lease) => holder_of(env, &served, &lease).await.map_err(RunError::unread)?,
        None => None,
    };
    let keys: BTreeSet<ObjectKey> =
        state.iter().flat_map(|s| s.inventory.iter().map(|e| e.key.clone())).collect();
    let applied = state.iter().flat_map(|state| &state.objects);
    let kinds: BTreeMap<ObjectKey, GroupVersionKind> =
        applied.filter_map(|it| Some((object::key(it).ok()?, object::gvk(it).ok()?))).collect();
    let live = objects(env, &served, &keys, &kinds).await.map_err(RunError::unread)?;
    let compared = match &state {
        Some(state) if journal.is_none() => compare(env, &served, state, &live).await,
        _ => Ok(Compared::default()),
    };
    let (Compared { edited, left }, uncompared) = match compared {
        Ok(compared) => (compared, None),
        Err(why) => (Compared::default(), Some(why)),
    };
    let lost = match (&state, &journal) {
        (None, None) => in_words(&traces(env, &served, &maps).await.map_err(RunError::unread)?),
        _ => None,
    };
    let missing = keys.iter().filter(|key| !live.contains_key(key)).cloned().collect();
    let unhealthy = live.iter().filter(|(key, _)| judged(key)).filter_map(|(key, object)| {
        let why = match health(object) {
            Health::Healthy(_) => return None,
            Health::NotYet(why) | Health::Failed(why) => why,
        };
        Some(Unhealthy { key: key.clone(), why })
    });
    let mut unhealthy: Vec<Unhealthy> = unhealthy.collect();
    for it in unhealthy.iter_mut().filter(|it| it.key.group == "apps").take(EXPLAINED) {
        let Some(object) = live.get(&it.key) else { continue };
        if let Some(said) = why_not_ready(&env.cluster, &served, object).await {
            it.why = format!("{}; {said}", it.why);
        }
    }
    Ok(Status {
        edited,
        left,
        uncompared,
        lost,
        unhealthy,
        missing,
        installed: state.map(|s| Installed {
            release: s.release,
            version: s.version,
            objects: s.inventory.len(),
        }),
        open: journal.map(OpenRun::from),
        holder,
        last: history::read(&maps).into_iter().next(),
        kept: kept(&maps),
    })
}

/// Who holds the run's lease. One that has not been renewed in time, by our clock, is looked at again: its holder's clock
/// may show another time, but a holder that is alive renews it.
async fn holder_of(
    env: &Environment,
    served: &Served,
    lease: &Value,
) -> Result<Option<String>, ClusterError> {
    let holder = |lease: &Value| object::text(lease, "/spec/holderIdentity").to_owned();
    if holder(lease).is_empty() {
        return Ok(None);
    }
    let renewed = |lease: &Value| object::text(lease, "/spec/renewTime").to_owned();
    let age = renewed(lease).parse::<jiff::Timestamp>().map(|at| env.clock.now().duration_since(at).abs());
    if age.is_ok_and(|age| age <= SignedDuration::try_from(LEASE_DURATION).unwrap_or_default()) {
        return Ok(Some(holder(lease)));
    }
    tokio::time::sleep(LOOK_AGAIN).await;
    let key = ObjectKey::namespaced("coordination.k8s.io", "Lease", SYSTEM_NAMESPACE, LEASE_NAME);
    let now = env.cluster.get_by_key(served, &key).await?;
    let alive = now.filter(|now| renewed(now) != renewed(lease) || holder(now) != holder(lease));
    Ok(alive.map(|now| holder(&now)).filter(|holder| !holder.is_empty()))
}

/// Objects by their keys, in the version in which they were applied: another one shows other fields and owners. One list for
/// each kind and namespace.
async fn objects(
    env: &Environment,
    served: &Served,
    keys: &BTreeSet<ObjectKey>,
    kinds: &BTreeMap<ObjectKey, GroupVersionKind>,
) -> Result<BTreeMap<ObjectKey, Value>, ClusterError> {
    let mut scopes: BTreeMap<(String, Option<&str>), &Resource> = BTreeMap::new();
    for key in keys {
        let exact = kinds.get(key).and_then(|gvk| served.by_gvk(gvk));
        if let Some(resource) = exact.or_else(|| served.by_kind(&key.group, &key.kind)) {
            let scope = (format!("{:#}", resource.gvk), key.namespace.as_deref());
            scopes.entry(scope).or_insert(resource);
        }
    }
    let mut found = BTreeMap::new();
    for ((_, namespace), resource) in scopes {
        for object in env.cluster.list(resource, namespace, None).await? {
            if let Ok(key) = object::key(&object)
                && keys.contains(&key)
            {
                found.insert(key, object);
            }
        }
    }
    Ok(found)
}
