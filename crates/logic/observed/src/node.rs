//! Nodes and the images that they say they have.

use scantling_api::object;
use scantling_image::{Platform, PlatformError};
use serde_json::Value;

use crate::view::{View as _, field, items, view};

view!(
    /// A node.
    Node, "", "Node"
);

/// An image of a node's store, as far as its status shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeImage<'a> {
    /// Names with a digest or a tag. At most five are reported, digests first, so that a missing tag proves nothing.
    pub names: Vec<&'a str>,
    /// Size in bytes.
    pub size_bytes: i64,
}

impl<'a> Node<'a> {
    /// Its platform, from `nodeInfo`.
    pub fn platform(self) -> Result<Platform, PlatformError> {
        let text = |name: &str| object::text(self.object(), &format!("/status/nodeInfo/{name}"));
        Platform::new(text("operatingSystem"), text("architecture"), None)
    }

    /// The images that its status shows: the largest, at most fifty by default. An image that is not here may be there.
    pub fn images(self) -> Vec<NodeImage<'a>> {
        items(self.object(), "/status/images")
            .map(|image| NodeImage {
                names: items(image, "/names").filter_map(Value::as_str).collect(),
                size_bytes: image.get("sizeBytes").and_then(Value::as_i64).unwrap_or_default(),
            })
            .collect()
    }

    /// Does its kubelet report it ready?
    pub fn is_ready(self) -> bool {
        items(self.object(), "/status/conditions")
            .any(|condition| field(condition, "type") == "Ready" && field(condition, "status") == "True")
    }

    /// May new pods be put on it?
    pub fn is_schedulable(self) -> bool {
        !self.object().pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or_default()
    }

    /// Is it short of disk? Such a node collects images and evicts pods.
    pub fn has_disk_pressure(self) -> bool {
        items(self.object(), "/status/conditions").any(|condition| {
            field(condition, "type") == "DiskPressure" && field(condition, "status") == "True"
        })
    }
}
