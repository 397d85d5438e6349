//! A Kubernetes API server: what it stores, how it answers, what it refuses.
//!
//! `ApiServer::handle` speaks HTTP; `create`, `update` and `delete` are the same write path for the
//! controllers inside the world. Neither calls a controller: the world reads `store.changes_since` after each step.
//! What a real server does and this one does not is refused with a `Status` that names it.

mod accept;
mod admission;
mod answer;
mod body;
mod custom;
mod decode;
mod defaults;
mod delete;
mod discovery;
mod immutable;
mod meta;
mod names;
mod openapi;
mod patch;
mod path;
mod protobuf;
mod read;
mod review;
mod selector;
mod serve;
mod status;
mod subresource;
mod table;
#[cfg(test)]
mod tests;
mod validate;
mod views;
mod warnings;
mod watch;
mod write;

use bytes::Bytes;
use scantling_api::schema::Schema;
use scantling_api::{GroupVersionKind, KindFacts, Kinds, ObjectKey, object};
use serde_json::Value;

pub(crate) use delete::{DeleteOptions, Deleted, Propagation};
pub(crate) use status::{Cause, Status};

use crate::store::Store;

/// Where uids and the random part of generated names come from, so that the same seed makes the same ones.
pub(crate) trait IdSource {
    /// A new uid, in the form of a UUID.
    fn uid(&mut self) -> String;
    /// `length` characters of those that generated names use (`bcdfghjklmnpqrstvwxz2456789`).
    fn suffix(&mut self, length: usize) -> String;
}

/// The moment of a request: the clock and the source of identifiers.
pub(crate) struct Moment<'a> {
    /// The time now.
    pub(crate) now: jiff::Timestamp,
    /// Where new uids and names come from.
    pub(crate) ids: &'a mut dyn IdSource,
}

impl Moment<'_> {
    /// The time now as objects carry it: RFC 3339 in whole seconds.
    pub(crate) fn seconds(&self) -> String {
        rfc3339_seconds(self.now)
    }
}

/// RFC 3339 in whole seconds, as Kubernetes' `metav1.Time` is written.
pub(crate) fn rfc3339_seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The answer to a request.
#[derive(Debug)]
pub enum Reply {
    /// A complete response.
    Once(http::Response<Bytes>),
    /// A watch: its bytes come from `watch_poll`, below a response with status 200 and type `application/json`.
    Watch(WatchId),
}

/// Number of a running watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(pub(crate) u64);

/// What a watch has to say since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchChunk {
    /// Lines of JSON, each with its line feed.
    pub bytes: Vec<Bytes>,
    /// The watch is over: its time is up or it fell too far behind.
    pub closed: bool,
}

/// The API server.
#[derive(Debug)]
pub(crate) struct ApiServer {
    /// All objects and the log of changes.
    pub(crate) store: Store,
    kinds: Kinds,
    schema: Schema,
    custom: custom::CustomKinds,
    /// Grows with every change of a custom resource definition.
    definitions_generation: u64,
    watches: watch::Watches,
}

impl ApiServer {
    /// An empty server. OpenShift's kinds are served only on that flavour.
    pub(crate) fn new(openshift: bool) -> Self {
        let mut kinds = Kinds::kubernetes().clone();
        // Alpha and beta versions are off on a server, unless someone turns them on.
        for facts in Kinds::kubernetes().iter().filter(|facts| !is_stable(&facts.gvk.version)) {
            kinds.remove(&facts.gvk);
        }
        let mut schema = Schema::kubernetes().clone();
        if openshift {
            kinds.extend(Kinds::openshift());
            schema.extend(Schema::openshift().clone());
        }
        Self {
            store: Store::default(),
            kinds,
            schema,
            custom: custom::CustomKinds::new(),
            definitions_generation: 0,
            watches: watch::Watches::default(),
        }
    }

    /// Creates an object as `manager`. The namespace must be in the object if its kind has one.
    pub(crate) fn create(
        &mut self,
        at: &mut Moment<'_>,
        manager: &str,
        object: Value,
    ) -> Result<Value, Status> {
        let facts = self.facts_of(&object)?;
        let namespace = object::namespace(&object).map(str::to_owned);
        self.create_object(at, &facts, namespace.as_deref(), object, &write::Options::by(manager))
    }

    /// Replaces an object, or its `status` if that is the subresource, as `manager`. A `resourceVersion` in it must be
    /// the current one; without one, the last writer wins.
    pub(crate) fn update(
        &mut self,
        at: &mut Moment<'_>,
        manager: &str,
        subresource: Option<&str>,
        object: Value,
    ) -> Result<Value, Status> {
        let facts = self.facts_of(&object)?;
        let key = object::key(&object).map_err(|error| Status::bad_request(error.to_string()))?;
        self.update_object(at, &facts, &key, subresource, object, &write::Options::by(manager))
    }

    /// Deletes an object as a request would: finalizers and grace periods leave it with a deletion timestamp.
    pub(crate) fn delete(
        &mut self,
        at: &mut Moment<'_>,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let facts = self.facts_of_key(key)?;
        self.delete_object(at, &facts, key, options)
    }

    /// The facts of the kind of an object, by its `apiVersion` and `kind`.
    fn facts_of(&self, object: &Value) -> Result<KindFacts, Status> {
        let gvk = object::gvk(object).map_err(|error| Status::bad_request(error.to_string()))?;
        self.facts(&gvk)
    }

    fn facts(&self, gvk: &GroupVersionKind) -> Result<KindFacts, Status> {
        self.kinds.by_gvk(gvk).cloned().ok_or_else(Status::no_such_resource)
    }

    fn facts_of_key(&self, key: &ObjectKey) -> Result<KindFacts, Status> {
        self.kinds.by_kind(&key.group, &key.kind).cloned().ok_or_else(Status::no_such_resource)
    }
}

fn is_stable(version: &str) -> bool {
    version.strip_prefix('v').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}
