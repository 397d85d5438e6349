//! The write path: what happens to an object between a request and the store.
//!
//! The order is that of a real server: defaults, ownership of fields, admission, metadata of the server, validation,
//! store. Applied objects get their ownership first and their defaults after, so nobody owns those.

use std::sync::Arc;

use scantling_api::{KindFacts, ObjectKey, object};
use scantling_merge::{MergeError, Request};
use serde_json::{Value, json};

use super::meta::{self, metadata};
use super::{ApiServer, Cause, Moment, Status, admission, custom, defaults, immutable, patch, validate};

/// How often a generated name is tried anew when it is taken, as the real server does.
const NAME_ATTEMPTS: usize = 8;
/// Random characters after a `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// Longest base of a generated name: 63 characters less the suffix.
const MAX_GENERATED_BASE: usize = 58;

/// What to do about fields that a kind does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Nothing.
    Ignore,
    /// Warn.
    #[default]
    Warn,
    /// Refuse.
    Strict,
}

/// Who writes, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Field manager.
    pub(crate) manager: String,
    /// Everything but the storing.
    pub(crate) dry_run: bool,
    /// What to do about unknown fields.
    pub(crate) validation: FieldValidation,
    /// Apply takes over the fields that others own.
    pub(crate) force: bool,
    /// The object comes from an apply: its ownership is settled.
    pub(crate) applied: bool,
}

impl Options {
    /// A plain write by a manager.
    pub(crate) fn by(manager: &str) -> Self {
        Self { manager: manager.to_owned(), ..Self::default() }
    }
}

impl ApiServer {
    /// The object that is stored now.
    pub(super) fn live(&self, facts: &KindFacts, key: &ObjectKey) -> Result<Arc<Value>, Status> {
        self.store.get_shared(key).cloned().ok_or_else(|| Status::not_found(facts, &key.name))
    }

    /// Creates an object in a namespace (that of the request, for a kind that has one).
    pub(super) fn create_object(
        &mut self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        namespace: Option<&str>,
        mut object: Value,
        options: &Options,
    ) -> Result<Value, Status> {
        let namespace = settle_namespace(facts, namespace, &mut object)?;
        if !object::resource_version(&object).is_empty() {
            return Err(Status::unexplained("resourceVersion should not be set on objects to be created"));
        }
        self.require_active_namespace(facts, namespace.as_deref(), object::name(&object))?;
        self.settle_name(at, facts, namespace.as_deref(), &mut object)?;
        let key = ObjectKey {
            group: facts.gvk.group.clone(),
            kind: facts.gvk.kind.clone(),
            namespace,
            name: object::name(&object).to_owned(),
        };
        if self.store.get(&key).is_some() {
            return Err(Status::already_exists(facts, &key.name));
        }
        meta::clear_server_side(&mut object);
        self.default_object(facts, &mut object);
        if !options.applied {
            let (seconds, version) = (at.seconds(), facts.gvk.api_version());
            let request = self.request(facts, &version, &options.manager, &seconds, None);
            object = scantling_merge::update(&request, None, &object)
                .map_err(|error| patch::refused(facts, &key, &error))?;
        }
        admission::admit(self, facts, &key, &mut object)?;
        self.reset_status(facts, &mut object);
        let (seconds, uid) = (at.seconds(), at.ids.uid());
        let fields = metadata(&mut object);
        fields.insert("uid".into(), json!(uid));
        fields.insert("creationTimestamp".into(), json!(seconds));
        if meta::counts_generations(facts, self.is_custom(facts)) {
            fields.insert("generation".into(), json!(1));
        }
        defaults::of_created(facts, &mut object, self);
        let mut causes = validate::created(facts, &object);
        causes.extend(self.validate_custom(facts, &object));
        refuse(facts, &key, causes)?;
        if options.dry_run {
            return Ok(object);
        }
        self.commit(at, &key, object)
    }

    /// Replaces an object, or the part of it that a subresource names.
    pub(super) fn update_object(
        &mut self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
        mut new: Value,
        options: &Options,
    ) -> Result<Value, Status> {
        let live = self.live(facts, key)?;
        require_current(facts, key, &live, &new)?;
        let mut causes = meta::carry_over(&live, &mut new);
        defaults::keep(facts, &live, &mut new, subresource);
        self.default_object(facts, &mut new);
        if !options.applied {
            let (seconds, version) = (at.seconds(), facts.gvk.api_version());
            let request = self.request(facts, &version, &options.manager, &seconds, subresource);
            new = scantling_merge::update(&request, Some(&live), &new)
                .map_err(|error| patch::refused(facts, key, &error))?;
        }
        if subresource == Some("scale") {
            meta::forget_time_of_scale(&mut new);
        }
        if meta::counts_generations(facts, self.is_custom(facts))
            && meta::is_new_generation(facts, self.is_custom(facts), &live, &new)
        {
            let generation = live.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
            metadata(&mut new).insert("generation".into(), json!(generation + 1));
        }
        if meta::same_but_for_times(&live, &new) {
            return Ok(live.as_ref().clone());
        }
        causes.extend(validate::updated(facts, &live, &new));
        causes.extend(immutable::violations(facts, &live, &new, subresource));
        if subresource != Some("status") || self.is_custom(facts) {
            causes.extend(self.validate_custom(facts, &new));
        }
        refuse(facts, key, causes)?;
        if options.dry_run {
            return Ok(new);
        }
        let over = meta::is_over(&new);
        let stored = self.commit(at, key, new)?;
        if over {
            return Ok(self.remove(at, key)?.unwrap_or(stored));
        }
        Ok(stored)
    }

    /// Creates or changes an object by server-side apply. The answer's code says which.
    pub(super) fn apply_object(
        &mut self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
        applied: &Value,
        options: &Options,
    ) -> Result<(u16, Value), Status> {
        let live = self.store.get_shared(key).cloned();
        let (seconds, version) = (at.seconds(), facts.gvk.api_version());
        let options = Options { applied: true, ..options.clone() };
        if let Some(live) = &live {
            require_current(facts, key, live, applied)?;
        } else if subresource.is_some() {
            return Err(Status::not_found(facts, &key.name));
        }
        let merged = {
            let request = self.request(facts, &version, &options.manager, &seconds, subresource);
            scantling_merge::apply(&request, live.as_deref(), applied, options.force)
                .map_err(|error| patch::refused(facts, key, &error))?
        };
        match live {
            None => {
                let namespace = key.namespace.as_deref();
                Ok((201, self.create_object(at, facts, namespace, merged, &options)?))
            }
            Some(_) => Ok((200, self.update_object(at, facts, key, subresource, merged, &options)?)),
        }
    }

    /// Stores a change that the server itself makes, tracked but neither defaulted nor validated.
    pub(super) fn write_raw(
        &mut self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        new: &Value,
        manager: &str,
        subresource: Option<&str>,
    ) -> Result<(), Status> {
        let live = self.live(facts, key)?;
        let (seconds, version) = (at.seconds(), facts.gvk.api_version());
        let tracked = {
            let request = self.request(facts, &version, manager, &seconds, subresource);
            scantling_merge::update(&request, Some(&live), new)
        };
        let tracked = tracked.map_err(|error: MergeError| patch::refused(facts, key, &error))?;
        if !meta::same_but_for_times(&live, &tracked) {
            self.store.put(key.clone(), tracked);
        }
        Ok(())
    }

    /// Stores an object and follows what that means to the server itself.
    fn commit(&mut self, at: &mut Moment<'_>, key: &ObjectKey, object: Value) -> Result<Value, Status> {
        let stored = self.store.put(key.clone(), object);
        if custom::is_definition(&key.group, &key.kind) {
            self.definition_written(at, key)?;
            // The answer is what was written; the status comes later, as it does on a real server.
        }
        Ok(stored.as_ref().clone())
    }

    /// Removes an object and follows what that means to the server itself.
    pub(super) fn remove(&mut self, at: &mut Moment<'_>, key: &ObjectKey) -> Result<Option<Value>, Status> {
        let Some(gone) = self.store.remove(key) else { return Ok(None) };
        if custom::is_definition(&key.group, &key.kind) {
            self.definition_removed(&gone);
        }
        self.custom_object_removed(at, key)?;
        Ok(Some(gone.as_ref().clone()))
    }

    /// A new object has the status that its type has when nobody set it.
    fn reset_status(&self, facts: &KindFacts, object: &mut Value) {
        let map = self.schema.type_def(&facts.type_name).and_then(|def| def.map.as_ref());
        let field = map.and_then(|map| map.fields.get("status"));
        if !facts.status {
            return;
        }
        if let Some(fields) = object.as_object_mut() {
            match field.and_then(|field| field.zero.clone()) {
                Some(zero) => fields.insert("status".into(), zero),
                None => fields.remove("status"),
            };
        }
    }

    fn default_object(&self, facts: &KindFacts, object: &mut Value) {
        if self.is_custom(facts) {
            self.default_custom(facts, object);
        } else {
            defaults::apply(facts, object);
        }
    }

    fn request<'a>(
        &'a self,
        facts: &'a KindFacts,
        api_version: &'a str,
        manager: &'a str,
        now: &'a str,
        subresource: Option<&'a str>,
    ) -> Request<'a> {
        let request = Request::new(&self.schema, api_version, &facts.gvk.kind, manager, now);
        match subresource {
            Some(subresource) => request.to_subresource(subresource),
            None => request,
        }
    }

    fn require_active_namespace(
        &self,
        facts: &KindFacts,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), Status> {
        let Some(namespace) = namespace else { return Ok(()) };
        let of_namespaces = self.kinds.by_kind("", "Namespace");
        let key = ObjectKey::cluster("", "Namespace", namespace);
        match (self.store.get(&key), of_namespaces) {
            (Some(found), _) if object::text(found, "/metadata/deletionTimestamp").is_empty() => Ok(()),
            (Some(_), _) => Err(Status::terminating(facts, name, namespace)),
            (None, Some(kind)) => Err(Status::not_found(kind, namespace)),
            (None, None) => Err(Status::no_such_resource()),
        }
    }

    fn settle_name(
        &self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        namespace: Option<&str>,
        object: &mut Value,
    ) -> Result<(), Status> {
        if !object::name(object).is_empty() {
            return Ok(());
        }
        let base = object::text(object, "/metadata/generateName").to_owned();
        if base.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Status::invalid(&facts.gvk, "", vec![cause]));
        }
        let base: String = base.chars().take(MAX_GENERATED_BASE).collect();
        for _ in 0..NAME_ATTEMPTS {
            let name = format!("{base}{}", at.ids.suffix(SUFFIX_LENGTH));
            let key = ObjectKey {
                group: facts.gvk.group.clone(),
                kind: facts.gvk.kind.clone(),
                namespace: namespace.map(str::to_owned),
                name: name.clone(),
            };
            if self.store.get(&key).is_none() {
                metadata(object).insert("name".into(), json!(name));
                return Ok(());
            }
        }
        Err(Status::already_exists(facts, &base))
    }
}

/// The namespace of the request and that of the object must agree; the object gets it.
fn settle_namespace(
    facts: &KindFacts,
    namespace: Option<&str>,
    object: &mut Value,
) -> Result<Option<String>, Status> {
    let metadata = metadata(object);
    let written = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !facts.namespaced {
        if !written.is_empty() {
            return Err(Status::bad_request("namespace field should not be set on cluster-scoped resources"));
        }
        return Ok(None);
    }
    let Some(namespace) = namespace else {
        return Err(Status::bad_request("an empty namespace may not be set during creation"));
    };
    if !written.is_empty() && written != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata.insert("namespace".into(), json!(namespace));
    Ok(Some(namespace.to_owned()))
}

/// A version or uid in a written object must be the current one.
fn require_current(facts: &KindFacts, key: &ObjectKey, live: &Value, new: &Value) -> Result<(), Status> {
    let version = object::resource_version(new);
    if !version.is_empty() && version != object::resource_version(live) {
        let detail =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Status::conflict(facts, &key.name, detail));
    }
    let (wanted, found) = (object::uid(new), object::uid(live));
    if !wanted.is_empty() && wanted != found {
        let detail =
            format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
        return Err(Status::conflict(facts, &key.name, &detail));
    }
    Ok(())
}

fn refuse(facts: &KindFacts, key: &ObjectKey, causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid(&facts.gvk, &key.name, causes)) }
}
