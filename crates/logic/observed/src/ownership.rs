//! Who made what.

use scantling_api::{ObjectKey, object};
use serde_json::Value;

use crate::notebook::Notebook;
use crate::pod::Pod;
use crate::state::Observed;
use crate::view::View as _;

/// Longest chain of owners that is followed: `CronJob` → Job → Pod has three links, custom kinds add one or two.
const MAX_CHAIN: usize = 8;

impl Observed {
    /// The object that controls this one, if it is here. An object of the same name with another uid is not it.
    pub fn controller_of(&self, object: &Value) -> Option<&Value> {
        let owner = object::controller(object)?;
        self.owner(&owner.gvk.group, &owner.gvk.kind, object::namespace(object), &owner.name, &owner.uid)
    }

    /// The object that an owner reference names, in the namespace of what it owns or in none.
    pub(crate) fn owner(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        uid: &str,
    ) -> Option<&Value> {
        let key = |namespace: Option<&str>| ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let found = self.get(&key(namespace)).or_else(|| self.get(&key(None)))?;
        (object::uid(found) == uid).then_some(found)
    }

    /// The owners of an object from the nearest to the farthest, along the controllers.
    pub fn owners_of<'a>(&'a self, object: &Value) -> Vec<&'a Value> {
        let mut chain: Vec<&'a Value> = Vec::new();
        let mut next = self.controller_of(object);
        while let Some(owner) = next {
            if chain.len() >= MAX_CHAIN || chain.iter().any(|seen| std::ptr::eq(*seen, owner)) {
                break;
            }
            chain.push(owner);
            next = self.controller_of(owner);
        }
        chain
    }

    /// The workload that a pod comes from: the farthest owner, so a Deployment and not its `ReplicaSet`. `None` for a pod of its own.
    pub fn workload_of(&self, pod: Pod<'_>) -> Option<&Value> {
        self.owners_of(pod.object()).into_iter().last()
    }

    /// The notebook that a pod comes from.
    pub fn notebook_of(&self, pod: Pod<'_>) -> Option<Notebook<'_>> {
        let is_notebook = |object: &&Value| {
            object::gvk(object)
                .is_ok_and(|gvk| (gvk.group.as_str(), gvk.kind.as_str()) == ("kubeflow.org", "Notebook"))
        };
        self.owners_of(pod.object()).into_iter().find(is_notebook).map(Notebook::of)
    }

    /// The pods that come from an object, in the order of keys.
    pub fn pods_of<'a>(&'a self, owner: &ObjectKey) -> Vec<Pod<'a>> {
        let Some(owner) = self.get(owner) else { return Vec::new() };
        let is_from =
            |pod: &Pod<'a>| self.owners_of(pod.object()).iter().any(|object| std::ptr::eq(*object, owner));
        self.pods().filter(is_from).collect()
    }
}
