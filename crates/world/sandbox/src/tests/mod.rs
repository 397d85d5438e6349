//! Tests of the world as a whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod builds;
mod chaos;
mod determinism;
mod http;
mod lifecycle;
mod model;
mod pulls;
mod rollouts;
mod stale_tag;
mod streams;

use bytes::Bytes;
use scantling_api::ObjectKey;
use scantling_contents::{BuiltImage, ImageDescription};
use scantling_image::Platform;
use scantling_registry_server::{Pushed, RegistryServer};
use serde_json::{Value, json};

use crate::trace;
use crate::value::{list, text};
use crate::{Flavour, NodeConfig, Time, World, WorldConfig};

/// The registry of the tests.
pub(crate) const R: &str = "registry.example:5000";

/// An image whose only content is a text.
pub(crate) fn image(content: &str) -> BuiltImage {
    described(&json!({"layers": [{"files": {"/content": content}}]}))
}

pub(crate) fn described(description: &Value) -> BuiltImage {
    let description: ImageDescription = serde_json::from_value(description.clone()).unwrap();
    scantling_contents::build(&description, None).unwrap()
}

pub(crate) fn pushed(image: &BuiltImage) -> Pushed {
    Pushed {
        media_type: image.media_type.clone(),
        root: image.root.clone(),
        blobs: image
            .blobs
            .iter()
            .map(|(digest, (media_type, bytes))| {
                (digest.clone(), media_type.clone(), Bytes::from(bytes.clone()))
            })
            .collect(),
    }
}

/// Pushes an image and gives its digest.
pub(crate) fn push(registry: &mut RegistryServer, repository: &str, tag: &str, image: &BuiltImage) -> String {
    registry.push(R, repository, Some(tag), &pushed(image)).unwrap();
    image.root.to_string()
}

/// A world with so many nodes, called `node-1` and so on.
pub(crate) fn world_of(flavour: Flavour, nodes: usize, registry: RegistryServer) -> World {
    let mut config = WorldConfig::new(7, flavour);
    config.nodes = (1..=nodes)
        .map(|number| NodeConfig::new(format!("node-{number}"), Platform::linux_amd64()))
        .collect();
    World::new(config, registry)
}

impl World {
    /// Creates an object as a user.
    pub(crate) fn put(&mut self, object: Value) -> Value {
        match self.create("user", object) {
            Ok(object) => object,
            Err(status) => panic!("{status}"),
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, seconds: u64) {
        let until = self.now().plus_millis(seconds * 1000);
        self.run_until(until);
    }

    pub(crate) fn pod(&self, name: &str) -> Value {
        self.object(&pod_key(name)).cloned().unwrap_or_else(|| panic!("no pod {name}\n{}", self.story()))
    }

    /// The trace as text, for messages of tests.
    pub(crate) fn story(&self) -> String {
        trace::render(self.trace())
    }

    /// The messages of the events about an object with one of these reasons, in order.
    pub(crate) fn events_of(&self, name: &str, reasons: &[&str]) -> Vec<String> {
        let mut events: Vec<(String, String)> = self
            .list("", "Event", None)
            .into_iter()
            .filter(|(_, event)| text(event, "/involvedObject/name") == Some(name))
            .filter(|(_, event)| reasons.contains(&text(event, "/reason").unwrap_or_default()))
            .map(|(_, event)| {
                let version = text(event, "/metadata/resourceVersion").unwrap_or_default();
                (format!("{version:>12}"), text(event, "/message").unwrap_or_default().to_owned())
            })
            .collect();
        events.sort();
        events.into_iter().map(|(_, message)| message).collect()
    }

    pub(crate) fn delete_as_user(&mut self, key: &ObjectKey) {
        self.delete("user", key, None);
    }

    /// Names of the pods of the namespace that are not being deleted.
    pub(crate) fn pod_names(&self) -> Vec<String> {
        self.list("", "Pod", Some("default")).into_iter().map(|(key, _)| key.name).collect()
    }
}

pub(crate) fn pod_key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("", "Pod", "default", name)
}

/// A pod with one container.
pub(crate) fn pod(name: &str, image: &str, policy: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": image, "imagePullPolicy": policy}]},
    })
}

/// The first container's status.
pub(crate) fn status(pod: &Value) -> Value {
    list(pod, "/status/containerStatuses").first().cloned().unwrap_or(Value::Null)
}

/// A field of the first container's status.
pub(crate) fn field(pod: &Value, pointer: &str) -> String {
    text(&status(pod), pointer).unwrap_or_default().to_owned()
}

pub(crate) fn seconds(number: u64) -> Time {
    Time::from_secs(number)
}
