//! `ImageStreamTag` objects: one for each tag of a stream, as the API shows them. The real API makes them up
//! when asked; here they are kept beside the stream, and what is done to them is done to the stream.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::openshift::IMAGE;
use crate::openshift::image_stream::{ACTOR, latest, split_tag, stream_key};
use crate::store::{Change, ChangeKind};
use crate::value::{list, name, namespace, set, text};
use crate::world::World;

fn tag_key(namespace: &str, stream: &str, tag: &str) -> ObjectKey {
    ObjectKey::namespaced(IMAGE, "ImageStreamTag", namespace, format!("{stream}:{tag}"))
}

/// Brings the tags of one stream up to date.
pub(crate) fn refresh(world: &mut World, key: &ObjectKey) {
    let Some(stream) = world.object(key).cloned() else { return };
    let space = namespace(&stream);
    let tags: Vec<&str> = list(&stream, "/status/tags").iter().filter_map(|tag| text(tag, "/tag")).collect();
    for tag in &tags {
        let Some(item) = latest(&stream, tag) else { continue };
        let spec = list(&stream, "/spec/tags").iter().find(|spec| text(spec, "/name") == Some(tag)).cloned();
        let image = json!({
            "metadata": {"name": text(item, "/image")},
            "dockerImageReference": text(item, "/dockerImageReference"),
        });
        let object_key = tag_key(space, name(&stream), tag);
        if world.object(&object_key).is_none() {
            let object = json!({
                "apiVersion": "image.openshift.io/v1",
                "kind": "ImageStreamTag",
                "metadata": {"name": object_key.name, "namespace": space},
                "tag": spec,
                "image": image,
                "generation": item.get("generation"),
                "lookupPolicy": {"local": crate::value::flag(&stream, "/spec/lookupPolicy/local")},
            });
            let _ = world.create(ACTOR, object);
            continue;
        }
        world.change(ACTOR, &object_key, |object| {
            set(object, &[], "tag", spec.unwrap_or(Value::Null));
            set(object, &[], "image", image);
            set(object, &[], "generation", item.get("generation").cloned().unwrap_or(Value::Null));
        });
    }
    for object_key in of_stream(world, space, name(&stream)) {
        let (_, tag) = split_tag(&object_key.name);
        if latest(&stream, tag).is_none() {
            world.delete(ACTOR, &object_key, None);
        }
    }
}

fn of_stream(world: &World, namespace: &str, stream: &str) -> Vec<ObjectKey> {
    world
        .list(IMAGE, "ImageStreamTag", Some(namespace))
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| split_tag(&key.name).0 == stream)
        .collect()
}

/// The stream is gone, and its tags with it.
pub(crate) fn forget(world: &mut World, stream: &ObjectKey) {
    for key in of_stream(world, stream.namespace.as_deref().unwrap_or_default(), &stream.name) {
        world.delete(ACTOR, &key, None);
    }
}

/// What someone did to a tag is done to its stream.
pub(crate) fn notice(world: &mut World, change: &Change) {
    let space = change.key.namespace.clone().unwrap_or_default();
    let (stream_name, tag) = split_tag(&change.key.name);
    let key = stream_key(&space, stream_name);
    match change.kind {
        ChangeKind::Deleted => {
            let present = world.object(&key).is_some_and(|stream| latest(stream, tag).is_some());
            if !present {
                return;
            }
            world.change(ACTOR, &key, |stream| {
                if let Some(tags) = stream.pointer_mut("/spec/tags").and_then(Value::as_array_mut) {
                    tags.retain(|spec| text(spec, "/name") != Some(tag));
                }
            });
            world.change_status(ACTOR, &key, |stream| {
                if let Some(tags) = stream.pointer_mut("/status/tags").and_then(Value::as_array_mut) {
                    tags.retain(|status| text(status, "/tag") != Some(tag));
                }
            });
            if let Some(host) = world.config.internal_registry.clone() {
                world.registry.remove(&host, &format!("{space}/{stream_name}"), tag);
            }
        }
        ChangeKind::Added | ChangeKind::Modified => {
            let Some(wanted) = change.object.get("tag").filter(|tag| tag.get("from").is_some()).cloned()
            else {
                return;
            };
            let known = world.object(&key).is_some_and(|stream| {
                list(stream, "/spec/tags")
                    .iter()
                    .any(|spec| text(spec, "/name") == Some(tag) && spec.get("from") == wanted.get("from"))
            });
            if known {
                return;
            }
            world.change(ACTOR, &key, |stream| {
                let mut tags = list(stream, "/spec/tags").to_vec();
                tags.retain(|spec| text(spec, "/name") != Some(tag));
                let mut wanted = wanted;
                set(&mut wanted, &[], "name", json!(tag));
                tags.push(wanted);
                set(stream, &["spec"], "tags", Value::Array(tags));
            });
        }
    }
}
