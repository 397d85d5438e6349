//! Watches: what happened since a version, line by line.
//!
//! A watch is a cursor into the store's log. Nothing is pushed: whoever serves it polls, and the answer holds what
//! happened since it last did.

use std::collections::BTreeMap;

use bytes::Bytes;
use scantling_api::KindFacts;
use serde_json::{Value, json};

use super::accept::{Accept, Form};
use super::read::{parse_version, too_large};
use super::selector::Selector;
use super::serve::Call;
use super::views::View;
use super::{ApiServer, Cause, Moment, Status, WatchChunk, WatchId, table};
use crate::store::{Change, ChangeKind};

/// Watches that may run at once; a client that opens more has lost count.
const MAX_WATCHES: usize = 10_000;
/// Seconds that a watch lasts at least when the client does not say (a real server takes a random time between this and
/// its double).
const DEFAULT_SECONDS: u64 = 1800;
/// Longest time of a watch, in seconds.
const MAX_SECONDS: u64 = 24 * 3600;
/// Seconds between bookmarks.
const BOOKMARK_SECONDS: i64 = 60;

/// All running watches.
#[derive(Debug, Default)]
pub(super) struct Watches {
    next: u64,
    running: BTreeMap<WatchId, Watch>,
}

#[derive(Debug)]
struct Watch {
    facts: KindFacts,
    /// Objects are told as another kind shows them.
    view: Option<(&'static View, KindFacts)>,
    namespace: Option<String>,
    selector: Selector,
    accept: Accept,
    /// Every change up to this version has been told.
    cursor: u64,
    ends: jiff::Timestamp,
    bookmarks: bool,
    next_bookmark: jiff::Timestamp,
    /// Columns of tables go into the first event only.
    columns_told: bool,
    /// What is told before any change: the state at the beginning.
    pending: Vec<Bytes>,
    /// The watch ends after `pending`.
    over: bool,
}

impl ApiServer {
    /// Begins a watch of a kind, or of one object.
    pub(super) fn watch(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        namespace: Option<&str>,
        name: Option<&str>,
        at: &Moment<'_>,
    ) -> Result<WatchId, Status> {
        let mut selector = self.selector(call, facts)?;
        if let Some(name) = name {
            selector = selector.with_name(name);
        }
        if self.watches.running.len() >= MAX_WATCHES {
            return Err(Status::too_many_requests("too many watches are running", 1));
        }
        let seconds =
            call.query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_SECONDS);
        let current = self.store.version();
        let asked = call.query.get("resourceVersion").map(parse_version).transpose()?.unwrap_or(0);
        let initial = match call.query.has("sendInitialEvents").then(|| call.query.flag("sendInitialEvents"))
        {
            Some(_) if call.query.get("resourceVersionMatch") != Some("NotOlderThan") => {
                let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return Err(Status::options("ListOptions", Cause::forbidden("resourceVersionMatch", detail)));
            }
            None if call.query.has("resourceVersionMatch") => {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return Err(Status::options("ListOptions", Cause::forbidden("resourceVersionMatch", detail)));
            }
            given => given,
        };
        if asked > current {
            return Err(too_large(asked, current));
        }
        let bookmarks = call.query.flag("allowWatchBookmarks");
        let mut watch = Watch {
            facts: facts.clone(),
            view: call.view.clone(),
            namespace: namespace.map(str::to_owned),
            selector,
            accept: call.accept,
            cursor: current,
            ends: later(at.now, i64::try_from(seconds.min(MAX_SECONDS)).unwrap_or(i64::MAX)),
            bookmarks,
            next_bookmark: later(at.now, BOOKMARK_SECONDS),
            columns_told: false,
            pending: Vec::new(),
            over: false,
        };
        match initial {
            // Without a version a watch begins with what there is.
            None if asked == 0 => self.tell_state(&mut watch, at.now),
            Some(true) => {
                self.tell_state(&mut watch, at.now);
                if bookmarks {
                    let line = self.bookmark(&mut watch, current, true, at.now);
                    watch.pending.push(line);
                }
            }
            _ if asked == 0 => {}
            _ => watch.cursor = asked,
        }
        // Refused with a response, not within the stream, as a real server does when it can.
        if let Err(compacted) = self.store.changes_since(watch.cursor) {
            return Err(Status::expired(compacted.to_string()));
        }
        self.watches.next += 1;
        let id = WatchId(self.watches.next);
        self.watches.running.insert(id, watch);
        Ok(id)
    }

    /// What a watch has to say since it was last asked. An unknown watch is closed.
    pub(crate) fn watch_poll(&mut self, id: WatchId, now: jiff::Timestamp) -> WatchChunk {
        let Some(mut watch) = self.watches.running.remove(&id) else {
            return WatchChunk { bytes: Vec::new(), closed: true };
        };
        let mut bytes = std::mem::take(&mut watch.pending);
        let before = watch.cursor;
        self.tell_changes(&mut watch, &mut bytes, now);
        if watch.bookmarks && !watch.over && now >= watch.next_bookmark {
            watch.next_bookmark = later(now, BOOKMARK_SECONDS);
            if before == watch.cursor || bytes.is_empty() {
                let cursor = watch.cursor;
                let line = self.bookmark(&mut watch, cursor, false, now);
                bytes.push(line);
            }
        }
        let closed = watch.over || now >= watch.ends;
        if !closed {
            self.watches.running.insert(id, watch);
        }
        WatchChunk { bytes, closed }
    }

    /// Ends a watch.
    pub(crate) fn watch_close(&mut self, id: WatchId) {
        self.watches.running.remove(&id);
    }

    /// When the next watch ends or has a bookmark due.
    pub(crate) fn next_watch_time(&self) -> Option<jiff::Timestamp> {
        let times = self
            .watches
            .running
            .values()
            .map(|watch| if watch.bookmarks { watch.ends.min(watch.next_bookmark) } else { watch.ends });
        times.min()
    }

    /// Ends the watches of a kind that is no longer served.
    pub(super) fn end_watches(&mut self, group: &str, kind: &str) {
        for watch in self.watches.running.values_mut() {
            if watch.facts.gvk.group == group && watch.facts.gvk.kind == kind {
                watch.over = true;
            }
        }
    }

    fn tell_state(&self, watch: &mut Watch, now: jiff::Timestamp) {
        let (group, kind) = (watch.facts.gvk.group.clone(), watch.facts.gvk.kind.clone());
        let namespace = watch.namespace.clone();
        let objects = self.store.list(&group, &kind, namespace.as_deref());
        let selected: Vec<&Value> =
            objects.map(|(_, object)| object).filter(|object| watch.selector.matches(object)).collect();
        for object in selected {
            let line = self.event(watch, "ADDED", object, now);
            watch.pending.push(line);
        }
    }

    fn tell_changes(&self, watch: &mut Watch, bytes: &mut Vec<Bytes>, now: jiff::Timestamp) {
        let changes = match self.store.changes_since(watch.cursor) {
            Ok(changes) => changes,
            Err(compacted) => {
                let status = Status::expired(compacted.to_string()).to_value();
                bytes.push(line("ERROR", &status));
                watch.over = true;
                return;
            }
        };
        for change in changes {
            watch.cursor = change.version;
            match watch.sees(change) {
                None => {}
                // It left the selection: its last state within it is told, with the version at which it left.
                Some(Seen::Left) => {
                    let mut last = change.previous.as_deref().cloned().unwrap_or_default();
                    if let Some(metadata) = last.get_mut("metadata").and_then(Value::as_object_mut) {
                        metadata.insert("resourceVersion".into(), json!(change.version.to_string()));
                    }
                    bytes.push(self.event(watch, "DELETED", &last, now));
                }
                Some(Seen::As(kind)) => bytes.push(self.event(watch, kind, &change.object, now)),
            }
        }
    }

    fn event(&self, watch: &mut Watch, kind: &str, object: &Value, now: jiff::Timestamp) -> Bytes {
        let (facts, object) = match &watch.view {
            None => (watch.facts.clone(), object.clone()),
            Some((view, facts)) => match view.show(object.clone()) {
                Ok(object) => (facts.clone(), object),
                Err(status) => {
                    watch.over = true;
                    return line("ERROR", &status.to_value());
                }
            },
        };
        let shown = if watch.accept.form == Form::Table {
            let metadata = json!({"resourceVersion": object.pointer("/metadata/resourceVersion")});
            let include = watch.accept.include;
            let columns = self.columns(&facts);
            table::of(&columns, [&object].into_iter(), &metadata, !watch.columns_told, include, now)
        } else {
            self.object_in_form(&facts, object, watch.accept, now)
        };
        watch.columns_told = true;
        line(kind, &shown)
    }

    fn bookmark(&self, watch: &mut Watch, version: u64, initial: bool, now: jiff::Timestamp) -> Bytes {
        let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({
            "kind": watch.facts.gvk.kind,
            "apiVersion": watch.facts.gvk.api_version(),
            "metadata": metadata,
        });
        self.event(watch, "BOOKMARK", &object, now)
    }
}

/// How a change looks to one watch.
enum Seen {
    /// As an event of this type.
    As(&'static str),
    /// As a deletion, though the object is still there.
    Left,
}

impl Watch {
    /// How a change looks through the selector: an object that no longer matches is gone for this client.
    fn sees(&self, change: &Change) -> Option<Seen> {
        let key = &change.key;
        if key.group != self.facts.gvk.group
            || key.kind != self.facts.gvk.kind
            || self.namespace.is_some() && key.namespace != self.namespace
        {
            return None;
        }
        let before = change.previous.as_ref().is_some_and(|previous| self.selector.matches(previous));
        let after = change.kind != ChangeKind::Deleted && self.selector.matches(&change.object);
        match (before, after) {
            (false, true) => Some(Seen::As("ADDED")),
            (true, true) => Some(Seen::As("MODIFIED")),
            (true, false) if change.kind == ChangeKind::Deleted => Some(Seen::As("DELETED")),
            (true, false) => Some(Seen::Left),
            (false, false) => None,
        }
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    /// An event as it is written, in the order of the two fields that people read.
    #[derive(serde::Serialize)]
    struct Event<'a> {
        r#type: &'a str,
        object: &'a Value,
    }
    let mut line = serde_json::to_vec(&Event { r#type: kind, object }).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

fn later(now: jiff::Timestamp, seconds: i64) -> jiff::Timestamp {
    now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(jiff::Timestamp::MAX)
}
