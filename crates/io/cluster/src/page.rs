//! Lists page by page, for whoever does not want all of one at once, and what a server says of itself.

use http::Method;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

use crate::call::{Payload, call, encode, exchange};
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::served::Resource;

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its objects, with their `apiVersion` and `kind`.
    pub objects: Vec<Value>,
    /// Where the next page begins; none after the last.
    pub next: Option<String>,
    /// The version of the whole list, the same on all of its pages.
    pub resource_version: String,
}

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its version, `v1.35.4`.
    pub version: String,
    /// Its clock, whole seconds; none if a proxy took it away.
    pub time: Option<Timestamp>,
}

impl Cluster {
    /// One page of a list of at most `limit` objects, in one namespace or over all.
    ///
    /// # Errors
    /// [`ClusterError::Expired`] when the server has forgotten where the next page begins; the list has to start again.
    pub async fn page(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        label_selector: Option<&str>,
        limit: u32,
        next: Option<&str>,
    ) -> Result<Page, ClusterError> {
        let what = format!("list {}", resource.plural);
        let mut path = format!("{}?limit={limit}", resource.collection(namespace));
        if let Some(selector) = label_selector {
            path.push_str("&labelSelector=");
            path.push_str(&encode(selector));
        }
        if let Some(token) = next {
            path.push_str("&continue=");
            path.push_str(&encode(token));
        }
        let (_, mut list) = call(self.client(), Method::GET, &path, Payload::Nothing, &what).await?;
        let mut objects = Vec::new();
        if let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) {
            objects.extend(items.into_iter().map(|item| complete(item, resource)));
        }
        let text =
            |pointer: &str| list.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let next = Some(text("/metadata/continue")).filter(|token| !token.is_empty());
        Ok(Page { objects, next, resource_version: text("/metadata/resourceVersion") })
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// When it does not answer; its version is open to everybody who may ask it at all.
    pub async fn about(&self) -> Result<About, ClusterError> {
        let (head, version) = exchange(
            self.client(),
            Method::GET,
            "/version",
            Payload::Nothing,
            "read the server's version",
            http::Extensions::new(),
        )
        .await?;
        let date = head.headers.get(http::header::DATE).and_then(|date| date.to_str().ok());
        Ok(About {
            version: version.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned(),
            time: date.and_then(|date| rfc2822::parse(date).ok()).map(|zoned| zoned.timestamp()),
        })
    }
}

/// Items of a list carry neither `apiVersion` nor `kind`; both are known from the list.
pub(crate) fn complete(mut object: Value, resource: &Resource) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.entry("apiVersion").or_insert_with(|| Value::String(resource.gvk.api_version()));
        fields.entry("kind").or_insert_with(|| Value::String(resource.gvk.kind.clone()));
    }
    object
}
