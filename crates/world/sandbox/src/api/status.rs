//! Refusals, as the API writes them: a `Status` object with code, reason, message and details.
//!
//! Wording follows `k8s.io/apimachinery/pkg/api/errors`, since clients and people read it.

use scantling_api::{GroupVersionKind, KindFacts};
use serde_json::{Value, json};

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Reason, such as `FieldValueInvalid`.
    pub(crate) reason: &'static str,
    /// Path of the field, such as `spec.replicas`.
    pub(crate) field: String,
    /// What is wrong.
    pub(crate) message: String,
}

impl Cause {
    /// A value that is not allowed.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: impl std::fmt::Display) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }

    /// A value that is missing.
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", field: field.into(), message }
    }

    /// A value that may not be there.
    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {detail}") }
    }

    /// A value that occurs twice.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            reason: "FieldValueDuplicate",
            field: field.into(),
            message: format!("Duplicate value: {value}"),
        }
    }

    /// A value that is none of those that exist.
    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|name| format!("\"{name}\"")).collect();
        Self {
            reason: "FieldValueNotSupported",
            field: field.into(),
            message: format!("Unsupported value: {value}: supported values: {}", list.join(", ")),
        }
    }

    /// A text with too many bytes.
    pub(crate) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let message = format!("Too long: may not be more than {limit} bytes");
        Self { reason: "FieldValueTooLong", field: field.into(), message }
    }

    /// A list with too many items.
    pub(crate) fn too_many(field: impl Into<String>, found: usize, limit: usize) -> Self {
        let message = format!("Too many: {found}: must have at most {limit} items");
        Self { reason: "FieldValueTooMany", field: field.into(), message }
    }

    /// A value of the wrong type.
    pub(crate) fn type_invalid(
        field: impl Into<String>,
        value: &Value,
        detail: impl std::fmt::Display,
    ) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Status {
    /// HTTP status code.
    pub(crate) code: u16,
    /// Machine-readable reason, such as `NotFound`; empty when the code says all.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
    /// `details` of the status object, null if there are none.
    pub(crate) details: Value,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    fn about(mut self, group: &str, resource: &str, name: &str) -> Self {
        self.details = json!({"name": name, "group": group, "kind": resource});
        if let Some(details) = self.details.as_object_mut() {
            details.retain(|_, value| *value != json!(""));
        }
        self
    }

    /// The object does not exist.
    pub(crate) fn not_found(kind: &KindFacts, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource(kind));
        Self::new(404, "NotFound", message).about(&kind.gvk.group, &kind.plural, name)
    }

    /// The path leads nowhere.
    pub(crate) fn no_such_resource() -> Self {
        let mut status = Self::new(404, "NotFound", "the server could not find the requested resource");
        status.details = json!({});
        status
    }

    /// The path is not one of a server's at all; answered as plain text.
    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "", "404 page not found")
    }

    /// An object of that name exists.
    pub(crate) fn already_exists(kind: &KindFacts, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource(kind));
        Self::new(409, "AlreadyExists", message).about(&kind.gvk.group, &kind.plural, name)
    }

    /// The object was changed by someone else, or is in a state that does not allow the request.
    pub(crate) fn conflict(kind: &KindFacts, name: &str, detail: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {detail}", resource(kind));
        Self::new(409, "Conflict", message).about(&kind.gvk.group, &kind.plural, name)
    }

    /// The object is another one than the request is about.
    pub(crate) fn precondition(
        gvk: &GroupVersionKind,
        name: &str,
        what: &str,
        wanted: &str,
        found: &str,
    ) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been deleted and then recreated",
            qualified(gvk)
        );
        Self::new(409, "Conflict", message).about(&gvk.group, &gvk.kind, name)
    }

    /// Server-side apply met fields of other managers: one cause for each, as (field, message).
    pub(crate) fn apply_conflict(message: String, causes: Vec<(String, String)>) -> Self {
        let causes: Vec<Value> = causes
            .into_iter()
            .map(|(field, message)| json!({"reason": "FieldManagerConflict", "message": message, "field": field}))
            .collect();
        let mut status = Self::new(409, "Conflict", message);
        status.details = json!({"causes": causes});
        status
    }

    /// Fields of the object are wrong.
    pub(crate) fn invalid(gvk: &GroupVersionKind, name: &str, causes: Vec<Cause>) -> Self {
        let qualified = qualified(gvk);
        let texts: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let all = match texts.as_slice() {
            [only] => only.clone(),
            _ => format!("[{}]", texts.join(", ")),
        };
        let mut status = Self::new(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {all}"))
            .about(&gvk.group, &gvk.kind, name);
        let causes: Vec<Value> = causes
            .into_iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        status.details["causes"] = json!(causes);
        status
    }

    /// Who asks may not do that now, such as write into a namespace that is going away.
    pub(crate) fn forbidden(kind: &KindFacts, name: &str, detail: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {detail}", resource(kind));
        Self::new(403, "Forbidden", message).about(&kind.gvk.group, &kind.plural, name)
    }

    /// The namespace is going away.
    pub(crate) fn terminating(kind: &KindFacts, name: &str, namespace: &str) -> Self {
        let detail =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Self::forbidden(kind, name, &detail);
        let message = format!("namespace {namespace} is being terminated");
        status.details["causes"] =
            json!([{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]);
        status
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The resource knows no such verb.
    pub(crate) fn method_not_allowed() -> Self {
        let mut status = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        status.details = json!({});
        status
    }

    /// None of the accepted types can be produced.
    pub(crate) fn not_acceptable(offered: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {offered}"))
    }

    /// The version that was asked for is no longer known.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The body is too large.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// The body is of a type that cannot be read.
    pub(crate) fn unsupported_media_type(got: &str, supported: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {supported} (got {got:?})"
            ),
        )
    }

    /// A disruption budget or another limit does not allow it now; `retry_after` in seconds.
    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message);
        status.details = json!({"retryAfterSeconds": retry_after});
        status
    }

    /// A failure that a server reports without a reason.
    pub(crate) fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// Options of a request are wrong; `kind` is that of the options.
    pub(crate) fn options(kind: &str, cause: Cause) -> Self {
        Self::invalid(&GroupVersionKind::new("meta.k8s.io", "v1", kind), "", vec![cause])
    }

    /// The object does not fit its type, as a server's decoder or field manager answers.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// What was waited for did not come.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// The real server does this; the sandbox does not model it.
    pub(crate) fn not_modelled(what: impl std::fmt::Display) -> Self {
        Self::new(501, "NotImplemented", format!("the sandbox does not model {what}"))
    }

    /// The `Status` object.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        });
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, field| !field.is_null() && *field != json!(""));
        }
        value
    }
}

/// `Deployment.apps`, `Pod`.
fn qualified(gvk: &GroupVersionKind) -> String {
    if gvk.group.is_empty() { gvk.kind.clone() } else { format!("{}.{}", gvk.kind, gvk.group) }
}

/// `deployments.apps`, `pods`.
fn resource(kind: &KindFacts) -> String {
    if kind.gvk.group.is_empty() {
        kind.plural.clone()
    } else {
        format!("{}.{}", kind.plural, kind.gvk.group)
    }
}
