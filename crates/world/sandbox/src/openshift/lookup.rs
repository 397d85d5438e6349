//! Short image names that mean an image stream of the pod's namespace (`lookupPolicy.local`).
//!
//! On a real cluster admission replaces them when the pod is created; here the scheduler does, before any
//! node sees the pod.

use scantling_image::Reference;
use serde_json::Value;

use crate::openshift::image_stream::{consumer_reference, stream_key};
use crate::value::{flag, list, namespace, text};
use crate::world::{Flavour, World};

/// The images of a pod that are replaced: JSON pointer and reference.
pub(crate) fn local_images(world: &World, pod: &Value) -> Vec<(String, String)> {
    if world.flavour() != Flavour::OpenShift {
        return Vec::new();
    }
    let mut found = Vec::new();
    for field in ["initContainers", "containers"] {
        for (place, container) in list(pod, &format!("/spec/{field}")).iter().enumerate() {
            let written = text(container, "/image").unwrap_or_default();
            if let Some(reference) = local_image(world, namespace(pod), written) {
                found.push((format!("/spec/{field}/{place}/image"), reference));
            }
        }
    }
    found
}

fn local_image(world: &World, namespace: &str, written: &str) -> Option<String> {
    let reference = Reference::parse(written).ok()?;
    if reference.domain().is_some() || reference.digest().is_some() || written.contains('/') {
        return None;
    }
    let tag = reference.effective_tag()?;
    let name = written.split(':').next()?;
    let stream = world.object(&stream_key(namespace, name))?;
    if !flag(stream, "/spec/lookupPolicy/local") {
        return None;
    }
    consumer_reference(world, namespace, &format!("{name}:{tag}"))
}
