//! The garbage collector: objects whose owners are gone, and owners that wait for what they own.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::api::Propagation;
use crate::store::{Change, ChangeKind};
use crate::value::{deleting, flag, list, set, text, uid};
use crate::world::World;

const ACTOR: &str = "generic-garbage-collector";

/// Keeps the list of what each object owns.
pub(crate) fn remember(world: &mut World, change: &Change) {
    if let Some(previous) = &change.previous {
        for owner in owners(previous) {
            if let Some(keys) = world.dependents.get_mut(owner) {
                keys.remove(&change.key);
                if keys.is_empty() {
                    world.dependents.remove(owner);
                }
            }
        }
    }
    if change.kind == ChangeKind::Deleted {
        // The collector finds what the object owned by its uid, which only the change still has.
        let own = uid(&change.object).to_owned();
        if world.dependents.contains_key(&own) {
            world.orphans.insert((change.key.clone(), own));
        }
    } else {
        let owners: Vec<String> = owners(&change.object).map(ToOwned::to_owned).collect();
        for owner in owners {
            world.dependents.entry(owner).or_default().insert(change.key.clone());
        }
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "/metadata/ownerReferences").iter().filter_map(|owner| text(owner, "/uid"))
}

/// Looks at one object that is gone or is being deleted.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let gone: Vec<String> =
        world.orphans.iter().filter(|(owner, _)| owner == key).map(|(_, uid)| uid.clone()).collect();
    for owner in gone {
        world.orphans.remove(&(key.clone(), owner.clone()));
        collect(world, &owner);
    }
    if let Some(object) = world.object(key).cloned()
        && deleting(&object)
    {
        waiting(world, key, &object);
    }
    // An owner that waits in the foreground may have been waiting for this one.
    let owners: Vec<ObjectKey> = waiting_owners(world);
    for owner in owners {
        if let Some(object) = world.object(&owner).cloned() {
            waiting(world, &owner, &object);
        }
    }
}

/// Objects that are held by one of the collector's own finalizers.
fn waiting_owners(world: &World) -> Vec<ObjectKey> {
    world.held.iter().filter(|key| world.object(key).is_some_and(deleting)).cloned().collect()
}

/// Deletes what an owner that is gone has owned, unless another owner is left.
fn collect(world: &mut World, owner: &str) {
    let keys: Vec<ObjectKey> = world.dependents.get(owner).into_iter().flatten().cloned().collect();
    for key in keys {
        let Some(object) = world.object(&key).cloned() else { continue };
        let others = list(&object, "/metadata/ownerReferences")
            .iter()
            .filter(|reference| text(reference, "/uid") != Some(owner))
            .any(|reference| exists(world, &key, reference));
        if others {
            remove_owner(world, &key, owner);
        } else if !deleting(&object) {
            world.delete(ACTOR, &key, Some(Propagation::Background));
        }
    }
}

/// Whether the object that an owner reference names exists, with that uid.
fn exists(world: &World, dependent: &ObjectKey, reference: &Value) -> bool {
    let api_version = text(reference, "/apiVersion").unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = text(reference, "/kind").unwrap_or_default();
    let owner = text(reference, "/name").unwrap_or_default();
    let in_namespace =
        dependent.namespace.as_ref().map(|namespace| ObjectKey::namespaced(group, kind, namespace, owner));
    [in_namespace, Some(ObjectKey::cluster(group, kind, owner))]
        .into_iter()
        .flatten()
        .filter_map(|key| world.object(&key))
        .any(|object| Some(uid(object)) == text(reference, "/uid"))
}

fn remove_owner(world: &mut World, key: &ObjectKey, owner: &str) {
    world.change(ACTOR, key, |object| {
        let mut references = list(object, "/metadata/ownerReferences").to_vec();
        references.retain(|reference| text(reference, "/uid") != Some(owner));
        let references = if references.is_empty() { Value::Null } else { Value::Array(references) };
        set(object, &["metadata"], "ownerReferences", references);
    });
}

/// An object that is held by `foregroundDeletion` or `orphan`.
fn waiting(world: &mut World, key: &ObjectKey, object: &Value) {
    let has = |name: &str| list(object, "/metadata/finalizers").iter().any(|entry| entry == name);
    let own = uid(object).to_owned();
    let keys: Vec<ObjectKey> = world.dependents.get(&own).into_iter().flatten().cloned().collect();
    if has("orphan") {
        for dependent in keys {
            remove_owner(world, &dependent, &own);
        }
        finish(world, key, "orphan");
    } else if has("foregroundDeletion") {
        let mut blocked = false;
        for dependent in keys {
            let Some(object) = world.object(&dependent).cloned() else { continue };
            blocked |= list(&object, "/metadata/ownerReferences").iter().any(|reference| {
                text(reference, "/uid") == Some(own.as_str()) && flag(reference, "/blockOwnerDeletion")
            });
            if !deleting(&object) {
                world.delete(ACTOR, &dependent, Some(Propagation::Foreground));
            }
        }
        if blocked
            && world
                .dependents
                .get(&own)
                .into_iter()
                .flatten()
                .any(|dependent| world.object(dependent).is_some())
        {
            world.held.insert(key.clone());
        } else {
            finish(world, key, "foregroundDeletion");
        }
    }
}

fn finish(world: &mut World, key: &ObjectKey, finalizer: &str) {
    world.held.remove(key);
    world.change(ACTOR, key, |object| {
        let mut finalizers = list(object, "/metadata/finalizers").to_vec();
        finalizers.retain(|entry| entry != finalizer);
        let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
        set(object, &["metadata"], "finalizers", finalizers);
    });
}
