//! What OpenShift adds: image streams with an importer and a registry in the cluster, builds, routes, and
//! mirror rules as objects.
//!
//! Builds make no pods here; a build takes its recipe's time and works with the registries itself.

pub(crate) mod build;
pub(crate) mod build_config;
pub(crate) mod image_stream;
pub(crate) mod import;
pub(crate) mod lookup;
pub(crate) mod requests;
pub(crate) mod route;
pub(crate) mod stream_tag;

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_endpoint::Mirrors;
use serde_json::Value;

use crate::queue::Controller;
use crate::store::{Change, ChangeKind};
use crate::time::Time;
use crate::trace::What;
use crate::world::World;

/// The group of image streams.
pub(crate) const IMAGE: &str = "image.openshift.io";
/// The group of builds.
pub(crate) const BUILD: &str = "build.openshift.io";
/// The group of routes.
pub(crate) const ROUTE: &str = "route.openshift.io";

/// What the importer remembers.
#[derive(Debug, Default)]
pub(crate) struct OpenShift {
    /// What each tag was last imported from, by the stream's uid and the tag.
    pub(crate) imported: BTreeMap<(String, String), Value>,
    /// When the present phase of each build ends.
    pub(crate) due: BTreeMap<ObjectKey, Time>,
}

/// Puts the work that follows from a change into the queue.
pub(crate) fn notice(world: &mut World, change: &Change) {
    let key = &change.key;
    match (key.group.as_str(), key.kind.as_str()) {
        (IMAGE, "ImageStream") => {
            if change.kind == ChangeKind::Deleted {
                image_stream::forget(world, key, &change.object);
                return;
            }
            world.wake_soon(Controller::ImageStream, key);
            let status = |object: &Value| object.pointer("/status/tags").cloned();
            if change.previous.as_ref().is_none_or(|previous| status(previous) != status(&change.object)) {
                wake_followers(world, key);
            }
        }
        (IMAGE, "ImageStreamTag") => stream_tag::notice(world, change),
        (BUILD, "BuildConfig") if change.kind != ChangeKind::Deleted => {
            world.wake_soon(Controller::BuildConfig, key);
        }
        (BUILD, "Build") => {
            if change.kind != ChangeKind::Deleted {
                world.wake_soon(Controller::Build, key);
            }
            if let Some((_, name, _)) = crate::value::controller_of(&change.object) {
                let namespace = key.namespace.as_deref().unwrap_or_default();
                let config = ObjectKey::namespaced(BUILD, "BuildConfig", namespace, name);
                world.wake_soon(Controller::BuildConfig, &config);
            }
        }
        (ROUTE, "Route") if change.kind != ChangeKind::Deleted => world.wake_soon(Controller::Route, key),
        ("config.openshift.io", "ImageDigestMirrorSet" | "ImageTagMirrorSet" | "Image")
        | ("operator.openshift.io", "ImageContentSourcePolicy") => gather_mirrors(world),
        _ => {}
    }
}

/// Whoever follows a stream's tags looks again: build configurations and other streams.
fn wake_followers(world: &mut World, stream: &ObjectKey) {
    let configs: Vec<ObjectKey> =
        world.list(BUILD, "BuildConfig", None).into_iter().map(|(key, _)| key).collect();
    for config in configs {
        world.wake_soon(Controller::BuildConfig, &config);
    }
    let streams: Vec<ObjectKey> = world
        .list(IMAGE, "ImageStream", None)
        .into_iter()
        .filter(|(key, object)| key != stream && image_stream::follows(object, stream))
        .map(|(key, _)| key)
        .collect();
    for other in streams {
        world.wake_soon(Controller::ImageStream, &other);
    }
}

/// Mirror rules are those of the configuration and those of the objects, at once on all nodes.
fn gather_mirrors(world: &mut World) {
    let mut mirrors: Mirrors = world.config.mirrors.clone();
    let mut refused = Vec::new();
    for (group, kind) in [
        ("config.openshift.io", "ImageDigestMirrorSet"),
        ("config.openshift.io", "ImageTagMirrorSet"),
        ("config.openshift.io", "Image"),
        ("operator.openshift.io", "ImageContentSourcePolicy"),
    ] {
        for (key, object) in world.list(group, kind, None) {
            if let Err(error) = mirrors.add_object(object) {
                refused.push((key, error.to_string()));
            }
        }
    }
    for (key, message) in refused {
        world.note("machine-config", What::Refused { verb: "update", message }, Some(key));
    }
    world.set_mirrors(mirrors);
}
