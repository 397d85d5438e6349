//! The objects that a release applies.

use std::collections::BTreeMap;

use scantling_api::{GroupVersionKind, Kinds, ObjectKey, object};
use scantling_finding::{Finding, Place, codes};
use scantling_yaml::{Node, Span};
use serde_json::Value;

use crate::Wave;
use crate::source::Source;
use crate::substitution::Substitutions;

/// How deep lists of lists are opened. Kubernetes' tools open one level.
const MAX_LIST_DEPTH: usize = 4;

/// One object as it is applied: placeholders filled, namespace set.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseObject {
    /// The object.
    pub value: Value,
    /// Its identity.
    pub key: ObjectKey,
    /// Group, version and kind as written.
    pub gvk: GroupVersionKind,
    /// Where it begins.
    pub place: Place,
    /// When it is applied.
    pub wave: Wave,
}

/// A document or an item of a list, with the node that it was read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'d> {
    pub(crate) node: &'d Node,
    /// Where places point to: the whole document, or the item.
    pub(crate) span: Span,
}

/// The items of a document: its own root, or the elements of a `List`.
pub(crate) fn items(root: &Node) -> Vec<Item<'_>> {
    let mut found = Vec::new();
    open(root, MAX_LIST_DEPTH, &mut found);
    found
}

fn open<'d>(node: &'d Node, depth: usize, found: &mut Vec<Item<'d>>) {
    let kind = node.get("kind").and_then(Node::as_str).unwrap_or_default();
    let list = node.get("items").filter(|_| kind.ends_with("List") && node.get("apiVersion").is_some());
    match list {
        Some(items) if depth > 0 => items.items().iter().for_each(|item| open(item, depth - 1, found)),
        _ => found.push(Item { node, span: node.span }),
    }
}

/// The kinds that are known: Kubernetes', OpenShift's, and those that the release itself defines.
#[derive(Debug)]
pub(crate) struct Scopes {
    defined: BTreeMap<(String, String), bool>,
}

impl Scopes {
    /// Takes the custom resource definitions out of all items.
    pub(crate) fn of<'d>(items: impl Iterator<Item = &'d Node>) -> Self {
        let defined = items
            .filter(|node| node.get("kind").and_then(Node::as_str) == Some("CustomResourceDefinition"))
            .filter_map(|node| {
                let text = |pointer| Some(node.pointer(pointer)?.as_str()?.to_owned());
                let namespaced = text("/spec/scope")? == "Namespaced";
                Some(((text("/spec/group")?, text("/spec/names/kind")?), namespaced))
            })
            .collect();
        Self { defined }
    }

    /// Whether Kubernetes or OpenShift serve the kind.
    pub(crate) fn built_in(gvk: &GroupVersionKind) -> bool {
        [Kinds::kubernetes(), Kinds::openshift()].iter().any(|k| k.by_kind(&gvk.group, &gvk.kind).is_some())
    }

    /// Whether objects of the kind live in namespaces, if that is known.
    pub(crate) fn namespaced(&self, gvk: &GroupVersionKind) -> Option<bool> {
        [Kinds::kubernetes(), Kinds::openshift()]
            .iter()
            .find_map(|kinds| kinds.by_kind(&gvk.group, &gvk.kind))
            .map(|facts| facts.namespaced)
            .or_else(|| self.defined.get(&(gvk.group.clone(), gvk.kind.clone())).copied())
    }
}

/// How documents become objects.
pub(crate) struct ObjectReader<'r> {
    pub(crate) scopes: &'r Scopes,
    pub(crate) substitutions: &'r Substitutions,
    /// Where namespaced objects without a namespace go.
    pub(crate) namespace: Option<&'r str>,
    /// Whether what is no object is a fault: in a release, not in a plain folder.
    pub(crate) strict: bool,
}

impl ObjectReader<'_> {
    /// Makes an object of an item. None, without finding, for what is no object in a plain folder.
    pub(crate) fn read(
        &self,
        source: &Source<'_>,
        item: Item<'_>,
        findings: &mut Vec<Finding>,
    ) -> Option<ReleaseObject> {
        let mut value = item.node.to_json();
        self.substitutions.fill(&mut value);
        let place = source.place(head(item));
        let identity = object::key(&value).and_then(|key| Ok((key, object::gvk(&value)?)));
        let (mut key, gvk) = match identity {
            Ok(identity) => identity,
            Err(error) => {
                if self.strict {
                    findings.push(Finding::new(codes::release::NOT_AN_OBJECT, error.to_string(), place));
                }
                return None;
            }
        };
        if gvk.group == "kustomize.config.k8s.io" {
            if self.strict {
                findings.push(
                    Finding::new(
                        codes::release::NOT_AN_OBJECT,
                        "a kustomization is not an object of the API",
                        place,
                    )
                    .with_cause("the release applies objects as they are written and builds nothing")
                    .with_remedy("put the output of `kustomize build` among the manifests instead"),
                );
            }
            return None;
        }
        self.settle_namespace(&mut value, &mut key, &gvk, &place, findings);
        let wave = Wave::of(&gvk, Scopes::built_in(&gvk));
        let place = place.with_object(key.to_string());
        Some(ReleaseObject { value, key, gvk, place, wave })
    }

    fn settle_namespace(
        &self,
        value: &mut Value,
        key: &mut ObjectKey,
        gvk: &GroupVersionKind,
        place: &Place,
        findings: &mut Vec<Finding>,
    ) {
        let known = self.scopes.namespaced(gvk);
        if key.namespace.is_some() || known == Some(false) {
            return;
        }
        let place = place.clone().with_object(key.to_string());
        if known.is_none() && self.strict {
            let message = format!("{gvk} is not known");
            findings.push(Finding::new(codes::release::UNKNOWN_KIND, message, place.clone()));
        }
        match self.namespace {
            Some(namespace) => {
                key.namespace = Some(namespace.to_owned());
                if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("namespace".to_owned(), Value::String(namespace.to_owned()));
                }
            }
            None if self.strict => {
                let message = format!("{key} has no namespace");
                findings.push(Finding::new(
                    codes::release::NAMESPACE_MISSING,
                    message,
                    place.with_field(".metadata"),
                ));
            }
            None => {}
        }
    }
}

/// What a place of a whole object points to: its `kind`, which is one line, or its first byte.
fn head(item: Item<'_>) -> Span {
    item.node.get("kind").map_or_else(|| Span::new(item.span.start, item.span.start), |kind| kind.span)
}

/// Objects that are defined more than once.
pub(crate) fn duplicates(objects: &[ReleaseObject]) -> Vec<Finding> {
    let mut first: BTreeMap<&ObjectKey, &ReleaseObject> = BTreeMap::new();
    let mut findings = Vec::new();
    for object in objects {
        if let Some(earlier) = first.get(&object.key) {
            findings.push(
                Finding::new(
                    codes::release::OBJECT_TWICE,
                    format!("{} is defined twice", object.key),
                    object.place.clone(),
                )
                .with_related(earlier.place.clone(), "first defined here"),
            );
        } else {
            first.insert(&object.key, object);
        }
    }
    findings
}
