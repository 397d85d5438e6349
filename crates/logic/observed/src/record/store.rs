//! Records beside objects: whoever asks gets all pods and nodes, however they are held.

use std::borrow::Cow;

use scantling_api::ObjectKey;
use serde_json::Value;

use super::names::Names;
use super::node::NodeRecord;
use super::pod::PodRecord;
use crate::state::Observed;

/// An object that says it is a pod or a node, and is not.
#[derive(Debug, thiserror::Error)]
#[error("{key} cannot be read: {source}")]
pub struct RecordError {
    /// Which.
    pub key: ObjectKey,
    /// The field and what is wrong with it.
    pub source: serde_json::Error,
}

impl Observed {
    /// Adds or replaces a pod, held as a record. Views do not see it: what works on a snapshot asks [`Self::pod_records`].
    pub fn insert_pod(&mut self, pod: PodRecord) -> Option<PodRecord> {
        let key = (pod.namespace.clone(), pod.name.clone());
        self.pods.insert(key, Box::new(pod)).map(|pod| *pod)
    }

    /// Adds or replaces a node, held as a record. Views do not see it: what works on a snapshot asks [`Self::node_records`].
    pub fn insert_node(&mut self, node: NodeRecord) -> Option<NodeRecord> {
        self.nodes.insert(node.name.clone(), Box::new(node)).map(|node| *node)
    }

    /// Every pod: those held as records in the order of namespace and name, then those held as objects.
    pub fn pod_records(&self) -> impl Iterator<Item = Result<Cow<'_, PodRecord>, RecordError>> {
        let mut names = Names::new();
        let held = self.pods.values().map(|pod| Ok(Cow::Borrowed(&**pod)));
        held.chain(self.of_kind("", "Pod").map(move |(key, object)| {
            let record = PodRecord::of(object, &mut names);
            record.map(Cow::Owned).map_err(|source| RecordError { key: key.clone(), source })
        }))
    }

    /// Every node: those held as records in the order of names, then those held as objects.
    pub fn node_records(&self) -> impl Iterator<Item = Result<Cow<'_, NodeRecord>, RecordError>> {
        let mut names = Names::new();
        let held = self.nodes.values().map(|node| Ok(Cow::Borrowed(&**node)));
        held.chain(self.of_kind("", "Node").map(move |(key, object)| {
            let record = NodeRecord::of(object, &mut names);
            record.map(Cow::Owned).map_err(|source| RecordError { key: key.clone(), source })
        }))
    }

    /// The record of one pod, if it is held as one.
    pub fn held_pod(&self, namespace: &str, name: &str) -> Option<&PodRecord> {
        self.pods.get(&(namespace.into(), name.into())).map(|pod| &**pod)
    }

    /// The record of one node, if it is held as one.
    pub fn held_node(&self, name: &str) -> Option<&NodeRecord> {
        self.nodes.get(name).map(|node| &**node)
    }

    /// How many pods and nodes are held as records.
    pub fn held_records(&self) -> usize {
        self.pods.len() + self.nodes.len()
    }

    /// The workload that a pod comes from: the farthest owner, so a Deployment and not its `ReplicaSet`. `None` for a pod of its own, and
    /// where the owner is not here.
    pub fn workload_of_record(&self, pod: &PodRecord) -> Option<&Value> {
        let owner = pod.owner.as_ref()?;
        let nearest = self.owner(&owner.group, &owner.kind, Some(&pod.namespace), &owner.name, &owner.uid)?;
        Some(self.owners_of(nearest).into_iter().last().unwrap_or(nearest))
    }
}
