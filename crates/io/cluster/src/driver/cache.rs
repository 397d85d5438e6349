//! What the driver knows of the cluster.

use std::collections::BTreeSet;

use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_observed::{Observed, slim, slim_secret};
use scantling_reconcile::Interest;
use serde_json::Value;

/// A change of one kind, as a watch tells it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// A new list begins.
    ListBegins,
    /// An object of the list.
    Listed(Value),
    /// The list is whole.
    ListEnds,
    /// An object is there, or has changed.
    Present(Value),
    /// An object is gone.
    Gone(Value),
}

/// All objects of the watched kinds, as last seen.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    observed: Observed,
    /// Keys of the list that is under way, for each kind that is being listed.
    listing: std::collections::BTreeMap<(String, String), BTreeSet<ObjectKey>>,
}

/// Resource versions of one kind grow; a server that names them otherwise cannot be compared.
fn is_older(one: &Value, other: &Value) -> bool {
    let version = |object: &Value| object::resource_version(object).parse::<u64>().ok();
    object::uid(one) == object::uid(other)
        && matches!((version(one), version(other)), (Some(one), Some(other)) if one < other)
}

/// Has it been seen in this very version?
fn is_same(one: &Value, other: &Value) -> bool {
    let version = object::resource_version(one);
    !version.is_empty()
        && object::uid(one) == object::uid(other)
        && version == object::resource_version(other)
}

impl Cache {
    pub(crate) fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Takes in a change; true if it is one. What is older than what the answer of a write has told already is left out,
    /// and so is what nobody looks at.
    pub(crate) fn take(&mut self, gvk: &GroupVersionKind, change: Change, interest: &Interest) -> bool {
        let kind = (gvk.group.clone(), gvk.kind.clone());
        let left_out =
            |object: &Value| Interest::chooses(&gvk.group, &gvk.kind) && !interest.includes(object);
        match change {
            Change::ListBegins => {
                self.listing.insert(kind, BTreeSet::new());
                false
            }
            Change::Listed(object) | Change::Present(object) if left_out(&object) => {
                object::key(&object).is_ok_and(|key| self.observed.remove(&key).is_some())
            }
            Change::Listed(object) => {
                let Ok(key) = object::key(&object) else { return false };
                self.listing.entry(kind).or_default().insert(key);
                self.put(object)
            }
            Change::ListEnds => {
                let listed = self.listing.remove(&kind).unwrap_or_default();
                let gone: Vec<ObjectKey> = self
                    .observed
                    .of_kind(&gvk.group, &gvk.kind)
                    .map(|(key, _)| key.clone())
                    .filter(|key| !listed.contains(key))
                    .collect();
                for key in gone {
                    self.observed.remove(&key);
                }
                // The first list of a kind is news even if it is empty.
                true
            }
            Change::Present(object) => self.put(object),
            Change::Gone(object) => object::key(&object).is_ok_and(|key| {
                self.observed.get(&key).is_some_and(|known| object::uid(known) == object::uid(&object))
                    && self.observed.remove(&key).is_some()
            }),
        }
    }

    /// True if it was not known already.
    fn put(&mut self, object: Value) -> bool {
        let Ok(key) = object::key(&object) else { return false };
        let known = self.observed.get(&key);
        if known.is_some_and(|known| is_older(&object, known) || is_same(&object, known)) {
            return false;
        }
        self.observed.extend([(key, object)]);
        true
    }

    /// Takes in an object that was read by name, without what nobody needs of it.
    pub(crate) fn read(&mut self, key: &ObjectKey, mut object: Value) {
        slim(&mut object);
        slim_secret(&mut object);
        if object::key(&object).is_ok_and(|own| own == *key) {
            self.put(object);
        }
    }

    /// Forgets an object.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.observed.remove(key);
    }

    /// Takes in the answer of a write. True if it tells something new.
    pub(crate) fn wrote(&mut self, key: &ObjectKey, mut answer: Value, deleted: bool) -> bool {
        slim(&mut answer);
        let is_object = object::key(&answer).is_ok_and(|k| k == *key);
        if is_object {
            self.put(answer)
        } else if deleted {
            self.observed.remove(key).is_some()
        } else {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, version: u64) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": version.to_string(),
                "labels": {"notebook-name": name}}})
    }

    fn names(cache: &Cache) -> Vec<(String, String)> {
        let pods = cache.observed().of_kind("", "Pod");
        pods.map(|(key, pod)| (key.name.clone(), object::resource_version(pod).to_owned())).collect()
    }

    #[test]
    fn a_new_list_forgets_what_is_gone_and_old_news_are_no_news() {
        let gvk = GroupVersionKind::new("", "v1", "Pod");
        let mut cache = Cache::default();
        let interest = Interest::default();
        for change in [
            Change::ListBegins,
            Change::Listed(pod("a", 1)),
            Change::Listed(pod("b", 2)),
            Change::ListEnds,
            Change::Present(pod("c", 5)),
        ] {
            cache.take(&gvk, change, &interest);
        }
        let key = ObjectKey::namespaced("", "Pod", "n", "c");
        assert!(cache.wrote(&key, pod("c", 9), false));
        assert!(!cache.wrote(&key, pod("c", 9), false));
        assert!(!cache.take(&gvk, Change::Present(pod("c", 7)), &interest));
        assert!(!cache.take(&gvk, Change::Present(pod("c", 9)), &interest));
        let mut of_others = pod("d", 10);
        of_others["metadata"]["labels"] = json!({"app": "d"});
        assert!(!cache.take(&gvk, Change::Present(of_others), &interest));
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(names(&cache), [pair("a", "1"), pair("b", "2"), pair("c", "9")]);

        for change in [Change::ListBegins, Change::Listed(pod("b", 2)), Change::ListEnds] {
            cache.take(&gvk, change, &interest);
        }
        assert_eq!(names(&cache), [pair("b", "2")]);
        assert!(cache.wrote(&ObjectKey::namespaced("", "Pod", "n", "b"), Value::Null, true));
        assert!(names(&cache).is_empty());
    }
}
