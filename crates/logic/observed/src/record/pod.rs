//! A pod in few bytes.

use scantling_api::object::ContainerKind;
use scantling_image::{ImageId, ImageIdError, PullPolicy, Reference, ReferenceError};
use serde::Deserialize;
use serde_json::Value;

use super::names::{Names, Text};
use super::wire::{Everything, Filter, Pairs, Str, value};
use crate::pod::ContainerState;

/// What decisions about images need of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRecord {
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
    /// Its uid; empty in files that were never in a cluster.
    pub uid: Text,
    /// The version that was read.
    pub resource_version: Text,
    /// When it was made (RFC 3339).
    pub created: Text,
    /// Whether somebody is deleting it.
    pub deleting: bool,
    /// The owner that controls it.
    pub owner: Option<OwnerRecord>,
    /// Its labels, sorted by key.
    pub labels: Vec<(Text, Text)>,
    /// Those of its annotations that say where it comes from or what it holds, sorted by key: of static pods and of platforms' controllers.
    pub annotations: Vec<(Text, Text)>,
    /// The node that it is bound to.
    pub node: Option<Text>,
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`; empty before anybody has said.
    pub phase: Text,
    /// Why it is in its phase, in a word: `Evicted`, `NodeLost`; mostly empty.
    pub reason: Text,
    /// The same as a sentence.
    pub message: Text,
    /// Whether it is ready to serve.
    pub ready: bool,
    /// What the scheduler says when it finds no node for it.
    pub unschedulable: Option<Text>,
    /// `Always`, `OnFailure` or `Never`; empty where nothing is written, which means `Always`.
    pub restart_policy: Text,
    /// The service account that it runs as.
    pub service_account: Text,
    /// Names of the secrets that its images are pulled with.
    pub pull_secrets: Vec<Text>,
    /// Its containers: init, regular, ephemeral.
    pub containers: Vec<ContainerRecord>,
    /// Its volumes that are images.
    pub image_volumes: Vec<ImageVolume>,
}

/// Who made an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRecord {
    /// API group, empty for the core group.
    pub group: Text,
    /// Version within the group.
    pub version: Text,
    /// Kind.
    pub kind: Text,
    /// Name.
    pub name: Text,
    /// Uid: an object of the same name with another uid is not the owner.
    pub uid: Text,
}

/// A container: what was asked for and what is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRecord {
    /// Which list it stands in.
    pub kind: ContainerKind,
    /// Its name.
    pub name: Text,
    /// The image as written in the spec; empty if there is none.
    pub image: Text,
    /// The image as the runtime names it: often another name of the same bytes, or a bare id.
    pub status_image: Text,
    /// How often it was restarted.
    pub restarts: i64,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it is a sidecar: an init container that runs beside the others.
    pub is_sidecar: bool,
    /// When what runs, or ran last, was started (RFC 3339); empty before.
    pub started: Text,
    written_policy: Text,
    written_image_id: Text,
    run: RunState,
}

/// What a container is doing, owned; see [`ContainerRecord::state`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RunState {
    /// The kubelet has not reported on it.
    #[default]
    Unreported,
    /// It waits: reason and message.
    Waiting(Text, Text),
    /// It runs since then.
    Running(Text),
    /// It has ended: reason and exit code.
    Terminated(Text, i64),
}

/// A volume that is an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageVolume {
    /// Name of the volume.
    pub name: Text,
    /// The image as written.
    pub reference: Text,
    written_policy: Text,
}

/// Beginnings of the names of annotations that are kept: what made a static pod, and what platforms write about images.
const ANNOTATIONS: [&str; 3] = ["kubernetes.io/config.", "serving.kserve.io/", "scantling.dev/"];

#[derive(Debug)]
struct TellingAnnotations;

impl Filter for TellingAnnotations {
    fn keeps(key: &str) -> bool {
        let domain = key.split('/').next().unwrap_or_default();
        domain.ends_with("opendatahub.io") || ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix))
    }
}

/// The fields of a pod that a record is made from.
#[derive(Debug, Deserialize)]
pub struct PodWire<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Option<Spec<'a>>,
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow, default)]
    namespace: Str<'a>,
    #[serde(borrow, default)]
    uid: Str<'a>,
    #[serde(borrow, default)]
    resource_version: Str<'a>,
    #[serde(borrow, default)]
    creation_timestamp: Str<'a>,
    #[serde(borrow, default)]
    deletion_timestamp: Str<'a>,
    #[serde(borrow, default)]
    labels: Pairs<'a, Everything>,
    #[serde(borrow, default)]
    annotations: Pairs<'a, TellingAnnotations>,
    #[serde(borrow, default)]
    owner_references: Option<Vec<Owner<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    #[serde(borrow, default)]
    api_version: Str<'a>,
    #[serde(borrow, default)]
    kind: Str<'a>,
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    uid: Str<'a>,
    #[serde(default)]
    controller: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow, default)]
    node_name: Str<'a>,
    #[serde(borrow, default)]
    restart_policy: Str<'a>,
    #[serde(borrow, default)]
    service_account_name: Str<'a>,
    #[serde(borrow, default)]
    image_pull_secrets: Option<Vec<Named<'a>>>,
    #[serde(borrow, default)]
    init_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow, default)]
    containers: Option<Vec<Container<'a>>>,
    #[serde(borrow, default)]
    ephemeral_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow, default)]
    volumes: Option<Vec<Volume<'a>>>,
}

#[derive(Debug, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Str<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container<'a> {
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    image: Str<'a>,
    #[serde(borrow, default)]
    image_pull_policy: Str<'a>,
    #[serde(borrow, default)]
    restart_policy: Str<'a>,
}

#[derive(Debug, Deserialize)]
struct Volume<'a> {
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    image: Option<VolumeImage<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VolumeImage<'a> {
    #[serde(borrow, default)]
    reference: Str<'a>,
    #[serde(borrow, default)]
    pull_policy: Str<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow, default)]
    phase: Str<'a>,
    #[serde(borrow, default)]
    reason: Str<'a>,
    #[serde(borrow, default)]
    message: Str<'a>,
    #[serde(borrow, default)]
    conditions: Option<Vec<Condition<'a>>>,
    #[serde(borrow, default)]
    init_container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(borrow, default)]
    container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(borrow, default)]
    ephemeral_container_statuses: Option<Vec<ContainerStatus<'a>>>,
}

#[derive(Debug, Deserialize)]
struct Condition<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default)]
    status: Str<'a>,
    #[serde(borrow, default)]
    message: Str<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus<'a> {
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    image: Str<'a>,
    #[serde(borrow, default, rename = "imageID")]
    image_id: Str<'a>,
    #[serde(default)]
    ready: Option<bool>,
    #[serde(default)]
    restart_count: Option<i64>,
    #[serde(borrow, default)]
    state: Option<State<'a>>,
    #[serde(borrow, default)]
    last_state: Option<State<'a>>,
}

#[derive(Debug, Deserialize)]
struct State<'a> {
    #[serde(borrow, default)]
    running: Option<Running<'a>>,
    #[serde(borrow, default)]
    terminated: Option<Ended<'a>>,
    #[serde(borrow, default)]
    waiting: Option<Waiting<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Running<'a> {
    #[serde(borrow, default)]
    started_at: Str<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended<'a> {
    #[serde(borrow, default)]
    started_at: Str<'a>,
    #[serde(borrow, default)]
    reason: Str<'a>,
    #[serde(default)]
    exit_code: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Waiting<'a> {
    #[serde(borrow, default)]
    reason: Str<'a>,
    #[serde(borrow, default)]
    message: Str<'a>,
}

impl<'a> ContainerStatus<'a> {
    /// A container that waits to be started again has run before.
    fn started(&self) -> Option<&Str<'a>> {
        let now = self.state.as_ref().and_then(State::started);
        now.or_else(|| self.last_state.as_ref().and_then(State::started))
    }
}

impl<'a> State<'a> {
    fn started(&self) -> Option<&Str<'a>> {
        let running = self.running.as_ref().map(|running| &running.started_at);
        running.or_else(|| self.terminated.as_ref().map(|ended| &ended.started_at))
    }

    fn run(self, names: &mut Names) -> RunState {
        if let Some(running) = self.running {
            RunState::Running(running.started_at.own())
        } else if let Some(ended) = self.terminated {
            RunState::Terminated(ended.reason.kept(names), ended.exit_code.unwrap_or_default())
        } else if let Some(waiting) = self.waiting {
            RunState::Waiting(waiting.reason.kept(names), waiting.message.kept(names))
        } else {
            RunState::Unreported
        }
    }
}

fn containers(
    kind: ContainerKind,
    specs: Option<Vec<Container<'_>>>,
    statuses: Option<Vec<ContainerStatus<'_>>>,
    names: &mut Names,
    into: &mut Vec<ContainerRecord>,
) {
    let mut statuses = statuses.unwrap_or_default();
    for spec in specs.unwrap_or_default() {
        let at = statuses.iter().position(|status| status.name == spec.name);
        let status = at.map(|at| statuses.swap_remove(at));
        into.push(ContainerRecord {
            kind,
            name: spec.name.kept(names),
            image: spec.image.kept(names),
            status_image: status.as_ref().map(|status| status.image.kept(names)).unwrap_or_default(),
            restarts: status.as_ref().and_then(|status| status.restart_count).unwrap_or_default(),
            ready: status.as_ref().and_then(|status| status.ready).unwrap_or_default(),
            started: status
                .as_ref()
                .and_then(ContainerStatus::started)
                .map(|started| started.kept(names))
                .unwrap_or_default(),
            is_sidecar: kind == ContainerKind::Init && spec.restart_policy.0 == "Always",
            written_policy: spec.image_pull_policy.kept(names),
            written_image_id: status.as_ref().map(|status| status.image_id.kept(names)).unwrap_or_default(),
            run: status.and_then(|status| status.state).map(|state| state.run(names)).unwrap_or_default(),
        });
    }
}

impl PodWire<'_> {
    /// The record.
    pub fn record(self, names: &mut Names) -> PodRecord {
        let metadata = self.metadata;
        let spec = self.spec.unwrap_or_default();
        let status = self.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let condition = |kind: &str, value: &str| {
            conditions.iter().find(|condition| condition.kind.0 == kind && condition.status.0 == value)
        };
        let owner = metadata.owner_references.unwrap_or_default().into_iter().find(|owner| {
            owner.controller == Some(true) && !owner.name.0.is_empty() && !owner.uid.0.is_empty()
        });
        let lists = [
            (ContainerKind::Init, spec.init_containers, status.init_container_statuses),
            (ContainerKind::Regular, spec.containers, status.container_statuses),
            (ContainerKind::Ephemeral, spec.ephemeral_containers, status.ephemeral_container_statuses),
        ];
        let mut all = Vec::new();
        for (kind, specs, statuses) in lists {
            containers(kind, specs, statuses, names, &mut all);
        }
        all.shrink_to_fit();
        let volumes = spec.volumes.unwrap_or_default().into_iter().filter_map(|volume| {
            let image = volume.image?;
            Some(ImageVolume {
                name: volume.name.kept(names),
                reference: image.reference.kept(names),
                written_policy: image.pull_policy.kept(names),
            })
        });
        let image_volumes = volumes.collect();
        PodRecord {
            namespace: metadata.namespace.kept(names),
            name: metadata.name.own(),
            uid: metadata.uid.own(),
            resource_version: metadata.resource_version.own(),
            created: metadata.creation_timestamp.own(),
            deleting: !metadata.deletion_timestamp.0.is_empty(),
            owner: owner.map(|owner| owner.record(names)),
            labels: metadata.labels.kept(names),
            annotations: metadata.annotations.kept(names),
            node: Some(spec.node_name).filter(|node| !node.0.is_empty()).map(|node| node.kept(names)),
            phase: status.phase.kept(names),
            reason: status.reason.kept(names),
            message: status.message.kept(names),
            ready: condition("Ready", "True").is_some(),
            unschedulable: condition("PodScheduled", "False").map(|condition| condition.message.kept(names)),
            restart_policy: spec.restart_policy.kept(names),
            service_account: spec.service_account_name.kept(names),
            pull_secrets: spec
                .image_pull_secrets
                .unwrap_or_default()
                .iter()
                .map(|secret| secret.name.kept(names))
                .collect(),
            containers: all,
            image_volumes,
        }
    }
}

impl Owner<'_> {
    fn record(&self, names: &mut Names) -> OwnerRecord {
        let (group, version) = self.api_version.0.split_once('/').unwrap_or(("", &self.api_version.0));
        OwnerRecord {
            group: names.keep(group),
            version: names.keep(version),
            kind: self.kind.kept(names),
            name: self.name.kept(names),
            uid: self.uid.kept(names),
        }
    }
}

impl PodRecord {
    /// The record of an object.
    ///
    /// # Errors
    /// When a field that is read has another type than the API gives it.
    pub fn of(object: &Value, names: &mut Names) -> Result<Self, serde_json::Error> {
        PodWire::deserialize(object).map(|wire| wire.record(names))
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        value(&self.labels, key)
    }

    /// An annotation, if it is one of those that are kept.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        value(&self.annotations, key)
    }

    /// Its regular containers.
    pub fn regular_containers(&self) -> impl Iterator<Item = &ContainerRecord> {
        self.containers.iter().filter(|container| container.kind == ContainerKind::Regular)
    }

    /// Is a container of it running, and nobody deleting it?
    pub fn is_running(&self) -> bool {
        !self.deleting
            && self.regular_containers().any(|container| matches!(container.run, RunState::Running(_)))
    }

    /// Is it static: made by a node's kubelet from a file, and only mirrored to the server?
    pub fn is_static(&self) -> bool {
        self.annotation("kubernetes.io/config.mirror").is_some()
            || self.annotation("kubernetes.io/config.source").is_some_and(|source| source != "api")
    }
}

/// The written policy, else what the API server's default makes of the image.
fn pull_policy(written: &str, image: &str) -> Option<PullPolicy> {
    match written {
        "" => Reference::parse(image).ok().map(|reference| PullPolicy::defaulted(&reference)),
        written => PullPolicy::parse(written).ok(),
    }
}

impl ContainerRecord {
    /// The written image, read.
    ///
    /// # Errors
    /// When it is no reference.
    pub fn reference(&self) -> Result<Reference, ReferenceError> {
        Reference::parse(&self.image)
    }

    /// The pull policy: the written one, else what the API server's default makes of the image.
    pub fn pull_policy(&self) -> Option<PullPolicy> {
        pull_policy(&self.written_policy, &self.image)
    }

    /// What the runtime says it runs. `None` before it has said anything.
    pub fn image_id(&self) -> Option<Result<ImageId, ImageIdError>> {
        Some(&*self.written_image_id).filter(|written| !written.is_empty()).map(ImageId::parse)
    }

    /// The same as it is written; empty before the runtime has said anything.
    pub fn written_image_id(&self) -> &Text {
        &self.written_image_id
    }

    /// What it is doing.
    pub fn state(&self) -> ContainerState<'_> {
        match &self.run {
            RunState::Unreported => ContainerState::Unreported,
            RunState::Waiting(reason, message) => ContainerState::Waiting { reason, message },
            RunState::Running(since) => ContainerState::Running { since },
            RunState::Terminated(reason, exit_code) => {
                ContainerState::Terminated { reason, exit_code: *exit_code }
            }
        }
    }

    /// Has it ever run?
    pub fn has_started(&self) -> bool {
        self.restarts > 0 || matches!(self.run, RunState::Running(_) | RunState::Terminated(..))
    }
}

impl ImageVolume {
    /// The pull policy: the written one, else what the API server's default makes of the image.
    pub fn pull_policy(&self) -> Option<PullPolicy> {
        pull_policy(&self.written_policy, &self.reference)
    }
}
