//! Nodes: what a kubelet and its container runtime do, as far as images and pods' lives are concerned.

pub(crate) mod admin;
pub(crate) mod container;
pub(crate) mod credentials;
pub(crate) mod kubelet;
pub(crate) mod messages;
pub(crate) mod needs;
pub(crate) mod object;
pub(crate) mod process;
pub(crate) mod pull;
pub(crate) mod puller;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod store;

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_image::{Digest, Platform};

use container::PodRuntime;
use pull::Download;
use store::ImageStore;

/// A node as it is configured.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Its name, also its label `kubernetes.io/hostname`.
    pub name: String,
    /// What it runs.
    pub platform: Platform,
    /// The size of its image disk, in bytes.
    pub disk_bytes: u64,
    /// Labels beside the usual ones.
    pub labels: BTreeMap<String, String>,
    /// What it offers to pods (`cpu`, `memory`, `pods`, `nvidia.com/gpu` …), as quantities; what is not
    /// named has the defaults of [`NodeConfig::new`].
    pub allocatable: BTreeMap<String, String>,
}

impl NodeConfig {
    /// A node of usual size: 16 processors, 64 GiB of memory, 110 pods, 200 GiB of image disk.
    pub fn new(name: impl Into<String>, platform: Platform) -> Self {
        let allocatable =
            [("cpu", "16"), ("memory", "64Gi"), ("pods", "110"), ("ephemeral-storage", "200Gi")];
        Self {
            name: name.into(),
            platform,
            disk_bytes: 200 << 30,
            labels: BTreeMap::new(),
            allocatable: allocatable.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into(),
        }
    }
}

/// An image in a node's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedImage {
    /// Its names by tag, in full.
    pub names: Vec<String>,
    /// Its names by digest, in full.
    pub digests: Vec<String>,
    /// Its config digest, which is what makes it this image.
    pub config: Digest,
    /// Indexes and manifests that led to it.
    pub manifests: Vec<Digest>,
    /// Bytes of manifest, config and layers.
    pub size: u64,
}

/// Which container waits for a download.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DownloadKey {
    pub(crate) pod: ObjectKey,
    pub(crate) uid: String,
    pub(crate) container: String,
}

/// How a download ended.
#[derive(Debug, Clone)]
pub(crate) enum Downloaded {
    Image { config: Digest, asked: u64, pulled: u64, size: u64 },
    Failed { message: String },
}

/// A node at work.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: NodeConfig,
    pub(crate) images: ImageStore,
    pub(crate) pods: BTreeMap<ObjectKey, PodRuntime>,
    pub(crate) downloads: BTreeMap<DownloadKey, Download>,
    /// Downloads that wait for their turn, in order.
    pub(crate) waiting: Vec<DownloadKey>,
    pub(crate) finished: BTreeMap<DownloadKey, Downloaded>,
    /// Whether the kubelet runs and the network works.
    pub(crate) up: bool,
    /// Place in the configuration, from 1; addresses follow from it.
    pub(crate) number: u32,
    /// Addresses given to pods.
    pub(crate) addresses: u32,
}

impl Node {
    pub(crate) fn new(config: NodeConfig, number: u32) -> Self {
        Self {
            config,
            images: ImageStore::default(),
            pods: BTreeMap::new(),
            downloads: BTreeMap::new(),
            waiting: Vec::new(),
            finished: BTreeMap::new(),
            up: true,
            number,
            addresses: 0,
        }
    }

    /// The node's own address.
    pub(crate) fn address(&self) -> String {
        format!("10.0.{}.{}", self.number / 250, self.number % 250 + 1)
    }

    /// A fresh address for a pod.
    pub(crate) fn next_pod_address(&mut self) -> String {
        self.addresses += 1;
        let low = self.addresses % 250 + 1;
        let high = (self.addresses / 250 + self.number) % 250;
        format!("10.{}.{high}.{low}", 128 + self.number / 250 % 100)
    }

    /// Whether a container of any pod was made from this image and is not gone yet.
    pub(crate) fn uses(&self, config: &Digest) -> bool {
        self.pods
            .values()
            .flat_map(|pod| pod.containers.values())
            .any(|container| container.config.as_ref() == Some(config) && container.is_running())
    }
}
