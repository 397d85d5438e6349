//! PATCH: four media types, one write path.

use http::Method;
use scantling_api::{KindFacts, ObjectKey};
use scantling_merge::{MergeError, json_patch, merge_patch, strategic_merge_patch};
use serde_json::Value;

use super::answer::Answer;
use super::body::{self, Body};
use super::serve::Call;
use super::write::Options;
use super::{ApiServer, Cause, Moment, Status};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl ApiServer {
    /// Patches an object or the part of it that a subresource names.
    pub(super) fn patch(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        debug_assert_eq!(call.method, Method::PATCH);
        let options = call.options()?;
        let kind = body::media_type(call.content_type);
        if kind == APPLY {
            if subresource == Some("scale") {
                return Err(Status::not_modelled("server-side apply of a scale"));
            }
            return self.apply(call, facts, key, subresource, &options, at);
        }
        if call.query.has("force") {
            return Err(Status::options(
                "PatchOptions",
                Cause::forbidden("force", "may not be specified for non-apply patch"),
            ));
        }
        let custom = self.is_custom(facts);
        let mut live = self.live_part(facts, key, subresource)?;
        if let Some((view, _)) = &call.view {
            live = view.show(live)?;
        }
        let patch = || body::json(call.body);
        let (patched, duplicates) = match kind {
            JSON_PATCH => {
                let patch = patch()?;
                (json_patch(&live, &patch.value), patch.duplicates)
            }
            MERGE_PATCH => {
                let patch = patch()?;
                (merge_patch(&live, &patch.value), patch.duplicates)
            }
            STRATEGIC_PATCH if !custom => {
                let patch = patch()?;
                let shown = call.view.as_ref().map_or(facts, |(_, shown)| shown);
                let type_name = Self::type_of_part(shown, subresource);
                (strategic_merge_patch(&self.schema, &type_name, &live, &patch.value), patch.duplicates)
            }
            other => return Err(unsupported(other, custom)),
        };
        let value = patched.map_err(|error| refused(facts, key, &error))?;
        require_unchanged_name(&value, key)?;
        let (object, warnings) = self
            .fit_part(call, facts, subresource, Body { value, duplicates }, options.validation)
            .map_err(unfit)?;
        let updated = self.update_part(at, facts, key, subresource, object, &options)?;
        Ok(Answer { warnings, ..Self::answer_part(200, facts, subresource, updated) })
    }

    fn apply(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
        options: &Options,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        if call.query.get("fieldManager").is_none() {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(Status::options("PatchOptions", cause));
        }
        let body = body::yaml(call.body)?;
        let mut applied = body.value;
        require_named(&mut applied, key)?;
        if let Some((view, shown)) = &call.view {
            if scantling_api::object::gvk(&applied).ok().as_ref() != Some(&shown.gvk) {
                return Err(Status::bad_request(format!(
                    "the applied object is not of the kind {}",
                    shown.gvk
                )));
            }
            applied = view.store(applied);
        }
        let options = Options { force: call.query.flag("force"), ..options.clone() };
        let warnings = super::decode::judge_applied(facts, &body.duplicates, options.validation)?;
        let (code, object) = self.apply_object(at, facts, key, subresource, &applied, &options)?;
        Ok(Answer { warnings, ..Self::answer_part(code, facts, subresource, object) })
    }
}

/// What a patch makes of an object and does not fit is the patch's fault.
fn unfit(status: Status) -> Status {
    if status.code != 400 {
        return status;
    }
    // The object may hold secrets and is not repeated, unlike on a real server.
    let cause = Cause::invalid("patch", &Value::String(String::new()), &status.message);
    Status::invalid(&scantling_api::GroupVersionKind::new("", "", ""), "", vec![cause])
}

/// A patch may not rename.
fn require_unchanged_name(patched: &Value, key: &ObjectKey) -> Result<(), Status> {
    let name = scantling_api::object::name(patched);
    if name == key.name {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        key.name
    )))
}

/// The name in an applied object is that of the path, or absent.
fn require_named(applied: &mut Value, key: &ObjectKey) -> Result<(), Status> {
    let name = scantling_api::object::name(applied);
    if !name.is_empty() && name != key.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        )));
    }
    let namespace = scantling_api::object::namespace(applied);
    if namespace.is_some() && namespace != key.namespace.as_deref() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if let Some(fields) = applied.as_object_mut() {
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("name".into(), key.name.as_str().into());
            if let Some(namespace) = &key.namespace {
                metadata.insert("namespace".into(), namespace.as_str().into());
            }
        }
    }
    Ok(())
}

fn unsupported(got: &str, custom: bool) -> Status {
    let mut known = vec![JSON_PATCH, MERGE_PATCH];
    if !custom {
        known.push(STRATEGIC_PATCH);
    }
    known.push(APPLY);
    Status::unsupported_media_type(got, &known.join(", "))
}

/// A refusal of the merge rules, as a server words it.
pub(super) fn refused(facts: &KindFacts, key: &ObjectKey, error: &MergeError) -> Status {
    match error {
        MergeError::Conflicts(conflicts) => {
            let who = |conflict: &scantling_merge::Conflict| {
                let through = conflict.subresource.as_ref().map(|name| format!(" with subresource {name:?}"));
                let using = conflict.using.as_ref().map(|version| format!(" using {version}"));
                format!("{:?}{}{}", conflict.manager, through.unwrap_or_default(), using.unwrap_or_default())
            };
            let causes = conflicts
                .iter()
                .map(|conflict| (conflict.field.to_string(), format!("conflict with {}", who(conflict))))
                .collect();
            let message = if let [only] = conflicts.as_slice() {
                format!("Apply failed with 1 conflict: conflict with {}: {}", who(only), only.field)
            } else {
                let mut by_manager = std::collections::BTreeMap::<String, Vec<String>>::new();
                for conflict in conflicts {
                    by_manager.entry(who(conflict)).or_default().push(format!("- {}", conflict.field));
                }
                let texts: Vec<String> = by_manager
                    .iter()
                    .map(|(manager, fields)| format!("conflicts with {manager}:\n{}", fields.join("\n")))
                    .collect();
                format!("Apply failed with {} conflicts: {}", conflicts.len(), texts.join("\n"))
            };
            Status::apply_conflict(message, causes)
        }
        MergeError::Refused(message) => Status::bad_request(message.clone()),
        MergeError::Patch(message) => {
            Status::invalid(&facts.gvk, &key.name, vec![Cause::invalid("patch", &Value::Null, message)])
        }
        MergeError::Invalid { misfit, .. } => Status::unexplained(format!(
            "failed to create typed patch object ({}/{}; {}, Kind={}): {misfit}",
            key.namespace.as_deref().unwrap_or_default(),
            key.name,
            facts.gvk.api_version(),
            facts.gvk.kind
        )),
        MergeError::Ownership(_) => Status::internal(error.to_string()),
    }
}
