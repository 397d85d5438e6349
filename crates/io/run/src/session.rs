//! One run in the making: what is known, what was done, and the only way to write.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::Schema;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{ClusterError, Served, Write, Written};
use scantling_image::{ImageIdentity, Platform, Reference};
use scantling_plan::{Desired, NodeFacts, Outcome, Pins, Previous, Step};
use scantling_reconcile::KnownImage;
use scantling_registry::RegistryClient;
use scantling_release::{LockedImage, Release};
use serde_json::{Value, json};

use crate::claim::Claim;
use crate::environment::Environment;
use crate::event::{RunEvent, Stage, What};
use crate::journal::{Action, Journal};
use crate::meanwhile::People;
use crate::options::Options;
use crate::report::{ObjectOutcome, RunReport, Stop};
use crate::state::{RecordedImage, SYSTEM_NAMESPACE, State};
use crate::traffic::Traffic;

/// Where events go.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(RunEvent);

pub(crate) struct Session<'a> {
    pub(crate) env: &'a Environment,
    pub(crate) release: &'a Release,
    pub(crate) options: &'a Options,
    pub(crate) report: RunReport,
    pub(crate) stage: Stage,
    /// The way to registries, with the credentials that the cluster has now.
    pub(crate) registry: RegistryClient,
    /// Pull secrets that were changed since the run began, each with the stage in which that was seen.
    pub(crate) rotated: BTreeMap<ObjectKey, Stage>,
    /// What people had when the run began.
    pub(crate) people: People,
    pub(crate) served: Served,
    pub(crate) schema: Schema,
    pub(crate) nodes: Vec<NodeFacts>,
    /// Every `ConfigMap` of the system namespace, as read at the beginning.
    pub(crate) system_maps: Vec<Value>,
    /// The stored state of the last run that ended.
    pub(crate) state: Option<State>,
    pub(crate) previous: Previous,
    /// The cluster's namespaces, as read at the beginning.
    pub(crate) namespaces: BTreeMap<String, Value>,
    /// Objects of the release and of the previous one, as last read.
    pub(crate) live: BTreeMap<ObjectKey, Value>,
    /// What the release's references lead to.
    pub(crate) images: Vec<LockedImage>,
    pub(crate) pins: Pins,
    /// Every digest under which a reference by digest may be reported, by that reference.
    pub(crate) identities: BTreeMap<String, ImageIdentity>,
    pub(crate) desired: Vec<Desired>,
    /// Images that exist on the cluster only, by image stream tag.
    pub(crate) recorded: BTreeMap<String, RecordedImage>,
    /// Tags that this run has looked at.
    pub(crate) recorded_now: BTreeSet<String>,
    /// Images whose contents were read, in this run or an earlier one.
    pub(crate) known_images: Vec<KnownImage>,
    /// References by digest that each node was given, by the node's uid.
    pub(crate) prepulled: BTreeMap<String, BTreeSet<String>>,
    /// Compressed bytes by platform of images that came to be on the cluster, by reference by digest.
    pub(crate) sizes: BTreeMap<String, Vec<(Platform, u64)>>,
    pub(crate) journal: Journal,
    /// Whether a run, of this release or another, has begun and not ended.
    pub(crate) left_open: bool,
    /// Whether this run has stored the release's files.
    pub(crate) bundle_stored: bool,
    /// What the cluster's journal says, if this run has written it.
    pub(crate) journal_written: Option<Journal>,
    /// The claim to the run's lease.
    pub(crate) claim: Claim,
    /// What this run writes.
    pub(crate) traffic: Traffic,
    sink: Sink<'a>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        env: &'a Environment,
        release: &'a Release,
        options: &'a Options,
        action: Action,
        sink: Sink<'a>,
    ) -> Self {
        let version = release.version.as_ref().map(ToString::to_string).unwrap_or_default();
        let journal = Journal {
            action,
            holder: options.holder.clone(),
            release: release.name.clone(),
            version: version.clone(),
            started: env.clock.now_rfc3339(),
            reached: String::new(),
            creates: BTreeSet::new(),
            traces: BTreeMap::new(),
            open: true,
            paused: false,
        };
        let mut schema = Schema::kubernetes().clone();
        schema.extend(Schema::openshift().clone());
        Self {
            env,
            release,
            options,
            report: RunReport { release: release.name.clone(), version, ..RunReport::default() },
            stage: Stage::Read,
            registry: env.registry.clone(),
            rotated: BTreeMap::new(),
            people: People::default(),
            served: Served::default(),
            schema,
            nodes: Vec::new(),
            system_maps: Vec::new(),
            state: None,
            previous: Previous::default(),
            namespaces: BTreeMap::new(),
            live: BTreeMap::new(),
            images: Vec::new(),
            pins: Pins::new(),
            identities: BTreeMap::new(),
            desired: Vec::new(),
            recorded: BTreeMap::new(),
            recorded_now: BTreeSet::new(),
            known_images: Vec::new(),
            prepulled: BTreeMap::new(),
            sizes: BTreeMap::new(),
            journal,
            left_open: false,
            bundle_stored: false,
            journal_written: None,
            claim: Claim::Refused,
            traffic: Traffic::default(),
            sink,
        }
    }

    /// Tells what happened.
    pub(crate) fn tell(&mut self, what: What) {
        let event = RunEvent { at: self.env.clock.now(), stage: self.stage, what };
        self.report.events.push(event.clone());
        (self.sink)(event);
    }

    /// Records how an object ended, and tells it.
    pub(crate) fn ended(&mut self, step: &Step, outcome: Outcome, cause: String) {
        if outcome != Outcome::Unchanged {
            self.tell(What::Object { key: step.key.clone(), outcome, cause: cause.clone() });
        }
        let written =
            matches!(outcome, Outcome::Created | Outcome::Updated | Outcome::Replaced | Outcome::Adopted);
        self.report.outcomes.push(ObjectOutcome {
            key: step.key.clone(),
            outcome,
            cause,
            changes: if written { step.changes.clone() } else { Vec::new() },
            adjusted: step.adjusted.clone(),
            kept: step.kept.clone(),
            taken: if written { step.taken.clone() } else { Vec::new() },
        });
    }

    /// Changes the cluster. The lease is taken and the journal opened before the first change, and the journal follows
    /// the stages, so that a run that has nothing to do writes nothing at all.
    pub(crate) async fn write(&mut self, write: Write) -> Result<Written, Stop> {
        self.open().await?;
        Ok(self.send(write).await?)
    }

    /// The same, with the server's refusal as a value that can be looked at.
    pub(crate) async fn try_write(&mut self, write: Write) -> Result<Result<Written, ClusterError>, Stop> {
        self.open().await?;
        Ok(self.send(write).await)
    }

    /// Everything that comes before a write: lease, journal, bundle.
    pub(crate) async fn open(&mut self) -> Result<(), Stop> {
        self.journal.reach(self.stage);
        let first = self.journal_written.is_none();
        if first {
            let key = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
            if self.env.cluster.get_by_key(&self.served, &key).await?.is_none() {
                let object = self.system_namespace();
                self.send(Write::Apply { object, force: true }).await?;
            }
            self.hold().await?;
        }
        if self.journal_written.as_ref() != Some(&self.journal) {
            self.write_journal().await?;
        }
        if first {
            self.store_bundle().await?;
        }
        Ok(())
    }

    /// The namespace of everything that the product keeps for itself, as the release has it. It has at least one field of ours:
    /// without one, nothing would tell that we created it.
    fn system_namespace(&self) -> Value {
        let key = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
        let of_release = self.release.objects.iter().find(|object| object.key == key);
        let mut namespace = of_release.map_or_else(
            || json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}),
            |object| object.value.clone(),
        );
        let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object);
        if labels.is_none_or(serde_json::Map::is_empty) {
            namespace["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "scantling"});
        }
        namespace
    }

    async fn write_journal(&mut self) -> Result<(), Stop> {
        let map = self.journal.to_config_map().map_err(|e| Stop::Halt(e.to_string()))?;
        self.send(Write::Apply { object: map, force: true }).await?;
        self.journal_written = Some(self.journal.clone());
        Ok(())
    }

    /// Marks the run as ended, if it has written anything or takes the place of one that had.
    pub(crate) async fn close_journal(&mut self) -> Result<(), Stop> {
        if self.journal_written.is_some() || self.left_open {
            self.open().await?;
            self.journal.open = false;
            self.journal.traces.clear();
            self.write_journal().await?;
        }
        Ok(())
    }

    /// Sends a write as it is. Everything but what must come before the journal goes through [`Session::write`].
    pub(crate) async fn send(&mut self, write: Write) -> Result<Written, ClusterError> {
        self.put(&write).await
    }

    /// The one way to the cluster: counted, and closed when the run is to stop.
    pub(crate) async fn put(&self, write: &Write) -> Result<Written, ClusterError> {
        let stop = self.options.stop.as_ref();
        self.traffic.write(stop, self.env.cluster.write(&self.served, write)).await
    }

    /// Ends the run before anything is written.
    pub(crate) fn refuse(&mut self, why: String) -> Stop {
        self.tell(What::Refused { why: why.clone() });
        Stop::Refuse(why)
    }

    /// The identity of what a reference by digest leads to; at least its own digest.
    pub(crate) fn identity(&self, pinned: &str) -> ImageIdentity {
        self.identities.get(pinned).cloned().unwrap_or_else(|| {
            let digest = Reference::parse(pinned).ok().and_then(|r| r.digest().cloned());
            digest.map_or_else(ImageIdentity::default, |d| ImageIdentity {
                index: BTreeSet::from([d]),
                ..ImageIdentity::default()
            })
        })
    }

    /// The object of a kind and name as it is now, in the version that the server prefers.
    pub(crate) async fn read(&self, key: &ObjectKey) -> Result<Option<Value>, ClusterError> {
        self.env.cluster.get_by_key(&self.served, key).await
    }

    /// An object that the release wants as it is now, in the version in which the release has it: another version shows
    /// other fields and owners.
    pub(crate) async fn read_as(&self, wanted: &Desired) -> Result<Option<Value>, ClusterError> {
        let exact = object::gvk(&wanted.value).ok().and_then(|gvk| self.served.by_gvk(&gvk));
        match exact {
            Some(resource) => {
                self.env.cluster.get(resource, wanted.key.namespace.as_deref(), &wanted.key.name).await
            }
            None => self.read(&wanted.key).await,
        }
    }

    /// An object of the release as it is; as it was read at the beginning, as long as this run has changed nothing.
    pub(crate) async fn current(&self, key: &ObjectKey) -> Result<Option<Value>, ClusterError> {
        match self.journal_written {
            None => Ok(self.live.get(key).cloned()),
            Some(_) => self.read(key).await,
        }
    }

    /// The desired objects of a group and kind.
    pub(crate) fn desired_of(&self, group: &str, kind: &str) -> Vec<Value> {
        let of_kind = self.desired.iter().filter(|d| d.key.group == group && d.key.kind == kind);
        of_kind.map(|d| d.value.clone()).collect()
    }
}

/// `ns/name`, as people write it.
pub(crate) fn slashed(value: &Value) -> String {
    match object::namespace(value) {
        Some(namespace) => format!("{namespace}/{}", object::name(value)),
        None => object::name(value).to_owned(),
    }
}
