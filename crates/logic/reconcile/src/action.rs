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
        /// For whose sake. Nobody owns it.
        of: ObjectKey,
    },
    /// Delete.
    Delete {
        /// What.
        target: Target,
        /// For whose sake.
        of: ObjectKey,
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
            Self::Apply { object, .. } | Self::Create { object, .. } => object::key(object).ok(),
            Self::Delete { target, .. }
            | Self::PatchStatus { target, .. }
            | Self::Annotate { target, .. }
            | Self::Event { target, .. } => Some(target.key()),
        }
    }

    /// The object for whose sake it is written: while one write for it is refused, what comes after it for the same object waits too.
    pub fn subject(&self) -> Option<ObjectKey> {
        match self {
            Self::Apply { object, .. } => {
                let Some(owner) = object::controller(object) else { return self.key() };
                Some(ObjectKey {
                    group: owner.gvk.group,
                    kind: owner.gvk.kind,
                    namespace: object::namespace(object).map(str::to_owned),
                    name: owner.name,
                })
            }
            Self::Create { of, .. } | Self::Delete { of, .. } => Some(of.clone()),
            Self::PatchStatus { .. } | Self::Annotate { .. } | Self::Event { .. } => self.key(),
        }
    }

    /// What is done, in a word: with it, writes to one object are told apart.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Create { .. } => "create",
            Self::Delete { .. } => "delete",
            Self::PatchStatus { .. } => "status",
            Self::Annotate { .. } => "annotate",
            Self::Event { .. } => "event",
        }
    }

    /// Is it the same write, the times in it aside?
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::PatchStatus { target, status },
                Self::PatchStatus { target: other_target, status: other },
            ) => target == other_target && timeless(status) == timeless(other),
            (one, other) => one == other,
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
        // A name has at most 253 bytes, and no part of it ends in a sign.
        let about = target.name.get(..236).unwrap_or(&target.name).trim_end_matches(['-', '.']);
        Some(json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{about}.{:.16}", hash.hex()), "namespace": namespace},
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

/// A status without the times of its conditions.
fn timeless(status: &Value) -> Value {
    let mut status = status.clone();
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = condition.as_object_mut() {
            fields.remove("lastTransitionTime");
        }
    }
    status
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn target(name: &str) -> Target {
        Target {
            gvk: GroupVersionKind::new("kubeflow.org", "v1", "Notebook"),
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            uid: Some("u".to_owned()),
            version: None,
        }
    }

    #[test]
    fn what_is_written_for_the_same_object_has_the_same_subject() {
        let lab = ObjectKey::namespaced("kubeflow.org", "Notebook", "n", "lab");
        let owned = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "lab", "namespace": "n", "ownerReferences": [
                {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "name": "lab", "uid": "u", "controller": true},
            ]},
        });
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "lab-volume", "namespace": "n"}});
        let status = |time: &str| Action::PatchStatus {
            target: target("lab"),
            status: json!({"conditions": [{"type": "Ready", "lastTransitionTime": time}]}),
        };
        for action in [
            Action::Apply { object: owned, manager: MANAGER.to_owned(), force: true },
            Action::Create { object: claim, of: lab.clone() },
            Action::Delete { target: target("lab-0"), of: lab.clone() },
            status("1"),
        ] {
            assert_eq!(action.subject(), Some(lab.clone()), "{action:?}");
        }
        assert!(status("1").is_same(&status("2")));
        let other = Action::PatchStatus { target: target("lab"), status: json!({"conditions": []}) };
        assert!(!status("1").is_same(&other));
    }

    #[test]
    fn an_event_has_a_valid_name_whatever_it_is_about() {
        for name in ["lab".to_owned(), "x".repeat(253), format!("{}-.{}", "x".repeat(234), "y".repeat(17))] {
            let event = Action::Event {
                target: target(&name),
                kind: EventKind::Warning,
                reason: "NameTooLong".to_owned(),
                message: "too long".to_owned(),
            };
            let event = event.event("2026-01-01T00:00:00Z").unwrap();
            let given = event["metadata"]["name"].as_str().unwrap();
            assert!(given.len() <= 253 && !given.contains("-.") && !given.contains(".."), "{given}");
            assert_eq!(event["involvedObject"]["name"], name);
        }
    }
}
