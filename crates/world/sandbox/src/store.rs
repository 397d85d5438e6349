//! The objects of the cluster and the log of what happened to them.
//!
//! One counter numbers every change, as etcd's revision does; it is the `resourceVersion` of objects, lists and
//! watches. The log is what watches replay, what controllers read, and what lets a paged list see the past.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use scantling_api::ObjectKey;
use serde_json::{Value, json};

/// Changes kept for watches; a real server keeps five minutes of them. Whoever falls further behind lists anew.
const MAX_CHANGES: usize = 50_000;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// It is new.
    Added,
    /// It was written again.
    Modified,
    /// It is gone.
    Deleted,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// The version that this change made.
    pub(crate) version: u64,
    /// What happened.
    pub(crate) kind: ChangeKind,
    /// To which object.
    pub(crate) key: ObjectKey,
    /// The object after the change; its last state, with the version of the deletion, when it is gone.
    pub(crate) object: Arc<Value>,
    /// The object before the change.
    pub(crate) previous: Option<Arc<Value>>,
}

/// The log no longer reaches back to the version that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub(crate) struct Compacted {
    /// The version that was asked for.
    pub(crate) asked: u64,
    /// The oldest version after which every change is known.
    pub(crate) oldest: u64,
}

/// All objects, and the log.
#[derive(Debug, Default)]
pub(crate) struct Store {
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    version: u64,
    changes: VecDeque<Change>,
    /// Every change after this version is in the log.
    compacted: u64,
}

impl Store {
    /// Version of the last change; 0 in an empty store.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The object, if it exists.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key).map(Arc::as_ref)
    }

    /// The object as it is shared with the log.
    pub(crate) fn get_shared(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// All objects in the order of their keys.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter().map(|(key, object)| (key, object.as_ref()))
    }

    /// The objects of one kind, in one namespace or in all, in the order of their keys.
    pub(crate) fn list<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Value)> {
        self.list_shared(group, kind, namespace).map(|(key, object)| (key, object.as_ref()))
    }

    /// As `list`, with the objects as they are shared with the log.
    pub(crate) fn list_shared<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> {
        let first = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: String::new(),
        };
        self.objects.range(first..).take_while(move |(key, _)| {
            key.group == group
                && key.kind == kind
                && (namespace.is_none() || key.namespace.as_deref() == namespace)
        })
    }

    /// The objects of one kind as they were at an earlier version.
    pub(crate) fn list_at(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<BTreeMap<ObjectKey, Arc<Value>>, Compacted> {
        let mut objects: BTreeMap<ObjectKey, Arc<Value>> = self
            .list_shared(group, kind, namespace)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect();
        let belongs = |key: &ObjectKey| {
            key.group == group
                && key.kind == kind
                && (namespace.is_none() || key.namespace.as_deref() == namespace)
        };
        // Undone from the last to the first, so the state before the first change after the version is left.
        for change in self.changes_since(version)?.rev().filter(|change| belongs(&change.key)) {
            match &change.previous {
                Some(previous) => objects.insert(change.key.clone(), Arc::clone(previous)),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// Stores an object and gives it the next version. The caller has made sure that it is an object of that key.
    pub(crate) fn put(&mut self, key: ObjectKey, object: Value) -> Arc<Value> {
        let object = Arc::new(self.next_version(object));
        let previous = self.objects.insert(key.clone(), Arc::clone(&object));
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.log(Change { version: self.version, kind, key, object: Arc::clone(&object), previous });
        object
    }

    /// Removes an object. The answer is its last state, with the version of the deletion.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<Value>> {
        let previous = self.objects.remove(key)?;
        let object = Arc::new(self.next_version(previous.as_ref().clone()));
        self.log(Change {
            version: self.version,
            kind: ChangeKind::Deleted,
            key: key.clone(),
            object: Arc::clone(&object),
            previous: Some(previous),
        });
        Some(object)
    }

    /// The changes after a version, oldest first. A version of the future has no changes yet.
    pub(crate) fn changes_since(
        &self,
        version: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Change>, Compacted> {
        if version < self.compacted {
            return Err(Compacted { asked: version, oldest: self.compacted });
        }
        let start = self.changes.partition_point(|change| change.version <= version);
        Ok(self.changes.range(start..))
    }

    /// Forgets the changes up to and including a version, so that whoever watches from before has to list anew.
    #[cfg(test)]
    pub(crate) fn compact(&mut self, version: u64) {
        let version = version.min(self.version);
        while self.changes.front().is_some_and(|change| change.version <= version) {
            self.changes.pop_front();
        }
        self.compacted = self.compacted.max(version);
    }

    fn next_version(&mut self, mut object: Value) -> Value {
        self.version += 1;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), json!(self.version.to_string()));
        }
        object
    }

    fn log(&mut self, change: Change) {
        self.changes.push_back(change);
        while self.changes.len() > MAX_CHANGES {
            if let Some(oldest) = self.changes.pop_front() {
                self.compacted = oldest.version;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::namespaced("", "ConfigMap", namespace, name)
    }

    fn object(name: &str, text: &str) -> Value {
        json!({"metadata": {"name": name}, "data": {"text": text}})
    }

    fn texts(objects: &BTreeMap<ObjectKey, Arc<Value>>) -> Vec<(&str, &str)> {
        objects
            .iter()
            .map(|(key, object)| {
                (key.name.as_str(), object.pointer("/data/text").and_then(Value::as_str).unwrap_or(""))
            })
            .collect()
    }

    #[test]
    fn every_change_has_a_version_and_stands_in_the_log() {
        let mut store = Store::default();
        store.put(key("a", "x"), object("x", "1"));
        store.put(key("a", "x"), object("x", "2"));
        store.put(key("b", "y"), object("y", "1"));
        let gone = store.remove(&key("a", "x")).unwrap();
        assert_eq!(gone.pointer("/metadata/resourceVersion"), Some(&json!("4")));
        assert!(store.remove(&key("a", "x")).is_none());
        let seen: Vec<_> =
            store.changes_since(1).unwrap().map(|c| (c.version, c.kind, c.key.name.clone())).collect();
        assert_eq!(
            seen,
            [
                (2, ChangeKind::Modified, "x".to_owned()),
                (3, ChangeKind::Added, "y".to_owned()),
                (4, ChangeKind::Deleted, "x".to_owned())
            ]
        );
        assert_eq!(store.changes_since(99).unwrap().count(), 0);
    }

    #[test]
    fn lists_are_of_one_kind_and_namespace() {
        let mut store = Store::default();
        for (namespace, name) in [("b", "z"), ("a", "y"), ("a", "x")] {
            store.put(key(namespace, name), object(name, ""));
        }
        store.put(ObjectKey::namespaced("", "Secret", "a", "s"), object("s", ""));
        let names = |namespace| {
            store.list("", "ConfigMap", namespace).map(|(key, _)| key.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["x", "y", "z"]);
        assert_eq!(names(Some("a")), ["x", "y"]);
        assert_eq!(names(Some("c")), [""; 0]);
    }

    #[test]
    fn the_past_is_seen_until_it_is_compacted() {
        let mut store = Store::default();
        store.put(key("a", "x"), object("x", "1"));
        store.put(key("a", "y"), object("y", "1"));
        store.put(key("a", "x"), object("x", "2"));
        store.remove(&key("a", "y"));
        store.put(key("a", "z"), object("z", "1"));
        let at = |store: &Store, version| {
            texts(&store.list_at("", "ConfigMap", Some("a"), version).unwrap())
                .into_iter()
                .map(|(name, text)| format!("{name}{text}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(at(&store, 0), [""; 0]);
        assert_eq!(at(&store, 2), ["x1", "y1"]);
        assert_eq!(at(&store, 3), ["x2", "y1"]);
        assert_eq!(at(&store, 5), ["x2", "z1"]);
        store.compact(2);
        assert_eq!(at(&store, 3), ["x2", "y1"]);
        let refused = Compacted { asked: 1, oldest: 2 };
        assert_eq!(store.list_at("", "ConfigMap", None, 1).err(), Some(refused));
        assert_eq!(store.changes_since(1).err(), Some(refused));
    }

    #[test]
    fn the_log_is_bounded() {
        let mut store = Store::default();
        for _ in 0..MAX_CHANGES + 10 {
            store.put(key("a", "x"), object("x", ""));
        }
        assert_eq!(store.changes.len(), MAX_CHANGES);
        assert!(store.changes_since(9).is_err());
        assert_eq!(store.changes_since(10).unwrap().count(), MAX_CHANGES);
    }
}
