//! What can go wrong between us and an API server, in types that a caller can decide on.

use kube::core::Status;
use serde::Serialize;

/// One field that another manager owns, as the server reports it when an apply is refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldConflict {
    /// The manager that owns the field, as far as the server names it.
    pub manager: String,
    /// The field's path, `.spec.replicas`.
    pub field: String,
}

/// A request that did not succeed. `what` names verb and object, never content.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The object, its namespace, or its kind does not exist (404).
    #[error("{what}: not found")]
    NotFound {
        /// Verb and object.
        what: String,
    },
    /// A create met an object of the same name (409 `AlreadyExists`).
    #[error("{what}: exists already")]
    AlreadyExists {
        /// Verb and object.
        what: String,
    },
    /// A server-side apply met fields of other managers (409 with `FieldManagerConflict` causes).
    #[error("{what}: {} belong to other field managers ({})", fields(conflicts), owners(conflicts))]
    FieldConflicts {
        /// Verb and object.
        what: String,
        /// Every field named by the server.
        conflicts: Vec<FieldConflict>,
    },
    /// The object has moved since it was read (409 `Conflict` without field causes, or a failed `test` of a patch).
    #[error("{what}: the object has changed since it was read; read it again and repeat ({message})")]
    Moved {
        /// Verb and object.
        what: String,
        /// The server's words.
        message: String,
    },
    /// The resource version asked for is gone (410); list again.
    #[error("{what}: the server no longer has this resource version; list again")]
    Expired {
        /// Verb and object.
        what: String,
    },
    /// The credentials are missing or not accepted (401).
    #[error("{what}: the server does not accept the credentials; log in again or name another context")]
    Unauthenticated {
        /// Verb and object.
        what: String,
    },
    /// The credentials are accepted, the action is not allowed (403).
    #[error("{what}: forbidden: {message}")]
    Forbidden {
        /// Verb and object.
        what: String,
        /// The server's words: which permission is missing.
        message: String,
    },
    /// The server refuses the object or the request (400, 405, 406, 415, 422).
    #[error("{what}: refused by the server: {message}")]
    Invalid {
        /// Verb and object.
        what: String,
        /// The server's words.
        message: String,
        /// The fields named in the causes.
        fields: Vec<String>,
    },
    /// The server serves no such kind; its CRD or API group is missing.
    #[error(
        "{what}: the server does not serve this kind; its CustomResourceDefinition or API group is missing"
    )]
    NotServed {
        /// `apiVersion kind`.
        what: String,
    },
    /// Another status, after the retries that the status allows.
    #[error("{what}: the server answered {status}: {message}")]
    Status {
        /// Verb and object.
        what: String,
        /// The HTTP status code.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// No answer at all, after retries.
    #[error("{what}: no answer from the API server: {message}")]
    Unreachable {
        /// Verb and object.
        what: String,
        /// The innermost cause.
        message: String,
    },
    /// An answer that is not what the Kubernetes API promises.
    #[error("{what}: the answer is not what the Kubernetes API promises: {message}")]
    Malformed {
        /// Verb and object.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// The kubeconfig cannot be used.
    #[error("{what}: {message}")]
    Configuration {
        /// The file.
        what: String,
        /// What is wrong and what to do.
        message: String,
    },
}

impl ClusterError {
    /// Has the server understood and refused what was to be written, so that it helps to change it, or what it may not go beyond?
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Forbidden { .. } | Self::Invalid { .. } | Self::FieldConflicts { .. })
    }
}

fn fields(conflicts: &[FieldConflict]) -> String {
    let fields: Vec<&str> = conflicts.iter().map(|c| c.field.as_str()).collect();
    fields.join(", ")
}

fn owners(conflicts: &[FieldConflict]) -> String {
    let owners: std::collections::BTreeSet<&str> = conflicts.iter().map(|c| c.manager.as_str()).collect();
    owners.into_iter().collect::<Vec<_>>().join(", ")
}

/// The manager in a cause's message: `conflict with "kubectl-edit" using v1`.
fn manager(message: &str) -> String {
    let quoted = message.split('"').nth(1);
    quoted.unwrap_or(message).to_owned()
}

impl ClusterError {
    /// The error for a failed status, read from the server's `Status` object.
    pub(crate) fn from_status(what: &str, code: u16, status: Option<Status>) -> Self {
        let what = what.to_owned();
        let status = status.unwrap_or_default();
        let message = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
        let causes = status.details.map(|d| d.causes).unwrap_or_default();
        match code {
            401 => Self::Unauthenticated { what },
            403 => Self::Forbidden { what, message },
            404 => Self::NotFound { what },
            409 if status.reason == "AlreadyExists" => Self::AlreadyExists { what },
            409 => {
                let conflicts: Vec<FieldConflict> = causes
                    .iter()
                    .filter(|c| c.reason == "FieldManagerConflict")
                    .map(|c| FieldConflict { manager: manager(&c.message), field: c.field.clone() })
                    .collect();
                if conflicts.is_empty() {
                    Self::Moved { what, message }
                } else {
                    Self::FieldConflicts { what, conflicts }
                }
            }
            410 => Self::Expired { what },
            400 | 405 | 406 | 413 | 415 | 422 => {
                let fields = causes.into_iter().map(|c| c.field).filter(|f| !f.is_empty()).collect();
                Self::Invalid { what, message, fields }
            }
            status => Self::Status { what, status, message },
        }
    }

    /// The same without the server's words about an object, which may quote its values: `expected string, got …`.
    pub(crate) fn without_values(self) -> Self {
        match self {
            Self::Invalid { what, fields, .. } => Self::Invalid {
                what,
                message: match fields.as_slice() {
                    [] => "its words are left out, since they may quote a value".to_owned(),
                    fields => format!(
                        "of {}; its words are left out, since they may quote a value",
                        fields.join(", ")
                    ),
                },
                fields,
            },
            other => other,
        }
    }

    /// Whether the object or kind simply is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NotServed { .. })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn error(code: u16, body: serde_json::Value) -> ClusterError {
        ClusterError::from_status("apply ConfigMap a/b", code, Some(serde_json::from_value(body).unwrap()))
    }

    #[test]
    fn a_refused_apply_names_managers_and_fields() {
        let refused = error(
            409,
            json!({"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409,
                "message": "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .data.key",
                "details": {"causes": [{"reason": "FieldManagerConflict",
                    "message": "conflict with \"kubectl-edit\" using v1", "field": ".data.key"}]}}),
        );
        let ClusterError::FieldConflicts { conflicts, .. } = &refused else { panic!("{refused}") };
        assert_eq!(conflicts, &[FieldConflict { manager: "kubectl-edit".into(), field: ".data.key".into() }]);
        assert_eq!(
            refused.to_string(),
            "apply ConfigMap a/b: .data.key belong to other field managers (kubectl-edit)"
        );
    }

    #[test]
    fn what_is_said_of_a_secret_quotes_nothing() {
        let refused = error(
            422,
            json!({"kind": "Status", "reason": "Invalid", "code": 422,
                "message": "Secret \"a\" is invalid: data[token]: Invalid value: \"sesame\"",
                "details": {"causes": [{"reason": "FieldValueInvalid", "message": "\"sesame\"", "field": "data[token]"}]}}),
        );
        assert!(refused.to_string().contains("sesame"));
        let cut = refused.without_values();
        assert!(
            !format!("{cut} {cut:?}").contains("sesame") && cut.to_string().contains("data[token]"),
            "{cut}"
        );
        let typed =
            error(400, json!({"message": "expected string, got &value.valueUnstructured{Value:sesame}"}));
        assert!(!format!("{:?}", typed.without_values()).contains("sesame"));
    }

    #[test]
    fn statuses_are_told_apart() {
        let status = |reason: &str| json!({"kind": "Status", "reason": reason, "message": "why"});
        assert!(matches!(error(409, status("AlreadyExists")), ClusterError::AlreadyExists { .. }));
        assert!(matches!(error(409, status("Conflict")), ClusterError::Moved { .. }));
        assert!(matches!(error(410, status("Expired")), ClusterError::Expired { .. }));
        assert!(matches!(error(422, status("Invalid")), ClusterError::Invalid { .. }));
        assert!(matches!(error(500, status("InternalError")), ClusterError::Status { status: 500, .. }));
        assert!(matches!(ClusterError::from_status("get", 404, None), ClusterError::NotFound { .. }));
    }
}
