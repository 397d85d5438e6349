//! How everything inside the world reads and writes objects: by the API server's own write path, with a
//! field manager of its program, and with a line in the trace.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::api::{DeleteOptions, Deleted, Moment, Propagation, Status};
use crate::trace::What;
use crate::value::{name, namespace, text, uid};
use crate::world::World;

/// The field manager under which an actor writes: that of the program which it is part of in a real cluster.
fn manager(actor: &str) -> &str {
    match actor.split('/').next().unwrap_or(actor) {
        "kubelet" => "kubelet",
        "default-scheduler" => "kube-scheduler",
        "bootstrap" => "kube-apiserver",
        "image-import" => "openshift-apiserver",
        "build" | "build-controller" => "openshift-controller-manager",
        "openshift-router" => "openshift-router",
        // Tests write as people do.
        #[cfg(test)]
        "user" => "user",
        _ => "kube-controller-manager",
    }
}

impl World {
    /// The object, if it exists.
    pub(crate) fn object(&self, key: &ObjectKey) -> Option<&Value> {
        self.api.store.get(key)
    }

    /// The objects of one kind, in the order of their keys.
    pub(crate) fn list<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
    ) -> Vec<(ObjectKey, &'a Value)> {
        self.api.store.list(group, kind, namespace).map(|(key, object)| (key.clone(), object)).collect()
    }

    /// Creates an object.
    pub(crate) fn create(&mut self, actor: &str, object: Value) -> Result<Value, Status> {
        let now = self.timestamp();
        let about = scantling_api::object::key(&object).ok();
        let mut moment = Moment { now, ids: &mut self.ids };
        let result = self.api.create(&mut moment, manager(actor), object);
        match &result {
            Ok(created) => {
                let key = scantling_api::object::key(created).ok();
                if key.as_ref().is_none_or(|key| key.kind != "Event") {
                    self.note(actor, What::Write { verb: "create" }, key);
                }
            }
            Err(status) => self.refused(actor, "create", status, about),
        }
        result
    }

    /// Changes an object but not its status. Nothing is written when nothing differs.
    pub(crate) fn change(
        &mut self,
        actor: &str,
        key: &ObjectKey,
        edit: impl FnOnce(&mut Value),
    ) -> Option<Value> {
        self.write(actor, key, None, edit)
    }

    /// Changes an object's status. Nothing is written when nothing differs.
    pub(crate) fn change_status(
        &mut self,
        actor: &str,
        key: &ObjectKey,
        edit: impl FnOnce(&mut Value),
    ) -> Option<Value> {
        self.write(actor, key, Some("status"), edit)
    }

    /// Changes what one subresource lets change, such as a pod's node through `binding`.
    pub(crate) fn change_through(
        &mut self,
        actor: &str,
        key: &ObjectKey,
        subresource: &'static str,
        edit: impl FnOnce(&mut Value),
    ) -> Option<Value> {
        self.write(actor, key, Some(subresource), edit)
    }

    fn write(
        &mut self,
        actor: &str,
        key: &ObjectKey,
        subresource: Option<&'static str>,
        edit: impl FnOnce(&mut Value),
    ) -> Option<Value> {
        let before = self.object(key)?;
        let mut after = before.clone();
        edit(&mut after);
        if after == *before {
            return Some(after);
        }
        let now = self.timestamp();
        let mut moment = Moment { now, ids: &mut self.ids };
        let verb = subresource.unwrap_or("update");
        match self.api.update(&mut moment, manager(actor), subresource, after) {
            Ok(written) => {
                self.note(actor, What::Write { verb }, Some(key.clone()));
                Some(written)
            }
            Err(status) => {
                self.refused(actor, verb, &status, Some(key.clone()));
                None
            }
        }
    }

    /// Deletes an object as a client would: pods have their grace period.
    pub(crate) fn delete(&mut self, actor: &str, key: &ObjectKey, propagation: Option<Propagation>) {
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        self.delete_with(actor, key, &options);
    }

    /// Removes an object at once, as the kubelet does when a pod has ended.
    pub(crate) fn delete_now(&mut self, actor: &str, key: &ObjectKey) {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        self.delete_with(actor, key, &options);
    }

    fn delete_with(&mut self, actor: &str, key: &ObjectKey, options: &DeleteOptions) {
        if self.object(key).is_none() {
            return;
        }
        let now = self.timestamp();
        let mut moment = Moment { now, ids: &mut self.ids };
        match self.api.delete(&mut moment, key, options) {
            Ok(Deleted::Gone(_) | Deleted::Pending(_)) => {
                self.note(actor, What::Write { verb: "delete" }, Some(key.clone()));
            }
            Err(status) => self.refused(actor, "delete", &status, Some(key.clone())),
        }
    }

    fn refused(&mut self, actor: &str, verb: &'static str, status: &Status, key: Option<ObjectKey>) {
        self.note(actor, What::Refused { verb, message: status.message.clone() }, key);
    }

    /// Records an event about an object; the same event again is counted.
    pub(crate) fn event(&mut self, actor: &str, about: &Value, kind: &str, reason: &str, message: &str) {
        let namespace = match namespace(about) {
            "" => "default",
            namespace => namespace,
        };
        let stamp = self.stamp_now();
        let identity = (uid(about).to_owned(), reason.to_owned(), message.to_owned());
        if let Some(key) = self.recorded.get(&identity).cloned()
            && self.object(&key).is_some()
        {
            self.change(actor, &key, |event| {
                let count = event.get("count").and_then(Value::as_u64).unwrap_or(1).saturating_add(1);
                if let Some(map) = event.as_object_mut() {
                    map.insert("count".into(), count.into());
                    map.insert("lastTimestamp".into(), stamp.into());
                }
            });
            return;
        }
        let component = actor.split('/').next().unwrap_or(actor);
        let host = actor.split_once('/').map_or("", |(_, host)| host);
        let event_name = format!("{}.{}", name(about), self.ids.hex16());
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": event_name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": text(about, "/apiVersion").unwrap_or_default(),
                "kind": text(about, "/kind").unwrap_or_default(),
                "namespace": crate::value::namespace(about),
                "name": name(about),
                "uid": uid(about),
                "resourceVersion": text(about, "/metadata/resourceVersion").unwrap_or_default(),
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": component, "host": host},
            "reportingComponent": component,
            "reportingInstance": host,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "eventTime": null,
        });
        let key = ObjectKey::namespaced("", "Event", namespace, &event_name);
        if self.create(actor, event).is_ok() {
            self.recorded.insert(identity, key);
        }
    }
}
