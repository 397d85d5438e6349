//! The world: one API server, its controllers, nodes and registries on one virtual clock.
//!
//! Nothing happens but by [`World::handle`] (a request is answered at once) and [`World::run_until`] (the
//! work that is due is done in the order of time, class and arrival). Controllers are never called by the
//! API: after each step the world reads what changed and puts work into its queue. Same configuration, same
//! requests at the same times, same seed: same bytes of trace.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use scantling_api::ObjectKey;
use scantling_contents::ImageDescription;
use scantling_endpoint::Mirrors;
use scantling_registry_server::RegistryServer;
use serde_json::Value;

use crate::api::{ApiServer, Moment, Reply, WatchChunk, WatchId};
use crate::controllers;
use crate::faults::Faults;
use crate::ids::Ids;
use crate::node::{Node, NodeConfig};
use crate::openshift::OpenShift;
use crate::queue::{Controller, Queue, Work};
use crate::time::Time;
use crate::trace::{Trace, TraceEvent, What};

/// Most pieces of work that one call of `run_until` does at one instant of the clock; more means that two
/// controllers undo each other's work for ever.
const MAX_WORK_AT_ONE_INSTANT: u32 = 100_000;
/// A controller acts on a change after at least one millisecond and less than this much.
const REACTION_MILLIS: u64 = 12;

/// Which API there is beside Kubernetes' own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavour {
    /// Kubernetes alone, with containerd on its nodes.
    #[default]
    Kubernetes,
    /// With image streams, builds and routes, and CRI-O on its nodes.
    OpenShift,
}

/// What a build of one source makes.
#[derive(Debug, Clone)]
pub struct BuildRecipe {
    /// The source's repository, as in `spec.source.git.uri`.
    pub uri: String,
    /// Branch or tag, as in `spec.source.git.ref`.
    pub ref_: String,
    /// The folder in it, as in `spec.source.contextDir`; empty for the whole.
    pub context_dir: String,
    /// How long the build takes, in minutes of virtual time.
    pub minutes: u64,
    /// What it adds to the image that it starts from.
    pub description: ImageDescription,
}

/// Everything that a world starts from.
#[derive(Debug, Clone)]
pub struct WorldConfig {
    /// The seed of everything random.
    pub seed: u64,
    /// The time of the virtual clock's start.
    pub start: Timestamp,
    /// Which API there is.
    pub flavour: Flavour,
    /// The nodes.
    pub nodes: Vec<NodeConfig>,
    /// Where nodes and the importer look for images instead of the registry that is written.
    pub mirrors: Mirrors,
    /// Host and port of the registry in the cluster, as in
    /// `image-registry.openshift-image-registry.svc:5000`.
    pub internal_registry: Option<String>,
    /// A `.dockerconfigjson` that every node has, whatever pods bring.
    pub node_pull_secret: Option<String>,
    /// What builds make.
    pub builds: Vec<BuildRecipe>,
}

impl WorldConfig {
    /// A cluster of one flavour without nodes, at the start of 2026.
    pub fn new(seed: u64, flavour: Flavour) -> Self {
        Self {
            seed,
            start: Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH),
            flavour,
            nodes: Vec::new(),
            mirrors: Mirrors::default(),
            internal_registry: None,
            node_pull_secret: None,
            builds: Vec::new(),
        }
    }
}

/// The world.
#[derive(Debug)]
pub struct World {
    pub(crate) config: WorldConfig,
    now: Time,
    queue: Queue,
    pub(crate) ids: Ids,
    pub(crate) api: ApiServer,
    /// The version of the last change that has been looked at.
    cursor: u64,
    pub(crate) registry: RegistryServer,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) openshift: OpenShift,
    mirrors: Mirrors,
    pub(crate) faults: Faults,
    trace: Trace,
    /// Objects by the uid of each of their owners.
    pub(crate) dependents: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Owners that are gone and whose objects are still there: key and uid.
    pub(crate) orphans: BTreeSet<(ObjectKey, String)>,
    /// Owners that wait until what they own is gone.
    pub(crate) held: BTreeSet<ObjectKey>,
    /// Pods that the scheduler has found no node for.
    pub(crate) unschedulable: BTreeSet<ObjectKey>,
    /// Events that have been recorded: (object's uid, reason, message) → the event.
    pub(crate) recorded: BTreeMap<(String, String, String), ObjectKey>,
}

impl World {
    /// A world at its start: namespaces, nodes and registries are there, nothing else.
    pub fn new(config: WorldConfig, registry: RegistryServer) -> Self {
        let nodes = config
            .nodes
            .iter()
            .zip(1..)
            .map(|(node, number)| (node.name.clone(), Node::new(node.clone(), number)));
        let mut world = Self {
            now: Time::ZERO,
            queue: Queue::default(),
            ids: Ids::new(config.seed),
            api: ApiServer::new(config.flavour == Flavour::OpenShift),
            cursor: 0,
            registry,
            nodes: nodes.collect(),
            openshift: OpenShift::default(),
            mirrors: config.mirrors.clone(),
            faults: Faults::default(),
            trace: Trace::default(),
            dependents: BTreeMap::new(),
            orphans: BTreeSet::new(),
            held: BTreeSet::new(),
            unschedulable: BTreeSet::new(),
            recorded: BTreeMap::new(),
            config,
        };
        crate::bootstrap::fill(&mut world);
        world.notice_changes();
        world
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The time now as a date.
    pub fn timestamp(&self) -> Timestamp {
        self.date(self.now)
    }

    /// The date of a moment.
    pub(crate) fn date(&self, time: Time) -> Timestamp {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.config.start.checked_add(SignedDuration::from_millis(millis)).unwrap_or(Timestamp::MAX)
    }

    /// A moment as objects carry it.
    pub(crate) fn stamp(&self, time: Time) -> String {
        crate::api::rfc3339_seconds(self.date(time))
    }

    /// The time now as objects carry it.
    pub(crate) fn stamp_now(&self) -> String {
        self.stamp(self.now)
    }

    /// Which API there is.
    pub fn flavour(&self) -> Flavour {
        self.config.flavour
    }

    /// Answers a request to the API server, now.
    pub fn handle(&mut self, request: &http::Request<Bytes>) -> Reply {
        let client = crate::faults::client_of(request);
        let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
        let writes =
            !matches!(*request.method(), http::Method::GET | http::Method::HEAD | http::Method::OPTIONS);
        let fault = self.faults.before(&client, writes, &mut self.ids);
        let refused = fault.as_ref().is_some_and(|response| !crate::faults::after_write(response));
        let reply = match (fault, refused) {
            (Some(response), true) => Reply::Once(response),
            (fault, _) => {
                let reply = self.answer(request);
                self.notice_changes();
                match (fault, reply) {
                    (Some(lost), Reply::Once(_)) => Reply::Once(lost),
                    (_, reply) => reply,
                }
            }
        };
        if let Reply::Watch(id) = &reply {
            self.faults.watch_began(*id, &client, self.now);
        }
        if let Reply::Once(response) = &reply {
            let status = response.status().as_u16();
            if writes || status >= 500 {
                let what = What::Request { method: request.method().to_string(), path, status };
                self.note(&client, what, None);
            }
        }
        reply
    }

    fn answer(&mut self, request: &http::Request<Bytes>) -> Reply {
        if let Some(response) = crate::openshift::requests::answer(self, request) {
            return Reply::Once(response);
        }
        let now = self.date(self.now);
        self.api.handle(request, &mut Moment { now, ids: &mut self.ids })
    }

    /// What a watch has to say since it was last asked.
    pub fn watch_poll(&mut self, id: WatchId) -> WatchChunk {
        let now = self.date(self.now);
        let mut chunk = self.api.watch_poll(id, now);
        let now = self.now;
        if self.faults.at(now).cuts_watch(id) {
            self.api.watch_close(id);
            chunk.closed = true;
        }
        chunk
    }

    /// Ends a watch.
    pub fn watch_close(&mut self, id: WatchId) {
        self.faults.watch_ended(id);
        self.api.watch_close(id);
    }

    /// When the next work is due, if any is.
    pub fn next_event(&self) -> Option<Time> {
        let watch = self.api.next_watch_time().map(|date| {
            let millis = date.duration_since(self.config.start).as_millis();
            Time::from_millis(u64::try_from(millis).unwrap_or(0)).max(self.now.plus_millis(1))
        });
        [self.queue.next_time(), watch].into_iter().flatten().min()
    }

    /// Does all work that is due until then, and moves the clock there. A time that is over changes nothing.
    pub fn run_until(&mut self, until: Time) {
        // Whatever was done to the world from outside since the last step is noticed first.
        self.notice_changes();
        let mut instant = (self.now, 0_u32);
        while let Some((time, work)) = self.queue.pop(until) {
            if time > self.now {
                self.now = time;
            }
            instant = if instant.0 == self.now { (self.now, instant.1 + 1) } else { (self.now, 0) };
            if instant.1 > MAX_WORK_AT_ONE_INSTANT {
                let act =
                    format!("work of {:?} {} is put off: too much at one instant", work.controller, work.key);
                self.note("world", What::Outside { act }, None);
                self.queue.add(self.now.plus_millis(1000), work);
                continue;
            }
            controllers::reconcile(self, &work);
            self.notice_changes();
        }
        if until > self.now {
            self.now = until;
        }
    }

    /// Does all work until nothing more is due, but not beyond `limit`. Gives the time of the last work.
    pub fn run_until_quiet(&mut self, limit: Time) -> Time {
        while let Some(next) = self.queue.next_time() {
            if next > limit {
                break;
            }
            self.run_until(next);
        }
        self.now
    }

    /// The registries that the cluster can reach; requests of the outside go to `RegistryServer::handle`.
    pub fn registry(&mut self) -> &mut RegistryServer {
        &mut self.registry
    }

    /// What is to go wrong between clients and the API.
    pub fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// What happened so far.
    pub fn trace(&self) -> &[TraceEvent] {
        self.trace.events()
    }

    /// Events that happened after the trace was full.
    pub fn untraced(&self) -> u64 {
        self.trace.dropped()
    }

    /// All objects, in the order of their keys.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.api.store.objects()
    }

    /// The mirror rules in force.
    pub(crate) fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    /// Puts mirror rules into force.
    pub(crate) fn set_mirrors(&mut self, mirrors: Mirrors) {
        self.mirrors = mirrors;
    }

    /// Adds to the trace.
    pub(crate) fn note(&mut self, actor: &str, what: What, object: Option<ObjectKey>) {
        self.trace.add(self.now, actor, what, object);
    }

    /// A number of milliseconds below `bound`, from the seed.
    pub(crate) fn jitter(&mut self, bound: u64) -> u64 {
        self.ids.delay(bound)
    }

    /// A new container id.
    pub(crate) fn container_id(&mut self) -> String {
        self.ids.hex64()
    }

    /// Lets a controller look at an object at a time.
    pub(crate) fn wake(&mut self, controller: Controller, key: &ObjectKey, at: Time) {
        self.queue.add(at.max(self.now), Work { controller, key: key.clone() });
    }

    /// Lets a controller look at an object soon, as after a change that it watches.
    pub(crate) fn wake_soon(&mut self, controller: Controller, key: &ObjectKey) {
        let at = self.now.plus_millis(1 + self.ids.delay(REACTION_MILLIS - 1));
        self.queue.add(at, Work { controller, key: key.clone() });
    }

    /// Puts work into the queue for what changed in the store since the last time.
    fn notice_changes(&mut self) {
        loop {
            let changes: Vec<_> = match self.api.store.changes_since(self.cursor) {
                Ok(changes) => changes.cloned().collect(),
                // More changes in one step than the log keeps: everything is looked at again.
                Err(compacted) => {
                    self.cursor = compacted.oldest;
                    continue;
                }
            };
            self.cursor = self.api.store.version();
            if changes.is_empty() {
                return;
            }
            for change in &changes {
                controllers::notice(self, change);
            }
        }
    }
}
