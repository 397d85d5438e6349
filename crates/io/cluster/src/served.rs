//! Which kinds the server serves, and under which paths.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use http::{Method, StatusCode};
use scantling_api::{GroupVersionKind, ObjectKey};
use serde::Serialize;
use serde_json::Value;

use crate::call::{Payload, call, call_with, encode};
use crate::error::ClusterError;
use crate::stack::MayBeAway;

/// Versions that are asked about at the same time.
const AT_ONCE: usize = 16;

/// One kind as the server serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// The name in paths, `configmaps`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs that the server offers, `list`, `watch`, `patch`, …
    pub verbs: Vec<String>,
}

impl Resource {
    /// The path of the collection, in one namespace or over all.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let base = if self.gvk.group.is_empty() {
            format!("/api/{}", encode(&self.gvk.version))
        } else {
            format!("/apis/{}/{}", encode(&self.gvk.group), encode(&self.gvk.version))
        };
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("{base}/namespaces/{}/{}", encode(namespace), encode(&self.plural))
            }
            _ => format!("{base}/{}", encode(&self.plural)),
        }
    }

    /// The path of one object.
    pub(crate) fn item(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.collection(namespace), encode(name))
    }

    /// The key of an object of this kind.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            group: self.gvk.group.clone(),
            kind: self.gvk.kind.clone(),
            namespace: namespace.filter(|_| self.namespaced).map(ToOwned::to_owned),
            name: name.to_owned(),
        }
    }

    /// Whether the server offers a verb for this kind.
    pub fn offers(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }
}

/// A version of a group that the server names and could not describe: what it serves of it is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undescribed {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// Why, with what was asked.
    pub why: String,
}

/// Every kind that the server served when it was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// In the server's order of preference for each (group, kind).
    kinds: BTreeMap<(String, String), Vec<Resource>>,
    undescribed: Vec<Undescribed>,
}

impl Served {
    /// One kind, for writes that need not ask first.
    pub(crate) fn only(resource: Resource) -> Self {
        let kind = (resource.gvk.group.clone(), resource.gvk.kind.clone());
        Self { kinds: BTreeMap::from([(kind, vec![resource])]), undescribed: Vec::new() }
    }

    /// Asks the server (`/api`, `/apis` and one request for each group and version).
    pub(crate) async fn ask(client: &kube::Client) -> Result<Self, ClusterError> {
        let (_, core) = call(client, Method::GET, "/api", Payload::Nothing, "discover the core API").await?;
        let mut versions: Vec<(String, String)> =
            strings(core.get("versions")).into_iter().map(|version| (String::new(), version)).collect();
        let (_, groups) = call(client, Method::GET, "/apis", Payload::Nothing, "discover API groups").await?;
        for group in groups.get("groups").and_then(Value::as_array).into_iter().flatten() {
            let name = text(group, "name");
            // The preferred version first, then the others in the server's order.
            let mut of_group: Vec<String> = group
                .get("versions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|v| text(v, "version"))
                .collect();
            if let Some(preferred) = group.get("preferredVersion").map(|v| text(v, "version")) {
                of_group.sort_by_key(|v| *v != preferred);
            }
            versions.extend(of_group.into_iter().map(|version| (name.clone(), version)));
        }
        let answers: Vec<_> = futures::stream::iter(versions)
            .map(|(group, version)| async move {
                let path = if group.is_empty() {
                    format!("/api/{}", encode(&version))
                } else {
                    format!("/apis/{}/{}", encode(&group), encode(&version))
                };
                let what = format!("discover {path}");
                let mut told = http::Extensions::new();
                told.insert(MayBeAway);
                let list = call_with(client, Method::GET, &path, Payload::Nothing, &what, told).await;
                (group, version, list)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut served = Self::default();
        for (group, version, list) in answers {
            served.add(&group, &version, list)?;
        }
        Ok(served)
    }

    fn add(
        &mut self,
        group: &str,
        version: &str,
        list: Result<(StatusCode, Value), ClusterError>,
    ) -> Result<(), ClusterError> {
        let list = match list {
            Ok((_, list)) => list,
            // A group can vanish between the two requests.
            Err(ClusterError::NotFound { .. }) => return Ok(()),
            // An aggregated API whose server is away must not hide all the others (kubectl does the same).
            Err(error @ ClusterError::Status { .. }) => {
                self.undescribed.push(Undescribed {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    why: error.to_string(),
                });
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        for entry in list.get("resources").and_then(Value::as_array).into_iter().flatten() {
            let plural = text(entry, "name");
            if plural.is_empty() || plural.contains('/') {
                continue;
            }
            let kind = text(entry, "kind");
            let resource = Resource {
                gvk: GroupVersionKind {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    kind: kind.clone(),
                },
                plural,
                namespaced: entry.get("namespaced").and_then(Value::as_bool).unwrap_or(false),
                verbs: strings(entry.get("verbs")),
            };
            self.kinds.entry((group.to_owned(), kind)).or_default().push(resource);
        }
        Ok(())
    }

    /// The exact version of a kind.
    pub fn by_gvk(&self, gvk: &GroupVersionKind) -> Option<&Resource> {
        self.by_kind_all(&gvk.group, &gvk.kind).iter().find(|r| r.gvk.version == gvk.version)
    }

    /// The preferred version of a kind.
    pub fn by_kind(&self, group: &str, kind: &str) -> Option<&Resource> {
        self.by_kind_all(group, kind).first()
    }

    fn by_kind_all(&self, group: &str, kind: &str) -> &[Resource] {
        self.kinds.get(&(group.to_owned(), kind.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// The versions of groups that the server could not describe. Kinds of theirs are not among those served, and objects of
    /// such kinds may be there all the same: nobody may take them for absent.
    pub fn undescribed(&self) -> &[Undescribed] {
        &self.undescribed
    }

    /// The kind of an object as written in its `apiVersion` and `kind`.
    pub fn of(&self, object: &Value) -> Result<&Resource, ClusterError> {
        let api_version = text(object, "apiVersion");
        let kind = text(object, "kind");
        let gvk = GroupVersionKind::from_api_version(&api_version, &kind);
        self.by_gvk(&gvk).ok_or_else(|| ClusterError::NotServed { what: format!("{api_version} {kind}") })
    }

    /// The preferred version of every kind, ordered by group and kind.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> {
        self.kinds.values().filter_map(|versions| versions.first())
    }
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect()
}
