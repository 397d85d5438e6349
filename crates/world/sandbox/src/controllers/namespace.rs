//! Namespaces that are being deleted: everything in them goes first.

use scantling_api::ObjectKey;
use serde_json::json;

use crate::queue::Controller;
use crate::value::{deleting, set};
use crate::world::World;

const ACTOR: &str = "namespace-controller";
/// How long after one round the next looks whether the content is gone, in milliseconds.
const AGAIN_MILLIS: u64 = 5_000;

/// Looks at one namespace.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    // A namespace that is gone already leaves nothing behind either.
    if world.object(key).is_some_and(|namespace| !deleting(namespace)) {
        return;
    }
    let content: Vec<(ObjectKey, bool)> = world
        .objects()
        .filter(|(object, _)| object.namespace.as_deref() == Some(key.name.as_str()))
        .map(|(object, value)| (object.clone(), deleting(value)))
        .collect();
    // Events go last: what ends the others tells of them.
    let only_events = content.iter().all(|(object, _)| object.kind == "Event");
    for (object, deleting) in &content {
        if !deleting && (only_events || object.kind != "Event") {
            world.delete(ACTOR, object, None);
        }
    }
    if content.is_empty() {
        world
            .change_through(ACTOR, key, "finalize", |object| set(object, &["spec"], "finalizers", json!([])));
        if world.object(key).is_some() {
            world.delete(ACTOR, key, None);
        }
    } else {
        let at = world.now().plus_millis(AGAIN_MILLIS);
        world.wake(Controller::Namespace, key, at);
    }
}
