//! What an admin does on a node itself, beside the API.

use scantling_api::ObjectKey;
use scantling_image::{ImageIdentity, Reference};

use crate::node::pull::{Progress, Pull};
use crate::node::{CachedImage, credentials, messages, object, puller};
use crate::queue::Controller;
use crate::trace::What;
use crate::value::text;
use crate::world::World;

/// Most requests that one pull can take: every layer, twice, at every endpoint.
const MAX_REQUESTS: u32 = 100_000;

/// Why an act on a node failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// There is no such node.
    #[error("node {0:?} does not exist in this world; its nodes are named in its configuration")]
    NoNode(String),
    /// The node has no such image.
    #[error("node {node:?} has no image {image:?} in its cache")]
    NoImage {
        /// The node.
        node: String,
        /// What was asked for.
        image: String,
    },
    /// The reference cannot be read.
    #[error("{reference:?} is no image reference: {reason}")]
    Reference {
        /// As written.
        reference: String,
        /// Why not.
        reason: String,
    },
    /// The image cannot be pulled.
    #[error("node {node:?} cannot pull: {message}")]
    Pull {
        /// The node.
        node: String,
        /// The runtime's message.
        message: String,
    },
}

impl World {
    /// The images in a node's cache, by config digest; empty for a node that does not exist.
    pub fn node_images(&self, node: &str) -> Vec<CachedImage> {
        let Some(node) = self.nodes.get(node) else { return Vec::new() };
        node.images
            .iter()
            .map(|image| CachedImage {
                names: image.tags.iter().cloned().collect(),
                digests: image.digests.iter().cloned().collect(),
                config: image.config.clone(),
                manifests: image.manifests.iter().cloned().collect(),
                size: image.size,
            })
            .collect()
    }

    /// The identity of a node's cached image that a text names: a reference as written, or the digest of an
    /// index, a manifest or a config.
    pub fn cached_identity(&self, node: &str, image: &str) -> Option<ImageIdentity> {
        let node = self.nodes.get(node)?;
        let image = node.images.get(&node.images.resolve(image)?)?;
        Some(ImageIdentity {
            index: std::collections::BTreeSet::new(),
            manifests: image.manifests.clone(),
            configs: std::iter::once(image.config.clone()).collect(),
        })
    }

    /// Removes an image with all its names from a node's cache, as `crictl rmi` does. `image` is a reference
    /// as written or a digest. Containers that run from it go on.
    pub fn remove_cached_image(&mut self, node: &str, image: &str) -> Result<(), NodeError> {
        self.with_image(node, image, |images, config| {
            images.remove(config);
        })
    }

    /// Removes one name from a node's cache, as `ctr images rm` does; the image goes with its last name.
    pub fn untag_cached_image(&mut self, node: &str, reference: &str) -> Result<(), NodeError> {
        let parsed = parse(reference)?;
        let name = crate::node::store::store_name(&parsed);
        self.with_image(node, reference, |images, _| {
            images.untag(&name);
        })
    }

    fn with_image(
        &mut self,
        name: &str,
        image: &str,
        act: impl FnOnce(&mut crate::node::store::ImageStore, &scantling_image::Digest),
    ) -> Result<(), NodeError> {
        let Some(mut node) = self.nodes.remove(name) else {
            return Err(NodeError::NoNode(name.to_owned()));
        };
        let found = node.images.resolve(image);
        if let Some(config) = &found {
            act(&mut node.images, config);
            let what = What::ImageRemoved { name: image.to_owned(), reason: "admin" };
            self.note("admin", what, Some(object::key(&node)));
            object::images_changed(self, &node);
        }
        self.nodes.insert(name.to_owned(), node);
        match found {
            Some(_) => Ok(()),
            None => Err(NodeError::NoImage { node: name.to_owned(), image: image.to_owned() }),
        }
    }

    /// Pulls an image into a node's cache now, without time passing, beside the kubelet: with the node's own
    /// credentials, and every pod may use it afterwards.
    pub fn preload(&mut self, name: &str, reference: &str) -> Result<(), NodeError> {
        let parsed = parse(reference)?;
        let keyring = credentials::of_node(self);
        let sources = credentials::sources(self, &parsed, &keyring);
        let Some(mut node) = self.nodes.remove(name) else {
            return Err(NodeError::NoNode(name.to_owned()));
        };
        let mut pull = Pull::new(parsed.clone(), node.config.platform.clone(), sources);
        let mut result = Err(NodeError::Pull { node: name.to_owned(), message: "too many requests".into() });
        for _ in 0..MAX_REQUESTS {
            match pull.step(&mut self.registry, &node.images, node.config.disk_bytes, 0) {
                Progress::Again(_) => {}
                Progress::Done(arrival, bytes) => {
                    puller::arrive(self, &mut node, &arrival, bytes, None, puller::By::Other);
                    result = Ok(());
                    break;
                }
                Progress::Failed(error) => {
                    let message = messages::pull_failure(self.flavour(), &parsed, &error);
                    result = Err(NodeError::Pull { node: name.to_owned(), message });
                    break;
                }
            }
        }
        self.nodes.insert(name.to_owned(), node);
        result
    }

    /// Lets the process of a running container end now, as a crash would. Says whether there was one.
    pub fn end_container(&mut self, pod: &ObjectKey, container: &str, code: i32) -> bool {
        let now = self.now();
        let found = self
            .nodes
            .values_mut()
            .filter_map(|node| node.pods.get_mut(pod))
            .filter_map(|pod| pod.containers.get_mut(container))
            .any(|container| container.end_soon(now, code));
        if found {
            let act = format!("container {container} ends with code {code}");
            self.note("admin", What::Outside { act }, Some(pod.clone()));
            self.wake(Controller::Kubelet, pod, now);
        }
        found
    }

    /// Switches a node's kubelet and network off or on. Off: nothing on it changes any more, and after forty
    /// seconds its condition Ready is `Unknown`.
    pub fn set_node_up(&mut self, name: &str, up: bool) -> Result<(), NodeError> {
        let Some(node) = self.nodes.get_mut(name) else { return Err(NodeError::NoNode(name.to_owned())) };
        if node.up == up {
            return Ok(());
        }
        node.up = up;
        let key = ObjectKey::cluster("", "Node", name);
        let act = if up { "node comes up" } else { "node goes down" };
        self.note("admin", What::Outside { act: act.to_owned() }, Some(key.clone()));
        if up {
            let now = self.now();
            self.wake(Controller::NodeStatus, &key, now);
            self.wake(Controller::Puller, &key, now);
            let pods: Vec<ObjectKey> = self
                .list("", "Pod", None)
                .into_iter()
                .filter(|(_, pod)| text(pod, "/spec/nodeName") == Some(name))
                .map(|(key, _)| key)
                .collect();
            for pod in pods {
                self.wake_soon(Controller::Kubelet, &pod);
            }
        } else {
            let at = self.now().plus_millis(crate::controllers::node_lifecycle::GRACE_MILLIS);
            self.wake(Controller::NodeLifecycle, &key, at);
        }
        Ok(())
    }
}

fn parse(reference: &str) -> Result<Reference, NodeError> {
    Reference::parse(reference)
        .map_err(|error| NodeError::Reference { reference: reference.to_owned(), reason: error.to_string() })
}
