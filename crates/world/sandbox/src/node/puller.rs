//! A node's downloads: whose turn it is, the next request of each, what becomes of the result.
//!
//! A kubelet pulls one image after the other (`serializeImagePulls`, the default), OpenShift's pulls side
//! by side.

use scantling_api::ObjectKey;
use scantling_image::Digest;

use crate::node::pull::Progress;
use crate::node::store::{Arrival, PullRecord};
use crate::node::{DownloadKey, Downloaded, Node, kubelet, messages, object};
use crate::queue::Controller;
use crate::trace::What;
use crate::world::{Flavour, World};

/// Most downloads of one node at once, on OpenShift.
const MAX_PARALLEL: usize = 16;

/// Who pulled an image.
#[derive(Debug, Clone)]
pub(crate) enum By {
    /// The kubelet for a pod, with a pod's credential (its hash) or without any.
    Kubelet(Option<Digest>),
    /// Someone beside the kubelet, which has no record of it.
    Other,
}

/// Makes the requests that are due on one node.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(mut node) = world.nodes.remove(&key.name) else { return };
    if node.up {
        run(world, &mut node, key);
    }
    world.nodes.insert(key.name.clone(), node);
}

fn run(world: &mut World, node: &mut Node, key: &ObjectKey) {
    let now = world.now();
    let limit = match world.flavour() {
        Flavour::Kubernetes => 1,
        Flavour::OpenShift => MAX_PARALLEL,
    };
    loop {
        let active = node.downloads.values().filter(|download| download.started.is_some()).count();
        if active < limit && !node.waiting.is_empty() {
            let next = node.waiting.remove(0);
            if let Some(download) = node.downloads.get_mut(&next) {
                download.started = Some(now);
                download.due = now;
            }
            continue;
        }
        let due = node
            .downloads
            .iter()
            .find(|(_, download)| download.started.is_some() && download.due <= now)
            .map(|(key, _)| key.clone());
        let Some(due) = due else { break };
        request(world, node, &due);
    }
    let next = node
        .downloads
        .values()
        .filter(|download| download.started.is_some())
        .map(|download| download.due)
        .min();
    if let Some(next) = next {
        world.wake(Controller::Puller, key, next);
    }
}

/// Makes one request of one download.
fn request(world: &mut World, node: &mut Node, key: &DownloadKey) {
    let now = world.now();
    let jitter = world.jitter(crate::node::pull::REQUEST_MILLIS);
    let Some(download) = node.downloads.get_mut(key) else { return };
    let progress = download.pull.step(&mut world.registry, &node.images, node.config.disk_bytes, jitter);
    let finished = match progress {
        Progress::Again(millis) => {
            download.due = now.plus_millis(millis.max(1));
            return;
        }
        Progress::Done(arrival, bytes) => {
            let asked = now.millis_since(download.asked);
            let pulled = now.millis_since(download.started.unwrap_or(download.asked));
            let by = By::Kubelet(download.pull.pods_login().map(super::credentials::hash));
            let config = arrival.config.clone();
            arrive(world, node, &arrival, bytes, Some(key.pod.clone()), by);
            let size = node.images.get(&config).map_or(0, |image| image.size);
            Downloaded::Image { config, asked, pulled, size }
        }
        Progress::Failed(error) => {
            let message = messages::pull_failure(world.flavour(), download.pull.reference(), &error);
            Downloaded::Failed { message }
        }
    };
    node.downloads.remove(key);
    node.finished.insert(key.clone(), finished);
    world.wake(Controller::Kubelet, &key.pod, now);
}

/// Takes an image in.
pub(crate) fn arrive(
    world: &mut World,
    node: &mut Node,
    arrival: &Arrival,
    bytes: u64,
    pod: Option<ObjectKey>,
    by: By,
) {
    let now = world.now();
    let actor = kubelet::actor(node);
    let moved = node.images.arrive(arrival, now);
    let what = What::Pulled {
        reference: arrival.reference.written().to_owned(),
        digest: arrival.root.to_string(),
        bytes,
    };
    world.note(&actor, what, pod.clone());
    if let Some((name, before)) = moved {
        let what = What::TagMoved { name, from: before.to_string(), to: arrival.config.to_string() };
        world.note(&actor, what, pod);
    }
    if let By::Kubelet(credential) = by
        && let Some(image) = node.images.get_mut(&arrival.config)
    {
        let record = image.record.get_or_insert_with(PullRecord::default);
        let repository = arrival.reference.name();
        match credential {
            None => {
                record.open.insert(repository);
            }
            Some(hash) => {
                record.credentials.entry(repository).or_default().insert(hash);
            }
        }
    }
    object::images_changed(world, node);
}
