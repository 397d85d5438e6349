//! Questions that are asked by creating an object: who am I, and may I?
//!
//! The sandbox has no users: everyone may do everything, and the answers say so.

use scantling_api::KindFacts;
use serde_json::{Value, json};

use super::answer::Answer;
use super::body;
use super::serve::Call;
use super::{ApiServer, Status};

/// The one user.
const USER: &str = "system:admin";
const GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

impl ApiServer {
    /// The answer, if the kind is that of a question.
    pub(super) fn review(call: &Call<'_>, facts: &KindFacts) -> Result<Option<Answer>, Status> {
        let group = facts.gvk.group.as_str();
        if group != "authorization.k8s.io" && group != "authentication.k8s.io" {
            return Ok(None);
        }
        let mut review = body::read(call.body, call.content_type)?.value;
        let Some(fields) = review.as_object_mut() else {
            return Err(Status::bad_request("the body of a review is an object"));
        };
        let status = match facts.gvk.kind.as_str() {
            "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
                json!({"allowed": true, "reason": "the sandbox has no access rules"})
            }
            "SelfSubjectReview" => json!({"userInfo": {"username": USER, "groups": GROUPS}}),
            "SelfSubjectRulesReview" => json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
            other => return Err(Status::not_modelled(other)),
        };
        fields.insert("apiVersion".into(), json!(facts.gvk.api_version()));
        fields.insert("kind".into(), json!(facts.gvk.kind));
        let metadata = fields.entry("metadata").or_insert(Value::Null);
        if !metadata.is_object() {
            *metadata = json!({});
        }
        fields.insert("status".into(), status);
        Ok(Some(Answer { code: 201, ..Answer::document(review) }))
    }
}
