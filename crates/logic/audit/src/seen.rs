//! What a cluster shows of pods, nodes and pulls, brought into one form.

use std::collections::BTreeMap;

use scantling_api::{ObjectKey, object};
use scantling_image::{Digest, ImageId, Platform, PullPolicy, Reference};
use scantling_observed::{
    ContainerRecord, ContainerState, Names, NodeImageRecord, NodeRecord, Observed, PodRecord, unix_seconds,
};
use serde_json::Value;

pub(crate) use scantling_observed::Text;

use crate::part::Part;

/// From this minor version on a kubelet asks for the credentials of images that it already has.
const CREDENTIALS_FROM_MINOR: u32 = 35;

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) pods: Vec<PodSeen>,
    pub(crate) nodes: Vec<NodeSeen>,
    pub(crate) pulls: Vec<PullSeen>,
    /// Time of the oldest event: before that the cluster has forgotten.
    pub(crate) events_since: Option<i64>,
    /// What could not be read, each with the reason.
    pub(crate) unread: Vec<String>,
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
    /// It has ended and is not started again.
    pub(crate) ended: bool,
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
    /// The repository in its image ID, with its registry.
    pub(crate) repository: Option<String>,
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
    pub(crate) images: Vec<NodeImageRecord>,
    /// When it sent the list.
    pub(crate) reported: Option<i64>,
    pub(crate) reported_text: Text,
    /// An image that it has is there only for pods whose credentials it was pulled or checked with.
    pub(crate) asks_for_credentials: bool,
    pub(crate) schedulable: bool,
    /// The snapshot has the node itself, not only pods that name it.
    pub(crate) is_here: bool,
    pub(crate) labels: Vec<(Text, Text)>,
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

impl PullSeen {
    /// Is it about this container of its pod? An event that names none is about each of them.
    pub(crate) fn is_about(&self, container: &str) -> bool {
        self.container.is_empty() || *self.container == *container
    }
}

impl Seen {
    /// Reads a cluster.
    pub(crate) fn of(observed: &Observed) -> Self {
        let mut names = Names::new();
        let mut seen = Self::default();
        for node in observed.node_records() {
            match node {
                Ok(node) => seen.nodes.push(node_of(&node)),
                Err(error) => seen.unread.push(error.to_string()),
            }
        }
        let mut numbers: BTreeMap<Text, usize> =
            seen.nodes.iter().enumerate().map(|(number, node)| (node.name.clone(), number)).collect();
        for pod in observed.pod_records() {
            let pod = match pod {
                Ok(pod) => pod,
                Err(error) => {
                    seen.unread.push(error.to_string());
                    continue;
                }
            };
            // A node that pods name and that is not in the snapshot is a node all the same.
            if let Some(name) = &pod.node
                && !numbers.contains_key(name)
            {
                numbers.insert(name.clone(), seen.nodes.len());
                seen.nodes.push(NodeSeen::named(name.clone()));
            }
            let number = pod.node.as_ref().and_then(|name| numbers.get(name)).copied();
            seen.pods.push(pod_of(observed, &pod, number));
        }
        for group in ["", "events.k8s.io"] {
            for (key, event) in observed.of_kind(group, "Event") {
                let Some((at, at_text)) = event_time(event) else { continue };
                seen.events_since = Some(seen.events_since.map_or(at, |oldest| oldest.min(at)));
                seen.pulls.extend(pull_of(key, event, (at, at_text), &numbers, &mut names));
            }
        }
        seen.pulls.sort_by(|a, b| (a.at, &a.key).cmp(&(b.at, &b.key)));
        seen
    }
}

impl NodeSeen {
    fn named(name: Text) -> Self {
        Self {
            name,
            resource_version: Text::default(),
            platform: None,
            images: Vec::new(),
            reported: None,
            reported_text: Text::default(),
            asks_for_credentials: false,
            schedulable: true,
            is_here: false,
            labels: Vec::new(),
        }
    }
}

fn node_of(node: &NodeRecord) -> NodeSeen {
    NodeSeen {
        name: node.name.clone(),
        resource_version: node.resource_version.clone(),
        platform: node.platform().ok(),
        images: node.images.clone(),
        reported: unix_seconds(&node.reported),
        reported_text: node.reported.clone(),
        asks_for_credentials: asks_for_credentials(&node.kubelet, &node.os_image),
        schedulable: node.schedulable,
        is_here: true,
        labels: node.labels.clone(),
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

fn pod_of(observed: &Observed, pod: &PodRecord, node: Option<usize>) -> PodSeen {
    let mut secrets = pod.pull_secrets.clone();
    secrets.sort();
    let mut containers: Vec<ContainerSeen> = Vec::with_capacity(pod.containers.len());
    for container in &pod.containers {
        let own = containers.iter().filter(|before| before.part.is_of(container.kind)).count();
        containers.push(container_of(container, own));
    }
    containers.extend(pod.image_volumes.iter().enumerate().map(|(index, volume)| ContainerSeen {
        part: Part::Volume(index),
        name: volume.name.clone(),
        image: volume.reference.clone(),
        policy: volume.pull_policy(),
        digest: None,
        image_id: Text::default(),
        repository: None,
        config: None,
        doing: Doing::Unreported,
        started: None,
        started_text: Text::default(),
    }));
    let key = ObjectKey {
        group: String::new(),
        kind: "Pod".to_owned(),
        namespace: Some(pod.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
        name: pod.name.to_string(),
    };
    PodSeen {
        workload: workload_of(observed, pod).unwrap_or_else(|| key.clone()),
        key,
        resource_version: pod.resource_version.clone(),
        node,
        secrets,
        containers,
        deleting: pod.deleting,
        ended: matches!(&*pod.phase, "Succeeded" | "Failed"),
        is_static: pod.is_static(),
    }
}

fn container_of(container: &ContainerRecord, index: usize) -> ContainerSeen {
    let image_id = container.written_image_id();
    let parsed = ImageId::parse(image_id).ok();
    ContainerSeen {
        part: Part::Container(container.kind, index),
        name: container.name.clone(),
        image: container.image.clone(),
        policy: container.pull_policy(),
        repository: parsed.as_ref().and_then(|id| id.reference().map(Reference::name)),
        digest: parsed.map(|id| id.digest().clone()),
        image_id: image_id.clone(),
        config: config_of(&container.status_image, image_id),
        doing: match container.state() {
            ContainerState::Running { .. } => Doing::Running,
            ContainerState::Terminated { .. } => Doing::Ended,
            ContainerState::Waiting { reason, message } => {
                Doing::Waiting { reason: Text::from(reason), message: Text::from(message) }
            }
            ContainerState::Unreported => Doing::Unreported,
        },
        started: unix_seconds(&container.started),
        started_text: container.started.clone(),
    }
}

/// The digest of the configuration, where a runtime shows it as the image: containerd and CRI-O do for an image without a name, and
/// for one that was asked for by digest. Docker's own store may show another digest there.
fn config_of(status_image: &str, image_id: &str) -> Option<Digest> {
    if image_id.starts_with("docker") || image_id.is_empty() {
        return None;
    }
    Digest::parse(status_image).ok()
}

/// The farthest owner of a pod, by its key; an owner that is not in the snapshot is the last one known.
fn workload_of(observed: &Observed, pod: &PodRecord) -> Option<ObjectKey> {
    let owner = pod.owner.as_ref()?;
    // A mirror pod is controlled by its node, which makes no pods.
    if &*owner.kind == "Node" && owner.group.is_empty() {
        return None;
    }
    let here = |group: &str, kind: &str, name: &str| ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: Some(pod.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
        name: name.to_owned(),
    };
    let Some(found) = observed.workload_of_record(pod) else {
        return Some(here(&owner.group, &owner.kind, &owner.name));
    };
    match object::controller(found) {
        Some(missing) => Some(here(&missing.gvk.group, &missing.gvk.kind, &missing.name)),
        None => object::key(found).ok(),
    }
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
    names: &mut Names,
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
        resource_version: names.keep(object::resource_version(event)),
        at,
        at_text: names.keep(at_text),
        node: nodes.get(host.as_str()).copied(),
        pod: (
            names.keep(&either("/involvedObject/namespace", "/regarding/namespace")),
            names.keep(&either("/involvedObject/name", "/regarding/name")),
        ),
        container: names.keep(container),
        image: names.keep(image),
        what,
        message: names.keep(&message),
    })
}
