//! Writes, as data.

use std::collections::BTreeMap;

use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_image::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The field manager of everything that is applied here.
pub const MANAGER: &str = "scantling";

/// Which object is meant. With a uid, no other object of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Namespace; none for objects of the cluster.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// The uid that was seen. The write must fail for an object with another one.
    pub uid: Option<String>,
    /// The resource version that was seen, where the write must fail for an object that has changed since: another process may have
    /// decided the same already.
    pub version: Option<String>,
}

impl Target {
    /// The target that an object is. `None` when it is no object of the API.
    pub fn of(object: &Value) -> Option<Self> {
        let gvk = object::gvk(object).ok()?;
        let uid = Some(object::uid(object)).filter(|uid| !uid.is_empty()).map(str::to_owned);
        Some(Self {
            gvk,
            namespace: object::namespace(object).map(str::to_owned),
            name: object::name(object).to_owned(),
            uid,
            version: None,
        })
    }

    /// The target that an object is, in exactly this state.
    pub fn exactly(object: &Value) -> Option<Self> {
        let version = Some(object::resource_version(object)).filter(|version| !version.is_empty());
        Some(Self { version: version.map(str::to_owned), ..Self::of(object)? })
    }

    /// Its key.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group: self.gvk.group.clone(),
            kind: self.gvk.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// The object as far as it must be named: `apiVersion`, `kind`, name and namespace.
    pub fn stub(&self) -> Value {
        let mut stub = json!({
            "apiVersion": self.gvk.api_version(),
            "kind": self.gvk.kind,
            "metadata": {"name": self.name},
        });
        if let Some(namespace) = &self.namespace {
            stub["metadata"]["namespace"] = json!(namespace);
        }
        stub
    }
}

/// How serious an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// It is as it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Server-side apply.
    Apply {
        /// The fields to own.
        object: Value,
        /// Who owns them.
        manager: String,
        /// Take them from others.
        force: bool,
    },
    /// Create; an object that exists already is an error.
    Create {
        /// The whole object.
        object: Value,
    },
    /// Delete.
    Delete {
        /// What.
        target: Target,
    },
    /// A merge patch of the status; `null` takes a field away.
    PatchStatus {
        /// Of what.
        target: Target,
        /// The fields of the status.
        status: Value,
    },
    /// A merge patch of annotations; `None` takes one away.
    Annotate {
        /// Of what.
        target: Target,
        /// The annotations.
        annotations: BTreeMap<String, Option<String>>,
    },
    /// An event for people. It may be lost.
    Event {
        /// About what.
        target: Target,
        /// How serious.
        kind: EventKind,
        /// A word in `CamelCase`.
        reason: String,
        /// A sentence.
        message: String,
    },
}

impl Action {
    /// The object that is written to.
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Apply { object, .. } | Self::Create { object } => object::key(object).ok(),
            Self::Delete { target }
            | Self::PatchStatus { target, .. }
            | Self::Annotate { target, .. }
            | Self::Event { target, .. } => Some(target.key()),
        }
    }

    /// The body of a merge patch, for the actions that are one. The uid in it makes the server refuse another object of the same name.
    pub fn merge_patch(&self) -> Option<Value> {
        match self {
            Self::PatchStatus { target, status } => {
                let mut patch = json!({"status": status});
                if let Some(uid) = &target.uid {
                    patch["metadata"] = json!({"uid": uid});
                }
                Some(patch)
            }
            Self::Annotate { target, annotations } => {
                let mut metadata = json!({"annotations": annotations});
                if let Some(uid) = &target.uid {
                    metadata["uid"] = json!(uid);
                }
                if let Some(version) = &target.version {
                    metadata["resourceVersion"] = json!(version);
                }
                Some(json!({"metadata": metadata}))
            }
            _ => None,
        }
    }

    /// The `v1` Event to create, for the action that is one. Its name follows from what it says, so that saying the same twice meets the
    /// first. Events of objects of the cluster are in `default`.
    pub fn event(&self, now: &str) -> Option<Value> {
        let Self::Event { target, kind, reason, message } = self else { return None };
        let uid = target.uid.clone().unwrap_or_default();
        let hash = Digest::of(format!("{uid}\n{reason}\n{message}").as_bytes());
        let namespace = target.namespace.as_deref().unwrap_or("default");
        Some(json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{}.{:.16}", target.name, hash.hex()), "namespace": namespace},
            "involvedObject": {
                "apiVersion": target.gvk.api_version(), "kind": target.gvk.kind, "name": target.name,
                "namespace": target.namespace, "uid": uid,
            },
            "type": match kind { EventKind::Normal => "Normal", EventKind::Warning => "Warning" },
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": MANAGER},
            "reportingComponent": MANAGER,
        }))
    }
}
