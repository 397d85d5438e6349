//! A cluster as the product reaches it: reads and writes of whole objects over one client.

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_observed::Observed;
use serde_json::{Value, json};
use tower::{BoxError, Service};

use crate::call::{Payload, call, encode};
use crate::error::ClusterError;
use crate::page::complete;
use crate::served::{Resource, Served};
use crate::stack::{Jitter, stack};

/// The field manager under which everything is applied.
pub const MANAGER: &str = "scantling";
/// Objects asked for in one page of a list: few enough for a small answer, many enough for few requests.
const PAGE: u32 = 250;
/// Pages of one list, so that a server that always says "continue" cannot hold us: 250,000 objects.
const PAGES: u32 = 1000;

/// A cluster: one client for reads, writes and watches.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    jitter: Jitter,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// A change of the cluster. There is no other way to write, so whoever stands between us and the server sees every
/// write as one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Create or merge by server-side apply as [`MANAGER`].
    Apply {
        /// The fields to own. Its `apiVersion`, `kind` and name say which object.
        object: Value,
        /// Take fields from other managers.
        force: bool,
    },
    /// Server-side apply to a subresource as [`MANAGER`], usually `status`.
    ApplySubresource {
        /// The subresource, `status`.
        subresource: String,
        /// The fields to own.
        object: Value,
        /// Take fields from other managers.
        force: bool,
    },
    /// Create; fails when the object exists.
    Create {
        /// The whole object. May have a `generateName`.
        object: Value,
    },
    /// A JSON merge patch (RFC 7386) of an object.
    MergePatch {
        /// `apiVersion`, `kind` and name of the object; the rest is not looked at.
        object: Value,
        /// A subresource, `status`, or the object itself.
        subresource: Option<String>,
        /// The patch.
        patch: Value,
    },
    /// Delete in the background. An object that is not there counts as deleted.
    Delete {
        /// `apiVersion`, `kind` and name of the object.
        object: Value,
        /// Delete only the object with this uid: another one of the same name is not ours.
        uid: Option<String>,
        /// Seconds that a pod may take to end; the server's default if none.
        grace_seconds: Option<u32>,
    },
    /// The same, if the object still is as it was read; else [`ClusterError::Moved`].
    DeleteAsRead {
        /// The object, with the uid and the resource version that were read.
        object: Value,
    },
    /// `POST` to a subresource that starts something, `instantiate` of a `BuildConfig`.
    Post {
        /// `apiVersion`, `kind` and name of the object that has the subresource.
        object: Value,
        /// The subresource.
        subresource: String,
        /// What is posted.
        body: Value,
    },
}

/// A write that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The server's answer: the object as it is now, or `null` when a delete met nothing.
    pub object: Value,
    /// Whether the object did not exist before (status 201).
    pub created: bool,
}

impl Write {
    /// The object that the write is about, as far as it must be named.
    pub fn target(&self) -> &Value {
        match self {
            Self::Apply { object, .. }
            | Self::ApplySubresource { object, .. }
            | Self::Create { object }
            | Self::MergePatch { object, .. }
            | Self::Delete { object, .. }
            | Self::DeleteAsRead { object }
            | Self::Post { object, .. } => object,
        }
    }

    /// Verb and object, for people: `apply ConfigMap a/b`.
    pub fn describe(&self) -> String {
        let verb = match self {
            Self::Apply { .. } | Self::ApplySubresource { .. } => "apply",
            Self::Create { .. } => "create",
            Self::MergePatch { .. } => "patch",
            Self::Delete { .. } | Self::DeleteAsRead { .. } => "delete",
            Self::Post { subresource, .. } => subresource,
        };
        if let Ok(key) = object::key(self.target()) {
            format!("{verb} {key}")
        } else {
            let text = |p: &str| self.target().pointer(p).and_then(Value::as_str).unwrap_or("?");
            format!("{verb} {} {}", text("/kind"), text("/metadata/generateName"))
        }
    }
}

impl Cluster {
    /// A cluster over any HTTP service that speaks the Kubernetes API; see [`stack`].
    pub fn over<S, B>(service: S, seed: u64) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + Send + 'static,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { client: stack(service, seed), jitter: Jitter::new(seed.rotate_left(32)) }
    }

    /// The client itself, for watches and for what is not about whole objects.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Jitter for waits that concern this cluster, drawn from its seed.
    pub fn jitter(&self) -> &Jitter {
        &self.jitter
    }

    /// Asks which kinds the server serves. Ask again after `CustomResourceDefinitions` have been established.
    pub async fn served(&self) -> Result<Served, ClusterError> {
        Served::ask(&self.client).await
    }

    /// One object, or none.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let what = format!("read {}", resource.key(namespace, name));
        let path = resource.item(namespace, name);
        match call(&self.client, Method::GET, &path, Payload::Nothing, &what).await {
            Ok((_, object)) => Ok(Some(complete(object, resource))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The object with a key in the served version of its kind; none when either is missing.
    pub async fn get_by_key(&self, served: &Served, key: &ObjectKey) -> Result<Option<Value>, ClusterError> {
        match served.by_kind(&key.group, &key.kind) {
            Some(resource) => self.get(resource, key.namespace.as_deref(), &key.name).await,
            None => Ok(None),
        }
    }

    /// Every object of a kind, page by page, in one namespace or over all.
    pub async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        label_selector: Option<&str>,
    ) -> Result<Vec<Value>, ClusterError> {
        let mut objects = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..PAGES {
            let page = match self.page(resource, namespace, label_selector, PAGE, next.as_deref()).await {
                Ok(page) => page,
                // The snapshot behind the token is gone: the list starts again, as client-go's pager does.
                Err(ClusterError::Expired { .. }) if next.is_some() => {
                    objects.clear();
                    next = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            objects.extend(page.objects);
            next = page.next;
            if next.is_none() {
                return Ok(objects);
            }
        }
        let what = format!("list {}", resource.plural);
        Err(ClusterError::Malformed { what, message: format!("the list does not end after {PAGES} pages") })
    }

    /// Every object of the given kinds that the server serves: one list for each kind, in one namespace or over all.
    pub async fn observe(
        &self,
        served: &Served,
        kinds: &[GroupVersionKind],
        namespace: Option<&str>,
    ) -> Result<Observed, ClusterError> {
        let mut observed = Observed::new();
        for gvk in kinds {
            let Some(resource) = served.by_gvk(gvk) else { continue };
            let namespace = namespace.filter(|_| resource.namespaced);
            for object in self.list(resource, namespace, None).await? {
                observed.insert(object).map_err(|error| ClusterError::Malformed {
                    what: format!("list {}", resource.plural),
                    message: error.to_string(),
                })?;
            }
        }
        Ok(observed)
    }

    /// What an apply would make of an object, by the server's own word: a dry run, which changes nothing.
    ///
    /// # Errors
    /// As those of the apply. A webhook without dry runs refuses it with [`ClusterError::Invalid`].
    pub async fn foresee(&self, served: &Served, object: &Value) -> Result<Value, ClusterError> {
        let write = Write::Apply { object: object.clone(), force: true };
        let resource = served.of(object)?;
        let item = resource.item(object::namespace(object), object::name(object));
        let path = format!("{item}?fieldManager={MANAGER}&force=true&dryRun=All");
        let payload = Payload::Json("application/apply-patch+yaml", object);
        let what = format!("foresee: {}", write.describe());
        let (_, foreseen) = call(&self.client, Method::PATCH, &path, payload, &what).await?;
        Ok(foreseen)
    }

    /// Makes one change. This is the only function that writes.
    pub async fn write(&self, served: &Served, write: &Write) -> Result<Written, ClusterError> {
        let what = write.describe();
        let target = write.target();
        let resource = served.of(target)?;
        let namespace = target.pointer("/metadata/namespace").and_then(Value::as_str);
        let name = target.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if resource.namespaced && namespace.is_none() {
            return Err(ClusterError::Invalid {
                what,
                message: "the object lives in a namespace but names none".to_owned(),
                fields: vec![".metadata.namespace".to_owned()],
            });
        }
        if name.is_empty() && !matches!(write, Write::Create { .. }) {
            return Err(ClusterError::Invalid {
                what,
                message: "the object has no name".to_owned(),
                fields: vec![".metadata.name".to_owned()],
            });
        }
        let item = resource.item(namespace, name);
        let json_type = "application/json";
        let answer = match write {
            Write::Apply { object, force } => {
                let path = format!("{item}?fieldManager={MANAGER}&force={force}");
                let payload = Payload::Json("application/apply-patch+yaml", object);
                call(&self.client, Method::PATCH, &path, payload, &what).await
            }
            Write::ApplySubresource { subresource, object, force } => {
                let path = format!("{item}/{}?fieldManager={MANAGER}&force={force}", encode(subresource));
                let payload = Payload::Json("application/apply-patch+yaml", object);
                call(&self.client, Method::PATCH, &path, payload, &what).await
            }
            Write::Create { object } => {
                let path = format!("{}?fieldManager={MANAGER}", resource.collection(namespace));
                call(&self.client, Method::POST, &path, Payload::Json(json_type, object), &what).await
            }
            Write::MergePatch { subresource, patch, .. } => {
                let below = subresource.as_ref().map(|s| format!("/{}", encode(s))).unwrap_or_default();
                let path = format!("{item}{below}?fieldManager={MANAGER}");
                let payload = Payload::Json("application/merge-patch+json", patch);
                call(&self.client, Method::PATCH, &path, payload, &what).await
            }
            Write::Delete { uid, grace_seconds, .. } => {
                let mut options = json!({});
                if let Some(uid) = uid {
                    options["preconditions"] = json!({ "uid": uid });
                }
                if let Some(seconds) = grace_seconds {
                    options["gracePeriodSeconds"] = json!(seconds);
                }
                self.delete(&item, options, &what).await
            }
            Write::DeleteAsRead { object } => {
                let (uid, version) = (object::uid(object), object::resource_version(object));
                let read = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
                self.delete(&item, read, &what).await
            }
            Write::Post { subresource, body, .. } => {
                let path = format!("{item}/{}", encode(subresource));
                call(&self.client, Method::POST, &path, Payload::Json(json_type, body), &what).await
            }
        };
        let (status, object) = answer.map_err(|error| match &resource.gvk {
            gvk if gvk.group.is_empty() && gvk.kind == "Secret" => error.without_values(),
            _ => error,
        })?;
        Ok(Written { object, created: status == StatusCode::CREATED })
    }

    /// Deletes in the background. What is not there counts as deleted.
    async fn delete(
        &self,
        item: &str,
        mut options: Value,
        what: &str,
    ) -> Result<(StatusCode, Value), ClusterError> {
        options["apiVersion"] = json!("v1");
        options["kind"] = json!("DeleteOptions");
        options["propagationPolicy"] = json!("Background");
        let payload = Payload::Json("application/json", &options);
        match call(&self.client, Method::DELETE, item, payload, what).await {
            Err(ClusterError::NotFound { .. }) => Ok((StatusCode::OK, Value::Null)),
            other => other,
        }
    }
}
