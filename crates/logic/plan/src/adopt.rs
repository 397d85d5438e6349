//! Taking over an object that others have made.
//!
//! Server-side apply removes a field only when nobody but us owns it. An object that a script made with `kubectl apply`
//! would therefore keep every field that a later release drops. Before the first apply, the fields that are the
//! platform's own are handed over from their managers to ours; the rest, which is people's, stays with whoever owns it.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::object;
use scantling_merge::{FieldSet, Operation, Owner, Path, field_owners};
use serde_json::{Value, json};

use crate::object::MANAGER;
use crate::settled::settled;
use crate::value::Typed;

/// Managers of the cluster's own controllers: what they write is neither a user's nor a vendor's.
const CONTROLLERS: [&str; 8] = [
    "kube-controller-manager",
    "kube-scheduler",
    "kube-apiserver",
    "kubelet",
    "openshift-controller-manager",
    "openshift-apiserver",
    "image-registry",
    "cluster-policy-controller",
];

/// Whether a manager is a controller: one that is known, or one that writes the object's status. People and their tools
/// do not do that.
pub(crate) fn is_controller(owners: &[Owner], manager: &str) -> bool {
    let status = Path::fields(["status"]);
    CONTROLLERS.contains(&manager)
        || owners.iter().any(|o| {
            o.manager == manager && (o.subresource.as_deref() == Some("status") || o.fields.reaches(&status))
        })
}

/// Whether nobody but us and the cluster's controllers has written an object: then it was made by a request of ours, even
/// if its answer was lost.
pub fn is_only_ours(object: &Value) -> bool {
    let owners = field_owners(object);
    owners.iter().all(|owner| {
        owner.manager == MANAGER || owner.subresource.is_some() || is_controller(&owners, &owner.manager)
    })
}

/// Whether `managedFields` prove that an object came into being by an apply of ours: nobody else applies it, and our entry is
/// as old as the object, while no other writer's is. An entry becomes younger with every change, so that what this does not
/// prove may be ours all the same.
pub fn is_made_by_us(object: &Value) -> bool {
    let created = object::text(object, "/metadata/creationTimestamp");
    let owners = field_owners(object);
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let of_birth: Vec<&Value> = entries
        .into_iter()
        .flatten()
        .filter(|entry| !created.is_empty() && object::text(entry, "/time") == created)
        .filter(|entry| object::text(entry, "/subresource").is_empty())
        .collect();
    let ours = |entry: &&Value| {
        object::text(entry, "/manager") == MANAGER && object::text(entry, "/operation") == "Apply"
    };
    let others_apply = owners.iter().any(|o| o.operation == Operation::Apply && o.manager != MANAGER);
    !others_apply
        && of_birth.iter().any(ours)
        && of_birth.iter().all(|entry| ours(entry) || is_controller(&owners, object::text(entry, "/manager")))
}

/// Where client-side apply notes the whole object as it was applied.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager that client-side apply writes under, and nothing else does.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// What client-side apply last applied, from the note that it left on the object: the best base there is for an object
/// that was installed by other means. A note about another kind is none.
pub(crate) fn last_applied(live: &Value) -> Option<Value> {
    let note: Value =
        serde_json::from_str(live.pointer("/metadata/annotations")?.get(LAST_APPLIED)?.as_str()?).ok()?;
    let same = |field: &str| note.get(field) == live.get(field);
    (same("apiVersion") && same("kind")).then_some(note)
}

/// How an object is taken over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Adoption {
    /// The managers that hand over fields.
    pub(crate) managers: Vec<String>,
    /// `metadata.managedFields` after that.
    pub(crate) managed_fields: Value,
    /// Whether that is different from before.
    pub(crate) changed: bool,
}

/// Which fields become ours, and how `managedFields` says so. None if the object has no field owners at all.
///
/// A field is the platform's own if the previous release had it with the value that it still has, whoever wrote it; or,
/// if a legacy manager owns it, if it has the value that the new release wants (and the previous did not have it, or is
/// not known). What client-side apply owns though its own note lacks it is a default that the server filled in: nobody's
/// choice, and ours if the new release says anything of it. What a rule of the release keeps (`kept`) is not handed over: applying without a field that is ours would
/// remove it.
pub(crate) fn adopt(
    live: &Value,
    desired: &Value,
    typed: Typed<'_>,
    base: Option<&Value>,
    base_fields: &FieldSet,
    legacy_managers: &BTreeSet<String>,
    kept: &dyn Fn(&Path) -> bool,
) -> Option<Adoption> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let api_version = desired.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let untouched = |path: &Path| match (base.and_then(|b| typed.find(b, path)), typed.find(live, path)) {
        (Some(base), Some(live)) => base.is_null() || settled(live, base, None),
        _ => false,
    };
    let wanted = |path: &Path| match (typed.find(desired, path), typed.find(live, path)) {
        (Some(desired), Some(live)) => settled(live, desired, None),
        _ => false,
    };
    let note = last_applied(live);
    let filled_in = |path: &Path| {
        note.as_ref().is_some_and(|note| typed.find(note, path).is_none())
            && typed.find(desired, path).is_some()
    };
    // What controllers complete is theirs: they write it again.
    let all = field_owners(live);
    let mut given = FieldSet::new();
    let mut managers: BTreeSet<String> = BTreeSet::new();
    let mut remaining = Vec::new();
    for entry in entries {
        // One entry at a time: an entry that cannot be read stays as it is.
        let owner = field_owners(&json!({"metadata": {"managedFields": [entry]}})).into_iter().next();
        let Some(owner) = owner else {
            remaining.push(entry.clone());
            continue;
        };
        let same_version = entry.get("apiVersion").and_then(Value::as_str) == Some(api_version);
        if !same_version
            || owner.subresource.is_some()
            || owner.manager == MANAGER
            || is_controller(&all, &owner.manager)
        {
            remaining.push(entry.clone());
            continue;
        }
        let handed = handed_over(&owner, base_fields, &untouched, &|p| {
            let is_default = owner.manager == CLIENT_SIDE_APPLY && filled_in(p);
            (is_default || legacy_managers.contains(&owner.manager) && wanted(p)) && !kept(p)
        });
        if handed.is_empty() {
            remaining.push(entry.clone());
            continue;
        }
        let rest = owner.fields.difference(&handed);
        given = given.union(&handed);
        managers.insert(owner.manager.clone());
        if !rest.leaves().is_empty() {
            let mut entry = entry.clone();
            entry["fieldsV1"] = rest.to_fields_v1();
            remaining.push(entry);
        }
    }
    let changed = !given.is_empty();
    if changed {
        remaining.insert(
            0,
            json!({
                "manager": MANAGER, "operation": "Apply", "apiVersion": api_version,
                "fieldsType": "FieldsV1", "fieldsV1": given.to_fields_v1(),
            }),
        );
    }
    Some(Adoption {
        managers: managers.into_iter().collect(),
        managed_fields: Value::Array(remaining),
        changed,
    })
}

fn handed_over(
    owner: &Owner,
    base_fields: &FieldSet,
    untouched: &dyn Fn(&Path) -> bool,
    already_wanted: &dyn Fn(&Path) -> bool,
) -> FieldSet {
    let mut handed = FieldSet::new();
    let mut leaves: BTreeMap<Path, bool> = BTreeMap::new();
    for path in owner.fields.leaves().paths() {
        let in_base = base_fields.touches(&path);
        // The note of client-side apply goes with the adoption: it would soon tell old values.
        let note = path == Path::fields(["metadata", "annotations", LAST_APPLIED]);
        let platforms = note || if in_base { untouched(&path) } else { already_wanted(&path) };
        leaves.insert(path, platforms);
    }
    for path in owner.fields.paths() {
        let whole = leaves.get(&path).copied().unwrap_or_else(|| {
            // A container goes along when everything in it does.
            let below = || leaves.iter().filter(|(leaf, _)| leaf.0.starts_with(&path.0));
            below().next().is_some() && below().all(|(_, platforms)| *platforms)
        });
        if whole {
            handed.insert(&path);
        }
    }
    handed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_entry_as_old_as_the_object_proves_that_we_made_it() {
        let entry = |manager: &str, operation: &str, time: &str| {
            json!({
                "manager": manager, "operation": operation, "time": time, "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}},
            })
        };
        let (birth, later) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let ours = |time: &str| entry(MANAGER, "Apply", time);
        for (entries, made) in [
            (vec![ours(birth)], true),
            (vec![ours(birth), entry("kubectl-edit", "Update", later)], true),
            (vec![ours(later)], false),
            (vec![ours(birth), entry("helm", "Apply", later)], false),
            (vec![ours(birth), entry("kubectl-create", "Update", birth)], false),
            (vec![entry(MANAGER, "Update", birth)], false),
            (vec![], false),
        ] {
            let object = json!({"metadata": {"creationTimestamp": birth, "managedFields": entries}});
            assert_eq!(is_made_by_us(&object), made, "{object}");
        }
    }
}
