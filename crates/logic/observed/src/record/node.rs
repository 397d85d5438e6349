//! A node in few bytes.

use scantling_image::{Platform, PlatformError};
use serde::Deserialize;
use serde_json::Value;

use super::names::{Names, Text};
use super::wire::{Everything, Pairs, Str, value};

/// What decisions about images need of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its name.
    pub name: Text,
    /// Its uid; empty in files that were never in a cluster.
    pub uid: Text,
    /// The version that was read.
    pub resource_version: Text,
    /// Its labels, sorted by key.
    pub labels: Vec<(Text, Text)>,
    /// The images that its status shows, in its order: the largest, at most fifty by default. An image that is not here may be there.
    pub images: Vec<NodeImageRecord>,
    /// Whether its kubelet reports it ready.
    pub ready: bool,
    /// Whether new pods may be put on it.
    pub schedulable: bool,
    /// Whether it is short of disk. Such a node collects images and evicts pods.
    pub disk_pressure: bool,
    /// Its runtime, `containerd://2.1.4`; empty where it has not said so.
    pub runtime: Text,
    /// The version of its kubelet; empty where it has not said so.
    pub kubelet: Text,
    /// Its operating system as people say it, `Red Hat Enterprise Linux CoreOS 9.6`; empty where it has not said so.
    pub os_image: Text,
    /// When its kubelet sent this status (RFC 3339), so that its list of images is about as old; empty where it has not said so.
    pub reported: Text,
    operating_system: Text,
    architecture: Text,
}

/// An image of a node's store, as far as its status shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeImageRecord {
    /// Names with a digest or a tag. At most five are reported, digests first, so that a missing tag proves nothing.
    pub names: Box<[Text]>,
    /// Size in bytes.
    pub size_bytes: i64,
}

/// The fields of a node that a record is made from.
#[derive(Debug, Deserialize)]
pub struct NodeWire<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: Option<Spec>,
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow, default)]
    uid: Str<'a>,
    #[serde(borrow, default)]
    resource_version: Str<'a>,
    #[serde(borrow, default)]
    labels: Pairs<'a, Everything>,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    unschedulable: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow, default)]
    conditions: Option<Vec<Condition<'a>>>,
    #[serde(borrow, default)]
    images: Option<Vec<Image<'a>>>,
    #[serde(borrow, default)]
    node_info: Option<NodeInfo<'a>>,
}

#[derive(Debug, Deserialize)]
struct Condition<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default)]
    status: Str<'a>,
    #[serde(borrow, default, rename = "lastHeartbeatTime")]
    last_heartbeat_time: Str<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image<'a> {
    #[serde(borrow, default)]
    names: Option<Vec<Str<'a>>>,
    #[serde(default)]
    size_bytes: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfo<'a> {
    #[serde(borrow, default)]
    container_runtime_version: Str<'a>,
    #[serde(borrow, default)]
    kubelet_version: Str<'a>,
    #[serde(borrow, default)]
    os_image: Str<'a>,
    #[serde(borrow, default)]
    operating_system: Str<'a>,
    #[serde(borrow, default)]
    architecture: Str<'a>,
}

impl NodeWire<'_> {
    /// The record.
    pub fn record(self, names: &mut Names) -> NodeRecord {
        let status = self.status.unwrap_or_default();
        let info = status.node_info.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let holds = |kind: &str| conditions.iter().any(|c| c.kind.0 == kind && c.status.0 == "True");
        let images = status.images.unwrap_or_default().into_iter().map(|image| NodeImageRecord {
            names: image.names.unwrap_or_default().iter().map(|name| name.kept(names)).collect(),
            size_bytes: image.size_bytes.unwrap_or_default(),
        });
        NodeRecord {
            images: images.collect(),
            name: self.metadata.name.kept(names),
            uid: self.metadata.uid.own(),
            resource_version: self.metadata.resource_version.own(),
            labels: self.metadata.labels.kept(names),
            ready: holds("Ready"),
            schedulable: !self.spec.and_then(|spec| spec.unschedulable).unwrap_or_default(),
            disk_pressure: holds("DiskPressure"),
            runtime: info.container_runtime_version.kept(names),
            kubelet: info.kubelet_version.kept(names),
            os_image: info.os_image.kept(names),
            reported: conditions
                .iter()
                .find(|condition| condition.kind.0 == "Ready")
                .map(|condition| condition.last_heartbeat_time.kept(names))
                .unwrap_or_default(),
            operating_system: info.operating_system.kept(names),
            architecture: info.architecture.kept(names),
        }
    }
}

impl NodeRecord {
    /// The record of an object.
    ///
    /// # Errors
    /// When a field that is read has another type than the API gives it.
    pub fn of(object: &Value, names: &mut Names) -> Result<Self, serde_json::Error> {
        NodeWire::deserialize(object).map(|wire| wire.record(names))
    }

    /// Its platform.
    ///
    /// # Errors
    /// When it has said none.
    pub fn platform(&self) -> Result<Platform, PlatformError> {
        Platform::new(&self.operating_system, &self.architecture, None)
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        value(&self.labels, key)
    }
}
