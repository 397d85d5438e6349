//! Whose a difference between two clusters is: a person's, the vendor's installer's, or the platform's.

use std::collections::BTreeSet;

use scantling_api::ObjectKey;
use scantling_merge::owner_of;

use crate::check;
use crate::compare::{self, Comparison, Objects, Segment};
use crate::scenario::ScenarioRelease;
use crate::stage::Stage;

/// Holds a cluster against a fresh one, and says of every difference whose it is. `kept` are fields that the run said it left
/// to their users.
pub(crate) fn compare_with(
    stage: &Stage<'_>,
    objects: &Objects,
    fresh: &Objects,
    release: &ScenarioRelease,
    kept: &BTreeSet<(ObjectKey, String)>,
) -> Comparison {
    let generated: BTreeSet<_> = check::generated_values(release).collect();
    let whose = |key: &ObjectKey| {
        // What is in somebody's project is theirs; what a notebook needs is its person's.
        let own = stage.people.get(key).cloned();
        own.or_else(|| {
            // A volume that was made for a claim is whose the claim is.
            let claim = || objects.get(key)?.pointer("/spec/claimRef/namespace")?.as_str();
            let namespace = key.namespace.as_deref().or_else(claim)?;
            let project = ObjectKey::cluster("", "Namespace", namespace);
            stage.people.get(&project).cloned()
        })
        .or_else(|| controller_owner(objects, stage, key))
    };
    let declared: BTreeSet<&ObjectKey> = release.release.objects.iter().map(|object| &object.key).collect();
    compare::compare(objects, fresh, &generated, |key, path, sides| match (path, whose(key)) {
        (None, Some(person)) => (person, sides.upgraded),
        // What only an installer keeps for itself is neither the release's nor anybody's to take away.
        (None, None) if stage.installed.contains(key) && !declared.contains(key) => {
            ("the vendor's installer".to_owned(), sides.upgraded)
        }
        (None, None) => ("nobody".to_owned(), false),
        (Some(path), person) => {
            let managers = objects.get(key).map(|object| owners(object, path)).unwrap_or_default();
            if managers.is_empty() {
                return ("nobody".to_owned(), false);
            }
            let names = managers.join(", ");
            // A field that a fresh install has is the platform's, unless the run said that it stays with its user.
            let stays = !sides.fresh || kept.contains(&(key.clone(), compare::field(path)));
            match person {
                Some(person) => (format!("{person} ({names})"), sides.upgraded && stays),
                None => (names, kept.contains(&(key.clone(), compare::field(path)))),
            }
        }
    })
}

/// The person who made the object that controls this one.
fn controller_owner(objects: &Objects, stage: &Stage<'_>, key: &ObjectKey) -> Option<String> {
    let object = objects.get(key)?;
    let owner = scantling_api::object::controller(object)?;
    let next = ObjectKey {
        group: owner.gvk.group.clone(),
        kind: owner.gvk.kind.clone(),
        namespace: key.namespace.clone(),
        name: owner.name,
    };
    stage.people.get(&next).cloned()
}

/// The managers of a field.
fn owners(object: &serde_json::Value, path: &[Segment]) -> Vec<String> {
    compare::field(path).parse().map(|path| owner_of(object, &path)).unwrap_or_default()
}
