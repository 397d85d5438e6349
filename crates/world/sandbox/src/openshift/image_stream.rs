//! Image streams: tags that are imported, followed or pushed, with their history.
//!
//! A tag from a `DockerImage` is imported when it is new or what it is imported from has changed; a tag that
//! did not change is not imported again, whatever its origin says today (unless `importPolicy.scheduled`).
//! A failed import leaves the history and adds a condition `ImportSuccess=False`; it is not tried again
//! until the tag changes.

use scantling_api::ObjectKey;
use serde_json::{Map, Value, json};

use crate::openshift::{IMAGE, import, stream_tag};
use crate::queue::Controller;
use crate::trace::What;
use crate::value::{flag, int, list, name, namespace, nonempty, set, text, uid};
use crate::world::World;

/// The importer's field manager.
pub(crate) const ACTOR: &str = "image-import";
/// Most revisions of one tag that its history keeps.
const MAX_HISTORY: usize = 50;
/// How often a tag with `importPolicy.scheduled` is imported, in milliseconds.
const SCHEDULE_MILLIS: u64 = 15 * 60 * 1000;

/// The key of a stream.
pub(crate) fn stream_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(IMAGE, "ImageStream", namespace, name)
}

/// Splits `stream:tag` at the colon.
pub(crate) fn split_tag(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or((name, "latest"))
}

/// Looks at one stream.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(stream) = world.object(key).cloned() else { return };
    if crate::value::deleting(&stream) {
        return;
    }
    repository(world, key, &stream);
    let mut scheduled = false;
    for tag in list(&stream, "/spec/tags") {
        let tag_name = text(tag, "/name").unwrap_or_default();
        match text(tag, "/from/kind") {
            Some("DockerImage") => {
                scheduled |= flag(tag, "/importPolicy/scheduled");
                import_tag(world, key, &stream, tag, tag_name);
            }
            Some("ImageStreamTag" | "ImageStreamImage") => follow(world, key, &stream, tag, tag_name),
            _ => {}
        }
    }
    if scheduled {
        let at = world.now().plus_millis(SCHEDULE_MILLIS);
        world.wake(Controller::ImageStream, key, at);
    }
    stream_tag::refresh(world, key);
}

/// Where the stream is served in the cluster.
fn repository(world: &mut World, key: &ObjectKey, stream: &Value) {
    let Some(host) = world.config.internal_registry.clone() else { return };
    let path = format!("{host}/{}/{}", namespace(stream), name(stream));
    world.change_status(ACTOR, key, |object| {
        set(object, &["status"], "dockerImageRepository", json!(path));
    });
}

/// What decides whether a tag is imported again.
fn import_state(tag: &Value) -> Value {
    json!({
        "from": text(tag, "/from/name"),
        "mode": text(tag, "/importPolicy/importMode").unwrap_or("Legacy"),
        "insecure": flag(tag, "/importPolicy/insecure"),
        "reference": text(tag, "/referencePolicy/type").unwrap_or("Source"),
    })
}

fn import_tag(world: &mut World, key: &ObjectKey, stream: &Value, tag: &Value, tag_name: &str) {
    let identity = (uid(stream).to_owned(), tag_name.to_owned());
    let state = import_state(tag);
    let due = flag(tag, "/importPolicy/scheduled")
        && world.now().as_millis().is_multiple_of(SCHEDULE_MILLIS)
        && world.now().as_millis() > 0;
    if world.openshift.imported.get(&identity) == Some(&state) && !due {
        return;
    }
    world.openshift.imported.insert(identity, state);
    let generation = int(stream, "/metadata/generation").unwrap_or(1);
    import_now(world, key, tag, tag_name, generation);
}

/// Imports a tag, now.
pub(crate) fn import_now(world: &mut World, key: &ObjectKey, tag: &Value, tag_name: &str, generation: i64) {
    let from = text(tag, "/from/name").unwrap_or_default().to_owned();
    let namespace_name = key.namespace.clone().unwrap_or_default();
    let preserve = text(tag, "/importPolicy/importMode") == Some("PreserveOriginal");
    match import::import(world, &namespace_name, &key.name, tag_name, &from, preserve) {
        Ok(imported) => {
            let what = What::Imported { tag: tag_name.to_owned(), digest: imported.digest.to_string() };
            world.note(ACTOR, what, Some(key.clone()));
            let image = imported.digest.to_string();
            add_item(world, ACTOR, key, tag_name, &imported.reference, &image, generation);
        }
        Err(error) => {
            let what = What::ImportFailed { tag: tag_name.to_owned(), message: error.message.clone() };
            world.note(ACTOR, what, Some(key.clone()));
            let stamp = world.stamp_now();
            world.change_status(ACTOR, key, |object| {
                let entry = status_tag(object, tag_name);
                entry.insert(
                    "conditions".into(),
                    json!([{
                        "type": "ImportSuccess",
                        "status": "False",
                        "reason": error.reason,
                        "message": error.message,
                        "generation": generation,
                        "lastTransitionTime": stamp,
                    }]),
                );
            });
        }
    }
}

/// The entry of a tag in the status, made if it is missing.
fn status_tag<'a>(stream: &'a mut Value, tag_name: &str) -> &'a mut Map<String, Value> {
    let status = crate::value::object_mut(stream, &["status"]);
    let tags = status.entry("tags").or_insert_with(|| json!([]));
    if !tags.is_array() {
        *tags = json!([]);
    }
    let position = list(tags, "").iter().position(|tag| text(tag, "/tag") == Some(tag_name));
    let position = position.unwrap_or_else(|| {
        if let Some(tags) = tags.as_array_mut() {
            tags.push(json!({"tag": tag_name, "items": []}));
            tags.len() - 1
        } else {
            0
        }
    });
    crate::value::object_mut_at(tags, position)
}

/// Puts an image in front of a tag's history; the same image again only moves its generation.
pub(crate) fn add_item(
    world: &mut World,
    actor: &str,
    key: &ObjectKey,
    tag_name: &str,
    reference: &str,
    image: &str,
    generation: i64,
) -> bool {
    let stamp = world.stamp_now();
    world
        .change_status(actor, key, |object| {
            let entry = status_tag(object, tag_name);
            entry.remove("conditions");
            let mut items = entry.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            let same = items.first().is_some_and(|first| {
                text(first, "/image") == Some(image)
                    && text(first, "/dockerImageReference") == Some(reference)
            });
            if same {
                if let Some(first) = items.first_mut() {
                    set(first, &[], "generation", json!(generation));
                }
            } else {
                items.insert(
                    0,
                    json!({
                        "created": stamp,
                        "dockerImageReference": reference,
                        "image": image,
                        "generation": generation,
                    }),
                );
                items.truncate(MAX_HISTORY);
            }
            entry.insert("items".into(), Value::Array(items));
        })
        .is_some()
}

/// The newest item of a tag's history.
pub(crate) fn latest<'a>(stream: &'a Value, tag_name: &str) -> Option<&'a Value> {
    list(stream, "/status/tags")
        .iter()
        .find(|tag| text(tag, "/tag") == Some(tag_name))
        .and_then(|tag| list(tag, "/items").first())
}

/// Where a consumer in the cluster pulls a tag's newest image: from the registry in the cluster when the tag
/// says `Local` or was pushed there, else from its origin.
pub(crate) fn consumer_reference(world: &World, namespace_name: &str, name: &str) -> Option<String> {
    let (stream_name, tag_name) = split_tag(name);
    let stream = world.object(&stream_key(namespace_name, stream_name))?;
    let item = latest(stream, tag_name)?;
    let local = list(stream, "/spec/tags").iter().any(|tag| {
        text(tag, "/name") == Some(tag_name) && text(tag, "/referencePolicy/type") == Some("Local")
    });
    let image = text(item, "/image")?;
    match (&world.config.internal_registry, local) {
        (Some(host), true) => Some(format!("{host}/{namespace_name}/{stream_name}@{image}")),
        _ => text(item, "/dockerImageReference").map(ToOwned::to_owned),
    }
}

/// Whether a stream has a tag that follows another stream.
pub(crate) fn follows(stream: &Value, other: &ObjectKey) -> bool {
    list(stream, "/spec/tags").iter().any(|tag| {
        matches!(text(tag, "/from/kind"), Some("ImageStreamTag" | "ImageStreamImage"))
            && nonempty(tag, "/from/namespace").unwrap_or(namespace(stream))
                == other.namespace.as_deref().unwrap_or_default()
            && text(tag, "/from/name").is_some_and(|from| {
                from.split([':', '@']).next().is_some_and(|from| from == other.name)
                    || !from.contains([':', '@'])
            })
    })
}

/// A tag that takes its image from another stream's tag.
fn follow(world: &mut World, key: &ObjectKey, stream: &Value, tag: &Value, tag_name: &str) {
    let from = text(tag, "/from/name").unwrap_or_default();
    let from_namespace = nonempty(tag, "/from/namespace").unwrap_or(namespace(stream)).to_owned();
    let found = if let Some((stream_name, digest)) = from.split_once('@') {
        let host = world.config.internal_registry.clone().unwrap_or_default();
        Some((format!("{host}/{from_namespace}/{stream_name}@{digest}"), digest.to_owned()))
    } else {
        // A bare name is a tag of the stream itself.
        let (stream_name, other) = from.split_once(':').unwrap_or((&key.name, from));
        world
            .object(&stream_key(&from_namespace, stream_name))
            .and_then(|stream| latest(stream, other))
            .and_then(|item| {
                Some((text(item, "/dockerImageReference")?.to_owned(), text(item, "/image")?.to_owned()))
            })
    };
    let Some((reference, image)) = found else { return };
    let generation = int(stream, "/metadata/generation").unwrap_or(1);
    import::serve_local(world, &namespace_name(key), &key.name, tag_name, &reference);
    add_item(world, ACTOR, key, tag_name, &reference, &image, generation);
}

fn namespace_name(key: &ObjectKey) -> String {
    key.namespace.clone().unwrap_or_default()
}

/// The stream is gone: the registry in the cluster no longer serves it.
pub(crate) fn forget(world: &mut World, key: &ObjectKey, stream: &Value) {
    world.openshift.imported.retain(|(owner, _), _| owner != uid(stream));
    if let Some(host) = world.config.internal_registry.clone() {
        let repository = format!("{}/{}", namespace_name(key), key.name);
        let names: Vec<String> = world
            .registry
            .tags(&host, &repository)
            .flat_map(|(tag, digest)| [tag.to_owned(), digest.to_string()])
            .collect();
        let history = list(stream, "/status/tags")
            .iter()
            .flat_map(|tag| list(tag, "/items"))
            .filter_map(|item| text(item, "/image"))
            .map(ToOwned::to_owned);
        for name in names.into_iter().chain(history) {
            world.registry.remove(&host, &repository, &name);
        }
    }
    stream_tag::forget(world, key);
}
