//! What `kubectl` and `oc` do with an API server: the vendor's scripts and people act through it.
//!
//! It is a client like any other, over HTTP requests, and says what the real one says.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, StatusCode};
use scantling_api::GroupVersionKind;
use serde_json::{Value, json};

use crate::bridge::InProcess;

/// The annotation in which client-side apply remembers what it was given.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A command line client.
#[derive(Clone)]
pub(crate) struct Kubectl {
    sandbox: InProcess,
    resources: BTreeMap<GroupVersionKind, Resource>,
    versions: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone)]
struct Resource {
    plural: String,
    singular: String,
    namespaced: bool,
}

/// Why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum KubectlError {
    /// The API server said no.
    #[error("Error from server ({reason}): {message}")]
    Server {
        /// HTTP status.
        code: u16,
        /// The reason of the `Status` object.
        reason: String,
        /// Its message.
        message: String,
    },
    /// The API server has no such kind.
    #[error("error: the server doesn't have a resource type {0:?}")]
    NoSuchKind(String),
    /// An object lacks what every object has.
    #[error("error: {0}")]
    BadObject(String),
}

impl KubectlError {
    /// Whether the object exists already.
    pub(crate) fn already_exists(&self) -> bool {
        matches!(self, Self::Server { reason, .. } if reason == "AlreadyExists")
    }

    /// Whether the object is not there.
    pub(crate) fn not_found(&self) -> bool {
        matches!(self, Self::Server { code: 404, .. })
    }
}

/// What `kubectl apply` says that it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    /// It was not there.
    Created,
    /// It was changed.
    Configured,
    /// It was as wanted.
    Unchanged,
}

impl std::fmt::Display for Applied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        })
    }
}

impl Kubectl {
    /// A client of that sandbox.
    pub(crate) fn new(sandbox: InProcess) -> Self {
        Self { sandbox, resources: BTreeMap::new(), versions: BTreeMap::new() }
    }

    /// `secret/name` as kubectl writes it.
    pub(crate) async fn label(&mut self, object: &Value) -> Result<String, KubectlError> {
        let gvk = gvk_of(object)?;
        let resource = self.resource(&gvk).await?;
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        Ok(if gvk.group.is_empty() {
            format!("{}/{name}", resource.singular)
        } else {
            format!("{}.{}/{name}", resource.singular, gvk.group)
        })
    }

    /// Reads an object of `Kind` or `Kind.group`.
    pub(crate) async fn get(
        &mut self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, KubectlError> {
        let gvk = self.preferred(kind).await?;
        let path = self.path(&gvk, namespace, Some(name)).await?;
        self.call(Method::GET, &path, None, None).await
    }

    /// Lists objects of `Kind` or `Kind.group`.
    pub(crate) async fn list(
        &mut self,
        kind: &str,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> Result<Vec<Value>, KubectlError> {
        let gvk = self.preferred(kind).await?;
        let mut path = self.path(&gvk, namespace, None).await?;
        if let Some(selector) = selector {
            path.push_str("?labelSelector=");
            path.push_str(&selector.replace('=', "%3D").replace('/', "%2F"));
        }
        let mut list = self.call(Method::GET, &path, None, None).await?;
        Ok(match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        })
    }

    /// `kubectl create`.
    pub(crate) async fn create(&mut self, object: &Value, namespace: &str) -> Result<Value, KubectlError> {
        let (object, path) = self.collection(object, namespace).await?;
        self.call(Method::POST, &format!("{path}?fieldManager=kubectl-create"), Some(&object), None).await
    }

    /// `kubectl apply` without `--server-side`: three-way merge of what was given last, what is wanted and what is there.
    pub(crate) async fn apply(&mut self, object: &Value, namespace: &str) -> Result<Applied, KubectlError> {
        let (mut wanted, collection) = self.collection(object, namespace).await?;
        let name = name_of(&wanted)?.to_owned();
        let remembered = serde_json::to_string(&wanted).unwrap_or_default();
        if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(LAST_APPLIED.to_owned(), Value::String(remembered));
            }
        }
        let path = format!("{collection}/{name}");
        let live = match self.call(Method::GET, &path, None, None).await {
            Ok(live) => live,
            Err(error) if error.not_found() => {
                let path = format!("{collection}?fieldManager=kubectl-client-side-apply");
                self.call(Method::POST, &path, Some(&wanted), None).await?;
                return Ok(Applied::Created);
            }
            Err(error) => return Err(error),
        };
        let last: Value = live
            .pointer("/metadata/annotations")
            .and_then(|annotations| annotations.get(LAST_APPLIED))
            .and_then(Value::as_str)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_else(|| json!({}));
        // A Secret's stringData is written, never read back.
        let mut changes = three_way(&last, &wanted, &live);
        if live.get("kind").and_then(Value::as_str) == Some("Secret")
            && string_data_is_there(&wanted, &live)
            && let Some(map) = changes.as_object_mut()
        {
            map.remove("stringData");
        }
        if changes.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(Applied::Unchanged);
        }
        let path = format!("{path}?fieldManager=kubectl-client-side-apply");
        let after =
            self.call(Method::PATCH, &path, Some(&changes), Some("application/merge-patch+json")).await?;
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        Ok(if version(&after) == version(&live) { Applied::Unchanged } else { Applied::Configured })
    }

    /// `kubectl patch --type=merge`.
    pub(crate) async fn patch(
        &mut self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<Value, KubectlError> {
        let gvk = self.preferred(kind).await?;
        let uri = format!("{}?fieldManager=kubectl-patch", self.path(&gvk, namespace, Some(name)).await?);
        self.call(Method::PATCH, &uri, Some(patch), Some("application/merge-patch+json")).await
    }

    /// `kubectl delete`; what depends on the object goes in the background.
    pub(crate) async fn delete(
        &mut self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), KubectlError> {
        let gvk = self.preferred(kind).await?;
        let path = self.path(&gvk, namespace, Some(name)).await?;
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        self.call(Method::DELETE, &path, Some(&options), None).await.map(|_| ())
    }

    async fn collection(&mut self, object: &Value, namespace: &str) -> Result<(Value, String), KubectlError> {
        let gvk = gvk_of(object)?;
        let resource = self.resource(&gvk).await?;
        let mut object = object.clone();
        let mut place = None;
        if resource.namespaced {
            let metadata = object
                .get_mut("metadata")
                .and_then(Value::as_object_mut)
                .ok_or_else(|| KubectlError::BadObject("the object has no metadata".to_owned()))?;
            let namespace = metadata.entry("namespace").or_insert_with(|| json!(namespace));
            place = namespace.as_str().map(str::to_owned);
        }
        let path = self.path(&gvk, place.as_deref(), None).await?;
        Ok((object, path))
    }

    async fn path(
        &mut self,
        gvk: &GroupVersionKind,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<String, KubectlError> {
        let resource = self.resource(gvk).await?;
        let mut path = root(gvk);
        if let (true, Some(namespace)) = (resource.namespaced, namespace) {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&resource.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        Ok(path)
    }

    async fn preferred(&mut self, kind: &str) -> Result<GroupVersionKind, KubectlError> {
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, group),
            None => (kind, ""),
        };
        let kind = kind.to_owned();
        // kubectl knows the groups of the kinds that come with Kubernetes.
        let group = match (group, kind.as_str()) {
            ("", "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet") => "apps",
            ("", "Job" | "CronJob") => "batch",
            (group, _) => group,
        }
        .to_owned();
        if group.is_empty() {
            return Ok(GroupVersionKind { group, version: "v1".to_owned(), kind });
        }
        let versions = if let Some(versions) = self.versions.get(&group) {
            versions.clone()
        } else {
            let found = self.call(Method::GET, &format!("/apis/{group}"), None, None).await;
            let found = found.map_err(|_| KubectlError::NoSuchKind(format!("{kind}.{group}")))?;
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let preferred = found.pointer("/preferredVersion/version").and_then(text);
            let all = found.get("versions").and_then(Value::as_array).into_iter().flatten();
            let mut versions: Vec<String> = all.filter_map(|v| text(v.get("version")?)).collect();
            versions.sort_by_key(|version| Some(version) != preferred.as_ref());
            self.versions.insert(group.clone(), versions.clone());
            versions
        };
        // The preferred version of the group, or else the first that has the kind.
        for version in versions {
            let gvk = GroupVersionKind { group: group.clone(), version, kind: kind.clone() };
            if self.resource(&gvk).await.is_ok() {
                return Ok(gvk);
            }
        }
        Err(KubectlError::NoSuchKind(format!("{kind}.{group}")))
    }

    async fn resource(&mut self, gvk: &GroupVersionKind) -> Result<Resource, KubectlError> {
        if let Some(resource) = self.resources.get(gvk) {
            return Ok(resource.clone());
        }
        let no_such_kind = || KubectlError::NoSuchKind(gvk.to_string());
        let list = self.call(Method::GET, &root(gvk), None, None).await.map_err(|_| no_such_kind())?;
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let resource = list
            .get("resources")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|resource| text(resource, "kind").as_deref() == Some(&gvk.kind))
            .find_map(|resource| {
                let plural = text(resource, "name").filter(|name| !name.contains('/'))?;
                let singular = text(resource, "singularName")
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| gvk.kind.to_lowercase());
                let namespaced = resource.get("namespaced").and_then(Value::as_bool).unwrap_or_default();
                Some(Resource { plural, singular, namespaced })
            })
            .ok_or_else(no_such_kind)?;
        self.resources.insert(gvk.clone(), resource.clone());
        Ok(resource)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: Option<&'static str>,
    ) -> Result<Value, KubectlError> {
        let bad = |error: &dyn std::fmt::Display| KubectlError::BadObject(format!("{path}: {error}"));
        let bytes = match body {
            Some(body) => Bytes::from(serde_json::to_vec(body).map_err(|error| bad(&error))?),
            None => Bytes::new(),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, "application/json")
            .header(http::header::CONTENT_TYPE, content_type.unwrap_or("application/json"))
            .header(http::header::USER_AGENT, "kubectl")
            .body(bytes)
            .map_err(|error| bad(&error))?;
        let response = self.sandbox.request(request).await;
        let status = response.status();
        let value: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        if status.is_success() {
            return Ok(value);
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Err(KubectlError::Server {
            code: status.as_u16(),
            reason: text("reason").unwrap_or_else(|| reason_of(status)),
            message: text("message").unwrap_or_else(|| status.to_string()),
        })
    }
}

fn reason_of(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Unknown").to_owned()
}

fn root(gvk: &GroupVersionKind) -> String {
    if gvk.group.is_empty() {
        format!("/api/{}", gvk.version)
    } else {
        format!("/apis/{}/{}", gvk.group, gvk.version)
    }
}

fn gvk_of(object: &Value) -> Result<GroupVersionKind, KubectlError> {
    scantling_api::object::gvk(object).map_err(|error| KubectlError::BadObject(error.to_string()))
}

fn name_of(object: &Value) -> Result<&str, KubectlError> {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .ok_or_else(|| KubectlError::BadObject("the object has no metadata.name".to_owned()))
}

/// The merge patch that takes `live` to `wanted`, removing what `last` had and `wanted` has no longer; lists are replaced.
fn three_way(last: &Value, wanted: &Value, live: &Value) -> Value {
    let mut patch = serde_json::Map::new();
    let empty = serde_json::Map::new();
    let map = |value: &Value| value.as_object().cloned().unwrap_or_else(|| empty.clone());
    let (last, wanted, live) = (map(last), map(wanted), map(live));
    for (key, value) in &wanted {
        match live.get(key) {
            Some(present) if present == value => {}
            Some(present) if present.is_object() && value.is_object() => {
                let inner = three_way(last.get(key).unwrap_or(&Value::Null), value, present);
                if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in last.keys() {
        if !wanted.contains_key(key) && live.contains_key(key) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    Value::Object(patch)
}

fn string_data_is_there(wanted: &Value, live: &Value) -> bool {
    use base64::Engine as _;
    let Some(texts) = wanted.get("stringData").and_then(Value::as_object) else { return false };
    texts.iter().all(|(key, text)| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
        live.pointer("/data").and_then(|data| data.get(key)).and_then(Value::as_str) == Some(encoded.as_str())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::three_way;

    #[test]
    fn three_way_merge_patches() {
        for (name, last, wanted, live, patch) in [
            ("nothing to do", json!({"a": 1}), json!({"a": 1}), json!({"a": 1, "b": 2}), json!({})),
            ("a change", json!({"a": 1}), json!({"a": 2}), json!({"a": 1}), json!({"a": 2})),
            (
                "a removal",
                json!({"a": 1, "b": 1}),
                json!({"a": 1}),
                json!({"a": 1, "b": 1}),
                json!({"b": null}),
            ),
            ("somebody else's key", json!({}), json!({"a": 1}), json!({"a": 1, "c": 3}), json!({})),
            (
                "nested",
                json!({"m": {"x": 1}}),
                json!({"m": {}}),
                json!({"m": {"x": 1}}),
                json!({"m": {"x": null}}),
            ),
            ("a list", json!({"l": [1]}), json!({"l": [1, 2]}), json!({"l": [1]}), json!({"l": [1, 2]})),
        ] {
            assert_eq!(three_way(&last, &wanted, &live), patch, "{name}");
        }
    }
}
