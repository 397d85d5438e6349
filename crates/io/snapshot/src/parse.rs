//! One object's text, read.

use std::fmt;

use scantling_api::GroupVersionKind;
use scantling_observed::{Names, NodeRecord, NodeWire, PodRecord, PodWire};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::error::Why;
use crate::index::{INDEX_KIND, INDEX_VERSION};
use crate::limits::LIST_DEPTH;
use crate::piece::{Form, ItemKind};
use crate::prune::prune;
use crate::rules::{Keep, is_known, rule};

/// What an object's text turned out to be.
#[derive(Debug)]
pub(crate) enum Parsed {
    Pod(Box<PodRecord>),
    Node(Box<NodeRecord>),
    Object(Value),
    /// The index of a snapshot of ours.
    Index(Value),
    /// A list.
    Many(Vec<Parsed>),
    /// It does not say what it is, and its list has not said it yet.
    NoKind,
    /// Its kind says nothing about images or configuration.
    PassedOver,
    Bad(Why),
}

/// What the kubelet says about images; of all events, these tell what happened.
const IMAGE_EVENTS: [&str; 8] = [
    "Pulling",
    "Pulled",
    "Failed",
    "BackOff",
    "ErrImageNeverPull",
    "InspectFailed",
    "FailedToInspectImage",
    "ImageGCFailed",
];

/// Reads one object. `of_list` is what its list says that it is.
pub(crate) fn parse(form: Form, text: &[u8], of_list: Option<&ItemKind>, names: &mut Names) -> Parsed {
    match form {
        Form::Json => parse_json(text, of_list, names),
        Form::Yaml => parse_yaml(text, of_list, names),
    }
}

fn parse_json(text: &[u8], of_list: Option<&ItemKind>, names: &mut Names) -> Parsed {
    let mut head = Head::default();
    // Its error, if any, comes again when all of it is read.
    let _ = serde_json::Deserializer::from_slice(text).deserialize_any(HeadVisitor(&mut head));
    let Some(gvk) = head.gvk(of_list) else {
        return match serde_json::from_slice::<IgnoredAny>(text) {
            Ok(_) => Parsed::NoKind,
            Err(error) => Parsed::Bad(malformed(&error)),
        };
    };
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => parsed(serde_json::from_slice::<PodWire<'_>>(text), |pod| {
            Parsed::Pod(Box::new(pod.record(names)))
        }),
        ("", "Node") => parsed(serde_json::from_slice::<NodeWire<'_>>(text), |node| {
            Parsed::Node(Box::new(node.record(names)))
        }),
        _ => object(&gvk, |keep| {
            let mut deserializer = serde_json::Deserializer::from_slice(text);
            let value = keep.deserialize(&mut deserializer)?;
            deserializer.end().map(|()| value)
        }),
    }
}

fn parse_yaml(text: &[u8], of_list: Option<&ItemKind>, names: &mut Names) -> Parsed {
    let document = match scantling_yaml::parse(text) {
        Ok(documents) => documents.into_iter().next(),
        Err(error) => return Parsed::Bad(Why::Malformed(error.to_string())),
    };
    let Some(document) = document else { return Parsed::Bad(Why::NotAnObject("nothing".to_owned())) };
    // An item of a list is a list of one element.
    let root = document.root.index(0).filter(|_| document.root.items().len() == 1).unwrap_or(&document.root);
    from_value(root.to_json(), of_list, 0, names)
}

/// Reads a tree, with the lists in it that were not seen when the text was split.
fn from_value(mut value: Value, of_list: Option<&ItemKind>, depth: usize, names: &mut Names) -> Parsed {
    if let Value::Array(elements) = value {
        return many(elements, of_list, depth, names);
    }
    let head = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let head = Head { api_version: head("apiVersion"), kind: head("kind") };
    let Some(gvk) = head.gvk(of_list) else { return Parsed::NoKind };
    if gvk.kind.ends_with("List")
        && let Some(Value::Array(elements)) = value.get_mut("items").map(Value::take)
    {
        let kind = ItemKind::of_list(&gvk.api_version(), &gvk.kind);
        return many(elements, kind.as_ref(), depth, names);
    }
    if is_empty_list(&gvk, &value) {
        return Parsed::Many(Vec::new());
    }
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => parsed(PodRecord::of(&value, names), |pod| Parsed::Pod(Box::new(pod))),
        ("", "Node") => parsed(NodeRecord::of(&value, names), |node| Parsed::Node(Box::new(node))),
        _ => object(&gvk, |keep| keep.deserialize(value)),
    }
}

fn many(elements: Vec<Value>, of_list: Option<&ItemKind>, depth: usize, names: &mut Names) -> Parsed {
    if depth >= LIST_DEPTH {
        return Parsed::Bad(Why::TooDeep);
    }
    Parsed::Many(elements.into_iter().map(|element| from_value(element, of_list, depth + 1, names)).collect())
}

fn parsed<T>(read: Result<T, serde_json::Error>, made: impl FnOnce(T) -> Parsed) -> Parsed {
    match read {
        Ok(read) => made(read),
        Err(error) => Parsed::Bad(malformed(&error)),
    }
}

fn malformed(error: &serde_json::Error) -> Why {
    Why::Malformed(error.to_string())
}

/// An object that is neither pod nor node.
fn object(gvk: &GroupVersionKind, read: impl FnOnce(Keep) -> Result<Value, serde_json::Error>) -> Parsed {
    let Some(rule) = rule(&gvk.group, &gvk.kind) else { return Parsed::PassedOver };
    let mut value = match read(Keep(rule)) {
        Ok(value) => value,
        Err(error) => return Parsed::Bad(malformed(&error)),
    };
    if gvk.kind == INDEX_KIND && INDEX_VERSION.starts_with(&format!("{}/", gvk.group)) {
        return Parsed::Index(value);
    }
    if is_empty_list(gvk, &value) {
        return Parsed::Many(Vec::new());
    }
    if gvk.kind.ends_with("List") && value.get("items").is_some_and(Value::is_array) {
        return Parsed::Bad(Why::TooDeep);
    }
    if is_event(gvk) {
        let reason = value.get("reason").and_then(Value::as_str).unwrap_or_default();
        if !IMAGE_EVENTS.contains(&reason) {
            return Parsed::PassedOver;
        }
    }
    if let Value::Object(fields) = &mut value {
        // Items of some lists do not say what they are.
        fields.entry("apiVersion").or_insert_with(|| Value::String(gvk.api_version()));
        fields.entry("kind").or_insert_with(|| Value::String(gvk.kind.clone()));
    }
    if !is_known(&gvk.group) {
        prune(&mut value);
    }
    Parsed::Object(value)
}

/// Go writes a list without items as `null`.
fn is_empty_list(gvk: &GroupVersionKind, value: &Value) -> bool {
    gvk.kind.ends_with("List") && value.get("items").is_some_and(Value::is_null)
}

fn is_event(gvk: &GroupVersionKind) -> bool {
    gvk.kind == "Event" && matches!(gvk.group.as_str(), "" | "events.k8s.io")
}

/// What an object says of itself, as far as it had to be read.
#[derive(Debug, Default)]
struct Head {
    api_version: Option<String>,
    kind: Option<String>,
}

impl Head {
    /// What it is, by its own words or by those of its list.
    fn gvk(&self, of_list: Option<&ItemKind>) -> Option<GroupVersionKind> {
        let own = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let kind = own(&self.kind).or_else(|| of_list.map(|list| list.kind.clone()))?;
        let api_version = own(&self.api_version).or_else(|| of_list.map(|list| list.api_version.clone()))?;
        Some(GroupVersionKind::from_api_version(&api_version, &kind))
    }
}

/// Reads no more of an object than until it has said what it is, which mostly comes first.
struct HeadVisitor<'a>(&'a mut Head);

impl<'de> Visitor<'de> for HeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while self.0.api_version.is_none() || self.0.kind.is_none() {
            let Some(key) = map.next_key::<Key>()? else { break };
            match key {
                Key::ApiVersion => self.0.api_version = Some(map.next_value()?),
                Key::Kind => self.0.kind = Some(map.next_value()?),
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    ApiVersion,
    Kind,
    #[serde(other)]
    Other,
}
