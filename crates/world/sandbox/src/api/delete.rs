//! Deletion: preconditions, grace periods, finalizers, propagation.

use scantling_api::{KindFacts, ObjectKey, object};
use serde_json::{Value, json};

use super::meta::{self, metadata};
use super::{ApiServer, Moment, Status, custom};

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
    /// Deletes an object, or begins to.
    pub(super) fn delete_object(
        &mut self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let live = self.live(facts, key)?;
        require(facts, key, &live, options)?;
        let mut object = live.as_ref().clone();
        settle_finalizers(&mut object, options.propagation);
        let definition = custom::is_definition(&key.group, &key.kind);
        if definition && object::text(&live, "/metadata/deletionTimestamp").is_empty() {
            meta::add_finalizer(&mut object, custom::CLEANUP);
        }
        let grace = grace_period(facts, &live, options.grace_period_seconds);
        let held = grace > 0 || meta::has_finalizers(&object);
        if !held {
            if is_pod(facts) {
                mark_ended(&mut object, at.now);
            }
            if options.dry_run {
                return Ok(Deleted::Gone(object));
            }
            let gone = self.remove(at, key)?;
            return Ok(Deleted::Gone(if is_pod(facts) { object } else { gone.unwrap_or(object) }));
        }
        let before = live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        let namespace = facts.gvk.group.is_empty() && facts.gvk.kind == "Namespace";
        // A deletion under way can be made shorter, never longer.
        let grace = before.map_or(grace, |before| before.min(grace));
        let begun = !object::text(&live, "/metadata/deletionTimestamp").is_empty();
        if !begun || before.is_some_and(|before| before != grace) {
            let when = at.now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(at.now);
            let counted = !definition && meta::counts_generations(facts, self.is_custom(facts));
            let fields = metadata(&mut object);
            fields.insert("deletionTimestamp".into(), json!(super::rfc3339_seconds(when)));
            if !namespace && !definition {
                fields.insert("deletionGracePeriodSeconds".into(), json!(grace));
            }
            if counted && let Some(generation) = fields.get("generation").and_then(Value::as_i64) {
                fields.insert("generation".into(), json!(generation + 1));
            }
        }
        if namespace {
            let status = meta::as_mapping(&mut object).entry("status").or_insert(Value::Null);
            meta::as_mapping(status).insert("phase".into(), json!("Terminating"));
        }
        if object == *live || options.dry_run {
            return Ok(Deleted::Pending(object));
        }
        let stored = self.store.put(key.clone(), object);
        if definition {
            self.definition_written(at, key)?;
        }
        Ok(Deleted::Pending(stored.as_ref().clone()))
    }
}

fn require(facts: &KindFacts, key: &ObjectKey, live: &Value, options: &DeleteOptions) -> Result<(), Status> {
    for (wanted, found, what) in [
        (&options.uid, object::uid(live), "UID"),
        (&options.resource_version, object::resource_version(live), "ResourceVersion"),
    ] {
        if let Some(wanted) = wanted
            && wanted != found
        {
            return Err(Status::precondition(&facts.gvk, &key.name, what, wanted, found));
        }
    }
    Ok(())
}

fn settle_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    const FOREGROUND: &str = "foregroundDeletion";
    const ORPHAN: &str = "orphan";
    let Some(propagation) = propagation else { return };
    let (wanted, others): (Option<&str>, &[&str]) = match propagation {
        Propagation::Background => (None, &[FOREGROUND, ORPHAN]),
        Propagation::Foreground => (Some(FOREGROUND), &[ORPHAN]),
        Propagation::Orphan => (Some(ORPHAN), &[FOREGROUND]),
    };
    for other in others {
        meta::remove_finalizer(object, other);
    }
    if let Some(wanted) = wanted {
        meta::add_finalizer(object, wanted);
    }
}

fn is_pod(facts: &KindFacts) -> bool {
    facts.gvk.group.is_empty() && facts.gvk.kind == "Pod"
}

/// The answer to the deletion of a pod that goes at once shows it with a deletion timestamp.
fn mark_ended(pod: &mut Value, now: jiff::Timestamp) {
    let fields = metadata(pod);
    if let Some(generation) = fields.get("generation").and_then(Value::as_i64) {
        fields.insert("generation".into(), json!(generation + 1));
    }
    fields.insert("deletionTimestamp".into(), json!(super::rfc3339_seconds(now)));
    fields.insert("deletionGracePeriodSeconds".into(), json!(0));
}

/// Only pods take their time; one that no node has, or that has ended, goes at once.
fn grace_period(facts: &KindFacts, object: &Value, asked: Option<i64>) -> i64 {
    /// A pod's `terminationGracePeriodSeconds` when it says nothing.
    const DEFAULT: i64 = 30;
    if !is_pod(facts) {
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
