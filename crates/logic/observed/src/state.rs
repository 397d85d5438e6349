//! The objects of a cluster.

use std::collections::BTreeMap;
use std::fmt;

use scantling_api::{KeyError, ObjectKey, object};
use serde_json::Value;

use crate::config::{ConfigMap, Secret};
use crate::image_stream::ImageStream;
use crate::node::Node;
use crate::notebook::Notebook;
use crate::notebook_image::NotebookImage;
use crate::pod::Pod;
use crate::record::{NodeRecord, PodRecord, Text};
use crate::view::View;
use crate::workload::{Deployment, Service, StatefulSet};

/// Why something cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObservedError {
    /// An item is no object of the API.
    #[error("item {index} is no Kubernetes object: {source}")]
    Item {
        /// Counted from 0 in the order given.
        index: usize,
        /// What is missing.
        source: KeyError,
    },
    /// The text is not JSON, or not lists of objects.
    #[error("the snapshot does not parse: {0}")]
    Json(#[from] serde_json::Error),
    /// Lists in lists in lists.
    #[error("lists are nested more than {0} deep; kubectl writes one list")]
    Depth(usize),
}

/// The objects of a cluster by their key.
#[derive(Clone, Default, PartialEq)]
pub struct Observed {
    objects: BTreeMap<ObjectKey, Value>,
    /// By namespace and name.
    pub(crate) pods: BTreeMap<(Text, Text), Box<PodRecord>>,
    pub(crate) nodes: BTreeMap<Text, Box<NodeRecord>>,
}

impl Observed {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes objects; one that comes again replaces the one before.
    pub fn from_objects(objects: impl IntoIterator<Item = Value>) -> Result<Self, ObservedError> {
        let mut observed = Self::new();
        for (index, object) in objects.into_iter().enumerate() {
            observed.insert(object).map_err(|source| ObservedError::Item { index, source })?;
        }
        Ok(observed)
    }

    /// Adds or replaces an object.
    pub fn insert(&mut self, object: Value) -> Result<ObjectKey, KeyError> {
        let key = object::key(&object)?;
        self.objects.insert(key.clone(), object);
        Ok(key)
    }

    /// Takes an object away.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Value> {
        self.objects.remove(key)
    }

    /// The object of this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key)
    }

    /// Is there an object of this key?
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.objects.contains_key(key)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Is there nothing?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Every object, in the order of keys: by group, kind, namespace, name.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter()
    }

    /// The objects of one kind.
    pub fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = (&ObjectKey, &Value)> + use<'_> {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        let first =
            ObjectKey { group: group.clone(), kind: kind.clone(), namespace: None, name: String::new() };
        self.objects.range(first..).take_while(move |(key, _)| key.group == group && key.kind == kind)
    }

    /// The objects of a view's kind in one namespace.
    pub fn in_namespace<'a, V: View<'a>>(&'a self, namespace: &str) -> impl Iterator<Item = V> + use<'a, V> {
        let namespace = Some(namespace.to_owned());
        let first = ObjectKey {
            group: V::GROUP.to_owned(),
            kind: V::KIND.to_owned(),
            namespace: namespace.clone(),
            name: String::new(),
        };
        self.objects
            .range(first..)
            .take_while(move |(key, _)| {
                key.group == V::GROUP && key.kind == V::KIND && key.namespace == namespace
            })
            .map(|(_, object)| V::of(object))
    }

    /// Every object of a view's kind.
    pub fn all<'a, V: View<'a>>(&'a self) -> impl Iterator<Item = V> + use<'a, V> {
        self.of_kind(V::GROUP, V::KIND).map(|(_, object)| V::of(object))
    }

    /// One object of a view's kind, by namespace and name; an empty namespace means an object of the cluster.
    pub fn one<'a, V: View<'a>>(&'a self, namespace: &str, name: &str) -> Option<V> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty()).map(str::to_owned);
        let key = ObjectKey {
            group: V::GROUP.to_owned(),
            kind: V::KIND.to_owned(),
            namespace,
            name: name.to_owned(),
        };
        self.objects.get(&key).map(V::of)
    }

    /// Every pod.
    pub fn pods(&self) -> impl Iterator<Item = Pod<'_>> {
        self.all()
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        self.all()
    }

    /// Every image stream.
    pub fn image_streams(&self) -> impl Iterator<Item = ImageStream<'_>> {
        self.all()
    }

    /// Every config map.
    pub fn config_maps(&self) -> impl Iterator<Item = ConfigMap<'_>> {
        self.all()
    }

    /// Every secret.
    pub fn secrets(&self) -> impl Iterator<Item = Secret<'_>> {
        self.all()
    }

    /// Every notebook.
    pub fn notebooks(&self) -> impl Iterator<Item = Notebook<'_>> {
        self.all()
    }

    /// Every entry of the catalogue of notebook images.
    pub fn notebook_images(&self) -> impl Iterator<Item = NotebookImage<'_>> {
        self.all()
    }

    /// Every stateful set.
    pub fn stateful_sets(&self) -> impl Iterator<Item = StatefulSet<'_>> {
        self.all()
    }

    /// Every deployment.
    pub fn deployments(&self) -> impl Iterator<Item = Deployment<'_>> {
        self.all()
    }

    /// Every service.
    pub fn services(&self) -> impl Iterator<Item = Service<'_>> {
        self.all()
    }
}

impl fmt::Debug for Observed {
    /// Keys only: objects may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.objects.keys().map(|key| format!("{key:#}"))).finish()
    }
}

impl Extend<(ObjectKey, Value)> for Observed {
    fn extend<T: IntoIterator<Item = (ObjectKey, Value)>>(&mut self, objects: T) {
        self.objects.extend(objects);
    }
}
