//! The rules of ownership: what an apply or an update does to everyone's fields, and what an apply removes.

use std::collections::BTreeMap;

use scantling_api::schema::TypeRef;
use serde_json::Value;

use crate::compare::{Comparison, compare};
use crate::error::{Conflict, MergeError};
use crate::extract::owned_fields;
use crate::managers::{ManagerId, Managers, Operation, Owned};
use crate::overlay::overlay;
use crate::path::Path;
use crate::reconcile::{reconcile, with_parents};
use crate::remove::remove;
use crate::request::{Request, at_version};
use crate::set::FieldSet;
use crate::validate::{Misfit, validate};

/// Fields of the object's identity, which no one owns.
fn identity_fields() -> FieldSet {
    let mut set = FieldSet::new();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&Path::fields([name]));
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert(&Path::fields(["metadata", name]));
    }
    set
}

/// The rules for one request.
pub(crate) struct Ownership<'a> {
    request: &'a Request<'a>,
    hidden: FieldSet,
    identity: FieldSet,
}

type Outcome<T> = Result<T, MergeError>;

fn invalid(what: &'static str) -> impl Fn(Misfit) -> MergeError {
    move |misfit| MergeError::Invalid { what, misfit }
}

impl<'a> Ownership<'a> {
    pub(crate) fn new(request: &'a Request<'a>) -> Self {
        Self { request, hidden: request.hidden(), identity: identity_fields() }
    }

    /// Tracks an update that turns `live` into `new`: the manager comes to own all it added or changed,
    /// and all others lose what it changed or removed.
    pub(crate) fn update(
        &self,
        live: &Value,
        new: &Value,
        managers: Managers,
        manager: &str,
        now: i64,
    ) -> Outcome<Managers> {
        let root = self.request.root();
        self.check("the new object", new, true)?;
        self.check("the live object", live, true)?;
        let mut managers = self.reconciled(live, managers)?;
        // Even the manager's own earlier entry is treated as someone else's, so that only a change of the
        // object counts as an update.
        let compared = self.settle(live, new, &root, &mut managers, None, true)?;
        let written = compared.written().recursive_difference(&self.hidden).difference(&self.identity);
        if !written.is_empty() {
            let id = self.id(manager, Operation::Update);
            let fields = match managers.owned.get(&id) {
                Some(previous) => written.union(&previous.fields),
                None => written,
            };
            let api_version = self.request.api_version.to_owned();
            managers.owned.insert(id.clone(), Owned { fields, api_version });
            managers.times.insert(id, now);
        }
        managers.cap_updaters();
        Ok(managers)
    }

    /// Applies `body` to `live`. The object is none if nothing changes.
    pub(crate) fn apply(
        &self,
        live: &Value,
        body: &Value,
        managers: Managers,
        force: bool,
        now: i64,
    ) -> Outcome<(Option<Value>, Managers)> {
        let root = self.request.root();
        self.check("the applied object", body, false)?;
        self.check("the live object", live, true)?;
        let mut managers = self.reconciled(live, managers)?;
        let merged = overlay(self.request.schema, Some(&root), Some(live), Some(body))
            .map_err(invalid("the merged object"))?
            .unwrap_or_else(|| self.request.identity());
        let id = self.id(self.request.manager, Operation::Apply);
        let fields = owned_fields(self.request.schema, Some(&root), body).recursive_difference(&self.hidden);
        let api_version = self.request.api_version.to_owned();
        let last = managers.owned.insert(id.clone(), Owned { fields, api_version });
        let new = self.prune(merged, &managers, last)?;
        self.settle(live, &new, &root, &mut managers, Some(&id), force)?;
        if let Some(owned) = managers.owned.get_mut(&id) {
            owned.fields = owned.fields.difference(&self.identity);
        }
        managers.drop_empty();
        if crate::value::equal(live, &new) {
            return Ok((None, managers));
        }
        managers.times.insert(id, now);
        Ok((Some(new), managers))
    }

    fn id(&self, manager: &str, operation: Operation) -> ManagerId {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        ManagerId::new(manager, operation, self.request.subresource.unwrap_or(""), self.request.api_version)
    }

    fn check(&self, what: &'static str, object: &Value, duplicates: bool) -> Outcome<()> {
        validate(self.request.schema, Some(&self.request.root()), object, duplicates).map_err(invalid(what))
    }

    /// `object` at another version, with its type; none if that version is not served.
    fn at<'v>(
        &self,
        object: &'v Value,
        api_version: &str,
    ) -> Outcome<Option<(std::borrow::Cow<'v, Value>, TypeRef)>> {
        let Some(root) = self.request.root_at(api_version) else { return Ok(None) };
        if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            return Ok(Some((std::borrow::Cow::Borrowed(object), root)));
        }
        let converted = at_version(object, api_version);
        validate(self.request.schema, Some(&root), &converted, false)
            .map_err(invalid("the object at an owner's version"))?;
        Ok(Some((std::borrow::Cow::Owned(converted), root)))
    }

    /// Entries whose version is still served, with fields that have become one value taken together.
    fn reconciled(&self, live: &Value, managers: Managers) -> Outcome<Managers> {
        let mut result = Managers { owned: BTreeMap::new(), times: managers.times };
        for (id, mut owned) in managers.owned {
            if let Some((_, root)) = self.at(live, &owned.api_version)? {
                owned.fields = reconcile(self.request.schema, &root, &owned.fields);
                result.owned.insert(id, owned);
            }
        }
        Ok(result)
    }

    /// Takes what changed between `old` and `new` away from everyone but `writer`; refuses changes of fields
    /// that others own unless forced. Gives the changes at the request's version.
    fn settle(
        &self,
        old: &Value,
        new: &Value,
        root: &TypeRef,
        managers: &mut Managers,
        writer: Option<&ManagerId>,
        force: bool,
    ) -> Outcome<Comparison> {
        let compare_at = |old: &Value, new: &Value, root: &TypeRef| {
            compare(self.request.schema, Some(root), old, new)
                .map(|compared| compared.without(&self.hidden))
                .map_err(invalid("the changed object"))
        };
        let mut versions = BTreeMap::new();
        versions.insert(self.request.api_version.to_owned(), compare_at(old, new, root)?);
        let mut conflicts: BTreeMap<ManagerId, FieldSet> = BTreeMap::new();
        let mut gone = Vec::new();
        for (id, owned) in &managers.owned {
            if Some(id) == writer {
                continue;
            }
            if !versions.contains_key(&owned.api_version) {
                let sides = (self.at(old, &owned.api_version)?, self.at(new, &owned.api_version)?);
                let (Some((old, root)), Some((new, _))) = sides else {
                    gone.push(id.clone());
                    continue;
                };
                versions.insert(owned.api_version.clone(), compare_at(&old, &new, &root)?);
            }
            let Some(compared) = versions.get(&owned.api_version) else { continue };
            let contested = owned.fields.intersection(&compared.written());
            if !contested.is_empty() {
                conflicts.insert(id.clone(), contested);
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(MergeError::Conflicts(conflicts_of(&conflicts)));
        }
        for id in gone {
            managers.owned.remove(&id);
        }
        for (id, owned) in &mut managers.owned {
            if Some(id) == writer {
                continue;
            }
            if let Some(contested) = conflicts.get(id) {
                owned.fields = owned.fields.difference(contested);
            }
            if let Some(compared) = versions.get(&owned.api_version) {
                owned.fields = owned.fields.difference(&compared.removed);
            }
        }
        managers.drop_empty();
        Ok(versions.remove(self.request.api_version).unwrap_or_default())
    }

    /// Removes from `merged` what the manager applied last time and not this time, unless someone owns it.
    fn prune(&self, merged: Value, managers: &Managers, last: Option<Owned>) -> Outcome<Value> {
        let schema = self.request.schema;
        let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return Ok(merged) };
        let Some((merged_then, root)) = self.at(&merged, &last.api_version)? else { return Ok(merged) };
        let last_fields = with_parents(schema, Some(&root), &last.fields);
        let mut pruned = remove(schema, Some(&root), merged_then.clone().into_owned(), &last_fields);

        let mut owned_at: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owned in managers.owned.values() {
            let fields = owned_at.entry(owned.api_version.as_str()).or_default();
            *fields = fields.union(&owned.fields);
        }
        // The version of the last apply goes first: others may not be able to do without what it has.
        let first = owned_at.remove_entry(last.api_version.as_str());
        for (version, owned) in first.into_iter().chain(owned_at) {
            let (Some((merged, root)), Some((rest, _))) =
                (self.at(&merged_then, version)?, self.at(&pruned, version)?)
            else {
                continue;
            };
            let t = Some(&root);
            let all = with_parents(schema, t, &owned_fields(schema, t, &merged));
            let kept = with_parents(schema, t, &owned_fields(schema, t, &rest));
            let owned = with_parents(schema, t, &owned);
            pruned = remove(schema, t, merged.into_owned(), &all.difference(&kept.union(&owned)));
        }

        // What the manager did not own before is not its to remove.
        let Some((pruned, root)) = self.at(&pruned, &last.api_version)? else { return Ok(merged) };
        let t = Some(&root);
        let kept = with_parents(schema, t, &owned_fields(schema, t, &pruned));
        let all = with_parents(schema, t, &owned_fields(schema, t, &merged_then));
        let dropped = all.difference(&kept).intersection(&last_fields);
        let result = remove(schema, t, merged_then.into_owned(), &dropped);
        Ok(match self.at(&result, self.request.api_version)? {
            Some((result, _)) => result.into_owned(),
            None => result,
        })
    }
}

fn conflicts_of(conflicts: &BTreeMap<ManagerId, FieldSet>) -> Vec<Conflict> {
    let mut list = Vec::new();
    for (id, fields) in conflicts {
        for field in fields.paths() {
            list.push(Conflict {
                manager: id.manager.clone(),
                field,
                using: (id.operation == Operation::Update).then(|| id.api_version.clone()),
                subresource: (!id.subresource.is_empty()).then(|| id.subresource.clone()),
            });
        }
    }
    list
}
