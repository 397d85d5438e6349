//! The write path: what happens to an object between a request and the store.

use std::sync::Arc;

use scantling_api::{KindFacts, ObjectKey, object};
use serde_json::{Map, Value, json};

use super::{ApiServer, Moment, Status};

/// How often a generated name is tried anew when it is taken, as the real server does.
const NAME_ATTEMPTS: usize = 8;
/// Random characters after a `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// Longest base of a generated name: 63 characters less the suffix.
const MAX_GENERATED_BASE: usize = 58;

/// Who writes, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Field manager.
    pub(crate) manager: String,
    /// Everything but the storing.
    pub(crate) dry_run: bool,
}

impl Options {
    /// A plain write by a manager.
    pub(crate) fn by(manager: &str) -> Self {
        Self { manager: manager.to_owned(), dry_run: false }
    }
}

/// What becomes of the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// The garbage collector deletes them later.
    Background,
    /// The object stays, with the finalizer `foregroundDeletion`, until they are gone.
    Foreground,
    /// The object stays, with the finalizer `orphan`, until they no longer name it.
    Orphan,
}

/// What a deletion can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    /// Seconds that a pod may take; 0 removes it at once. None takes the object's own.
    pub(crate) grace_period_seconds: Option<i64>,
    /// What becomes of owned objects; none means `Background`.
    pub(crate) propagation: Option<Propagation>,
    /// The object must have this uid.
    pub(crate) uid: Option<String>,
    /// The object must have this version.
    pub(crate) resource_version: Option<String>,
    /// Everything but the deleting.
    pub(crate) dry_run: bool,
}

/// What a deletion did.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Value),
    /// The object stays for now, with a deletion timestamp: finalizers or a grace period hold it.
    Pending(Value),
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
        let namespace = self.settle_namespace(facts, namespace, &mut object)?;
        if !object::resource_version(&object).is_empty() {
            return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
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
        let seconds = at.seconds();
        let uid = at.ids.uid();
        let metadata = metadata(&mut object);
        for server_side in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
            metadata.remove(server_side);
        }
        metadata.insert("uid".into(), json!(uid));
        metadata.insert("creationTimestamp".into(), json!(seconds));
        if facts.status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        if options.dry_run {
            return Ok(object);
        }
        Ok(self.store.put(key, object).as_ref().clone())
    }

    /// Replaces an object, or the part of it that a subresource names.
    pub(super) fn update_object(
        &mut self,
        _at: &mut Moment<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
        mut new: Value,
        options: &Options,
    ) -> Result<Value, Status> {
        let live = self.live(facts, key)?;
        let version = object::resource_version(&new);
        if !version.is_empty() && version != object::resource_version(&live) {
            return Err(Status::conflict(
                facts,
                &key.name,
                "the object has been modified; please apply your changes to the latest version and try again",
            ));
        }
        let uid = object::uid(&new);
        if !uid.is_empty() && uid != object::uid(&live) {
            let detail = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                object::uid(&live)
            );
            return Err(Status::conflict(facts, &key.name, &detail));
        }
        let kept = metadata(&mut new);
        for field in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
        ] {
            match live.pointer("/metadata").and_then(|metadata| metadata.get(field)) {
                Some(value) => kept.insert(field.to_owned(), value.clone()),
                None => kept.remove(field),
            };
        }
        if facts.status
            && let Some(fields) = new.as_object_mut()
        {
            if subresource == Some("status") {
                let status = fields.remove("status");
                let mut whole = live.as_ref().clone();
                if let Some(whole) = whole.as_object_mut() {
                    match status {
                        Some(status) => whole.insert("status".into(), status),
                        None => whole.remove("status"),
                    };
                }
                new = whole;
            } else {
                match live.get("status") {
                    Some(status) => fields.insert("status".into(), status.clone()),
                    None => fields.remove("status"),
                };
            }
        }
        if new == *live || options.dry_run {
            return Ok(new);
        }
        if is_over(&new) {
            self.store.put(key.clone(), new);
            return Ok(self.store.remove(key).map(|object| object.as_ref().clone()).unwrap_or_default());
        }
        Ok(self.store.put(key.clone(), new).as_ref().clone())
    }

    /// Deletes an object, or begins to.
    pub(super) fn delete_object(
        &mut self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let live = self.live(facts, key)?;
        for (wanted, found, what) in [
            (&options.uid, object::uid(&live), "UID"),
            (&options.resource_version, object::resource_version(&live), "ResourceVersion"),
        ] {
            if let Some(wanted) = wanted
                && wanted != found
            {
                let detail = format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
                );
                return Err(Status::conflict(facts, &key.name, &detail));
            }
        }
        let mut object = live.as_ref().clone();
        settle_finalizers(&mut object, options.propagation);
        let grace = grace_period(facts, &live, options.grace_period_seconds);
        let held = grace > 0 || has_finalizers(&object);
        if !held {
            if options.dry_run {
                return Ok(Deleted::Gone(object));
            }
            return Ok(Deleted::Gone(
                self.store.remove(key).map(|object| object.as_ref().clone()).unwrap_or(object),
            ));
        }
        let grace = match live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64) {
            // A deletion under way can be made shorter, never longer.
            Some(before) => before.min(grace),
            None => grace,
        };
        let when = at.now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(at.now);
        let already = object.pointer("/metadata/deletionTimestamp").is_some()
            && object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64) == Some(grace);
        if !already {
            let metadata = metadata(&mut object);
            metadata.insert("deletionTimestamp".into(), json!(super::rfc3339_seconds(when)));
            metadata.insert("deletionGracePeriodSeconds".into(), json!(grace));
        }
        if facts.gvk.group.is_empty() && facts.gvk.kind == "Namespace" {
            object["status"]["phase"] = json!("Terminating");
        }
        if object == *live || options.dry_run {
            return Ok(Deleted::Pending(object));
        }
        Ok(Deleted::Pending(self.store.put(key.clone(), object).as_ref().clone()))
    }

    /// The namespace of the request and that of the object must agree; the object gets it.
    fn settle_namespace(
        &self,
        facts: &KindFacts,
        namespace: Option<&str>,
        object: &mut Value,
    ) -> Result<Option<String>, Status> {
        let metadata = metadata(object);
        let written = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if !facts.namespaced {
            if !written.is_empty() {
                return Err(Status::bad_request(
                    "namespace field should not be set on cluster-scoped resources",
                ));
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

    fn require_active_namespace(
        &self,
        facts: &KindFacts,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), Status> {
        let Some(namespace) = namespace else { return Ok(()) };
        let of_namespaces = self.kinds.by_kind("", "Namespace").cloned();
        let key = ObjectKey::cluster("", "Namespace", namespace);
        match (self.store.get(&key), of_namespaces) {
            (Some(found), _) if object::text(found, "/metadata/deletionTimestamp").is_empty() => Ok(()),
            (Some(_), _) => {
                let detail = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                Err(Status::forbidden(facts, name, &detail))
            }
            (None, Some(kind)) => Err(Status::not_found(&kind, namespace)),
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
            return Err(Status::invalid(
                &facts.gvk,
                "",
                vec![super::Cause::required("metadata.name", "name or generateName is required")],
            ));
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

/// `metadata`, made if it is missing or no mapping.
fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let fields = as_mapping(object);
    as_mapping(fields.entry("metadata").or_insert(Value::Null))
}

fn as_mapping(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("made a mapping above"),
    }
}

fn has_finalizers(object: &Value) -> bool {
    let filled =
        |pointer| object.pointer(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let namespace =
        object::text(object, "/kind") == "Namespace" && object::text(object, "/apiVersion") == "v1";
    filled("/metadata/finalizers") || namespace && filled("/spec/finalizers")
}

/// Whether nothing holds an object any more that is being deleted.
fn is_over(object: &Value) -> bool {
    !object::text(object, "/metadata/deletionTimestamp").is_empty()
        && !has_finalizers(object)
        && object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
}

fn settle_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some("foregroundDeletion"),
        Propagation::Orphan => Some("orphan"),
    };
    let metadata = metadata(object);
    let mut finalizers: Vec<Value> =
        metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    finalizers.retain(|name| name != "foregroundDeletion" && name != "orphan");
    finalizers.extend(wanted.map(|name| json!(name)));
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), Value::Array(finalizers));
    }
}

/// Only pods take their time; one that no node has, or that has ended, goes at once.
fn grace_period(facts: &KindFacts, object: &Value, asked: Option<i64>) -> i64 {
    /// A pod's `terminationGracePeriodSeconds` when it says nothing.
    const DEFAULT: i64 = 30;
    if !(facts.gvk.group.is_empty() && facts.gvk.kind == "Pod") {
        return 0;
    }
    let unscheduled = object::text(object, "/spec/nodeName").is_empty();
    let ended = matches!(object::text(object, "/status/phase"), "Succeeded" | "Failed");
    if unscheduled || ended {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    asked.or(own).unwrap_or(DEFAULT).max(0)
}
