//! What a cluster shows of pods, nodes and pulls, brought into one form.

use std::collections::BTreeMap;
use std::sync::Arc;

use scantling_api::{ObjectKey, object};
use scantling_image::{Digest, ImageId, Platform, PullPolicy};
use scantling_observed::{ContainerState, Node, Observed, Pod, View as _, unix_seconds};
use serde_json::Value;

use crate::part::Part;

/// Text that many pods share.
pub(crate) type Text = Arc<str>;

/// Longest chain of owners that is followed.
const MAX_CHAIN: usize = 8;
/// Mirror pods of static pods say here where they come from; what the API server made says `api`.
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// From this minor version on a kubelet asks for the credentials of images that it already has.
const CREDENTIALS_FROM_MINOR: u32 = 35;

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) pods: Vec<PodSeen>,
    pub(crate) nodes: Vec<NodeSeen>,
    pub(crate) pulls: Vec<PullSeen>,
    /// Time of the oldest event, by node: before that the cluster has forgotten.
    pub(crate) events_since: Option<i64>,
}

/// A pod.
#[derive(Debug)]
pub(crate) struct PodSeen {
    pub(crate) key: ObjectKey,
    pub(crate) resource_version: Text,
    /// What made it: the farthest owner, or itself.
    pub(crate) workload: ObjectKey,
    pub(crate) node: Option<usize>,
    /// Names of its pull secrets, sorted.
    pub(crate) secrets: Vec<Text>,
    pub(crate) containers: Vec<ContainerSeen>,
    pub(crate) deleting: bool,
    /// A file on the node, not the API, says what it is.
    pub(crate) is_static: bool,
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    Running,
    Ended,
    Waiting { reason: Text, message: Text },
    Unreported,
}

/// A container, or an image volume.
#[derive(Debug)]
pub(crate) struct ContainerSeen {
    pub(crate) part: Part,
    pub(crate) name: Text,
    pub(crate) image: Text,
    pub(crate) policy: Option<PullPolicy>,
    /// The digest in its image ID.
    pub(crate) digest: Option<Digest>,
    pub(crate) image_id: Text,
    /// The digest of the configuration, where the runtime shows it as the image's name.
    pub(crate) config: Option<Digest>,
    pub(crate) doing: Doing,
    pub(crate) started: Option<i64>,
    pub(crate) started_text: Text,
}

/// A node.
#[derive(Debug)]
pub(crate) struct NodeSeen {
    pub(crate) name: Text,
    pub(crate) resource_version: Text,
    pub(crate) platform: Option<Platform>,
    /// Names of each image in its list.
    pub(crate) images: Vec<Vec<Text>>,
    /// When it sent the list.
    pub(crate) reported: Option<i64>,
    pub(crate) reported_text: Text,
    /// An image that it has is there only for pods whose credentials it was pulled or checked with.
    pub(crate) asks_for_credentials: bool,
    pub(crate) schedulable: bool,
    pub(crate) labels: BTreeMap<String, String>,
}

/// What a kubelet did about an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pulling {
    /// It asked the registry and has it.
    Pulled,
    /// It had it.
    Present,
    /// It could not get it.
    Failed,
}

/// An event about an image.
#[derive(Debug)]
pub(crate) struct PullSeen {
    pub(crate) key: ObjectKey,
    pub(crate) resource_version: Text,
    pub(crate) at: i64,
    pub(crate) at_text: Text,
    pub(crate) node: Option<usize>,
    pub(crate) pod: (Text, Text),
    pub(crate) container: Text,
    pub(crate) image: Text,
    pub(crate) what: Pulling,
    pub(crate) message: Text,
}

impl Seen {
    /// Reads a cluster.
    pub(crate) fn of(observed: &Observed) -> Self {
        let mut texts = Texts::default();
        let mut nodes: Vec<NodeSeen> = observed.nodes().map(|node| node_of(node, &mut texts)).collect();
        let mut numbers: BTreeMap<Text, usize> =
            nodes.iter().enumerate().map(|(number, node)| (Arc::clone(&node.name), number)).collect();
        let mut pods = Vec::new();
        for pod in observed.pods() {
            // A node that pods name and that is not in the snapshot is a node all the same.
            if let Some(name) = pod.node()
                && !numbers.contains_key(name)
            {
                let name = texts.get(name);
                numbers.insert(Arc::clone(&name), nodes.len());
                nodes.push(NodeSeen::named(name, &mut texts));
            }
            let number = pod.node().and_then(|name| numbers.get(name)).copied();
            pods.push(pod_of(observed, pod, number, &mut texts));
        }
        let mut pulls = Vec::new();
        let mut events_since = None;
        for group in ["", "events.k8s.io"] {
            for (key, event) in observed.of_kind(group, "Event") {
                let Some((at, at_text)) = event_time(event) else { continue };
                events_since = Some(events_since.map_or(at, |oldest: i64| oldest.min(at)));
                pulls.extend(pull_of(key, event, (at, at_text), &numbers, &mut texts));
            }
        }
        pulls.sort_by(|a, b| (a.at, &a.key).cmp(&(b.at, &b.key)));
        Self { pods, nodes, pulls, events_since }
    }
}

impl NodeSeen {
    fn named(name: Text, texts: &mut Texts) -> Self {
        Self {
            name,
            resource_version: texts.get(""),
            platform: None,
            images: Vec::new(),
            reported: None,
            reported_text: texts.get(""),
            asks_for_credentials: false,
            schedulable: true,
            labels: BTreeMap::new(),
        }
    }
}

/// Each text once.
#[derive(Default)]
struct Texts(BTreeMap<Text, ()>);

impl Texts {
    fn get(&mut self, text: &str) -> Text {
        if let Some((known, ())) = self.0.get_key_value(text) {
            return Arc::clone(known);
        }
        let new: Text = Arc::from(text);
        self.0.insert(Arc::clone(&new), ());
        new
    }
}

fn node_of(node: Node<'_>, texts: &mut Texts) -> NodeSeen {
    let object = node.object();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let heartbeat = conditions
        .into_iter()
        .flatten()
        .find(|condition| object::text(condition, "/type") == "Ready")
        .map(|condition| object::text(condition, "/lastHeartbeatTime"))
        .unwrap_or_default();
    NodeSeen {
        name: texts.get(node.name()),
        resource_version: texts.get(object::resource_version(object)),
        platform: node.platform().ok(),
        images: node
            .images()
            .into_iter()
            .map(|image| image.names.into_iter().map(|name| texts.get(name)).collect())
            .collect(),
        reported: unix_seconds(heartbeat),
        reported_text: texts.get(heartbeat),
        asks_for_credentials: asks_for_credentials(
            object::text(object, "/status/nodeInfo/kubeletVersion"),
            object::text(object, "/status/nodeInfo/osImage"),
        ),
        schedulable: node.is_schedulable(),
        labels: object::labels(object).map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

/// Kubernetes 1.35 checks credentials of cached images by default; OpenShift has that as a technology preview, off.
fn asks_for_credentials(kubelet: &str, os: &str) -> bool {
    let mut parts = kubelet.trim_start_matches('v').split('.');
    let major = parts.next().and_then(|part| part.parse::<u32>().ok());
    let minor = parts.next().and_then(|part| part.parse::<u32>().ok());
    let is_new = match (major, minor) {
        (Some(1), Some(minor)) => minor >= CREDENTIALS_FROM_MINOR,
        (Some(major), _) => major > 1,
        _ => false,
    };
    is_new && !os.contains("CoreOS")
}

fn pod_of(observed: &Observed, pod: Pod<'_>, node: Option<usize>, texts: &mut Texts) -> PodSeen {
    let object = pod.object();
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let mut secrets: Vec<Text> =
        list("/spec/imagePullSecrets").map(|secret| texts.get(object::text(secret, "/name"))).collect();
    secrets.sort();
    let mut containers: Vec<ContainerSeen> = Vec::new();
    for (index, container) in pod.containers().into_iter().enumerate() {
        let list_of = format!("/status/{}", container.kind.status_field());
        let status = list(&list_of).find(|status| object::text(status, "/name") == container.name);
        let text = |pointer: &str| status.map(|status| object::text(status, pointer)).unwrap_or_default();
        let started = match text("/state/running/startedAt") {
            "" => text("/state/terminated/startedAt"),
            running => running,
        };
        let image_id = text("/imageID");
        let doing = match container.state() {
            ContainerState::Running { .. } => Doing::Running,
            ContainerState::Terminated { .. } => Doing::Ended,
            ContainerState::Waiting { reason, message } => {
                Doing::Waiting { reason: texts.get(reason), message: texts.get(message) }
            }
            ContainerState::Unreported => Doing::Unreported,
        };
        containers.push(ContainerSeen {
            part: Part::Container(container.kind, place_in_list(pod, index)),
            name: texts.get(container.name),
            image: texts.get(container.image),
            policy: container.pull_policy(),
            digest: ImageId::parse(image_id).ok().map(|id| id.digest().clone()),
            image_id: texts.get(image_id),
            config: config_of(text("/image"), image_id),
            doing,
            started: unix_seconds(started),
            started_text: texts.get(started),
        });
    }
    for (index, volume) in list("/spec/volumes").enumerate() {
        let image = object::text(volume, "/image/reference");
        if image.is_empty() {
            continue;
        }
        containers.push(ContainerSeen {
            part: Part::Volume(index),
            name: texts.get(object::text(volume, "/name")),
            image: texts.get(image),
            policy: Part::policy(object::text(volume, "/image/pullPolicy"), image),
            digest: None,
            image_id: texts.get(""),
            config: None,
            doing: Doing::Unreported,
            started: None,
            started_text: texts.get(""),
        });
    }
    PodSeen {
        key: pod.key(),
        resource_version: texts.get(object::resource_version(object)),
        workload: workload_of(observed, object).unwrap_or_else(|| pod.key()),
        node,
        secrets,
        containers,
        deleting: pod.is_being_deleted(),
        is_static: pod.annotation(CONFIG_SOURCE).is_some_and(|source| source != "api"),
    }
}

/// Where a container stands in its own list: the view gives the three lists one after the other.
fn place_in_list(pod: Pod<'_>, index: usize) -> usize {
    let kinds: Vec<_> = pod.containers().iter().map(|container| container.kind).collect();
    let own = kinds.get(index).copied();
    kinds.iter().take(index).filter(|kind| Some(**kind) == own).count()
}

/// The digest of the configuration, where a runtime shows it as the image: containerd and CRI-O do for an image without a name, and
/// for one that was asked for by digest. Docker's own store may show another digest there.
fn config_of(status_image: &str, image_id: &str) -> Option<Digest> {
    if image_id.starts_with("docker") || image_id.is_empty() {
        return None;
    }
    Digest::parse(status_image).ok()
}

/// The farthest owner of an object, by its key; an owner that is not in the snapshot is the last one known.
fn workload_of(observed: &Observed, object: &Value) -> Option<ObjectKey> {
    let mut key = None;
    let mut at = object;
    for _ in 0..MAX_CHAIN {
        let Some(owner) = object::controller(at) else { break };
        // A mirror pod is controlled by its node, which makes no pods.
        if owner.gvk.kind == "Node" && owner.gvk.group.is_empty() {
            break;
        }
        key = Some(ObjectKey {
            group: owner.gvk.group,
            kind: owner.gvk.kind,
            namespace: object::namespace(object).map(str::to_owned),
            name: owner.name,
        });
        match observed.controller_of(at) {
            Some(found) => {
                key = object::key(found).ok().or(key);
                at = found;
            }
            None => break,
        }
    }
    key
}

fn event_time(event: &Value) -> Option<(i64, &str)> {
    const FIELDS: [&str; 5] = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    FIELDS.iter().find_map(|field| {
        let text = object::text(event, field);
        Some((unix_seconds(text)?, text))
    })
}

fn pull_of(
    key: &ObjectKey,
    event: &Value,
    (at, at_text): (i64, &str),
    nodes: &BTreeMap<Text, usize>,
    texts: &mut Texts,
) -> Option<PullSeen> {
    let either = |one: &str, other: &str| match object::text(event, one) {
        "" => object::text(event, other).to_owned(),
        text => text.to_owned(),
    };
    let message = either("/message", "/note");
    let what = match object::text(event, "/reason") {
        "Pulled" if message.starts_with("Successfully pulled") => Pulling::Pulled,
        "Pulled" if message.contains("already present") => Pulling::Present,
        "Failed" if message.starts_with("Failed to pull image") => Pulling::Failed,
        _ => return None,
    };
    let image = message.split('"').nth(1)?;
    let field = either("/involvedObject/fieldPath", "/regarding/fieldPath");
    let container = field.split_once('{').and_then(|(_, name)| name.strip_suffix('}')).unwrap_or_default();
    let host = match object::text(event, "/source/host") {
        "" => either("/deprecatedSource/host", "/reportingInstance"),
        host => host.to_owned(),
    };
    Some(PullSeen {
        key: key.clone(),
        resource_version: texts.get(object::resource_version(event)),
        at,
        at_text: texts.get(at_text),
        node: nodes.get(host.as_str()).copied(),
        pod: (
            texts.get(&either("/involvedObject/namespace", "/regarding/namespace")),
            texts.get(&either("/involvedObject/name", "/regarding/name")),
        ),
        container: texts.get(container),
        image: texts.get(image),
        what,
        message: texts.get(&message),
    })
}
