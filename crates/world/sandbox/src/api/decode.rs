//! Bodies to objects: does the value fit the kind's type, and which fields does the type not know?
//!
//! Built-in kinds pass through a Go type on a real server: what the type does not know is lost, null is the same as
//! absent, and a value of another type is refused (`json: cannot unmarshal ...`). Custom resources are pruned by their
//! own schema.

use scantling_api::schema::{DEDUCED, Scalar, Schema, TypeDef, TypeRef};
use scantling_api::{KindFacts, object};
use serde_json::{Value, json};

use super::body;
use super::serve::Call;
use super::write::{FieldValidation, Options};
use super::{ApiServer, Status};

/// Deepest nesting that is looked at; JSON bodies cannot nest deeper.
const MAX_DEPTH: usize = 200;
/// Problems that are named; the rest is counted.
const MAX_PROBLEMS: usize = 20;

impl ApiServer {
    /// Reads the object in a request's body and what is to be said about it.
    pub(super) fn decode(
        &self,
        call: &Call<'_>,
        facts: &KindFacts,
        options: &Options,
    ) -> Result<(Value, Vec<String>), Status> {
        let body = body::read(call.body, call.content_type)?;
        self.fit_view(call, facts, body, options.validation)
    }

    /// Makes a body fit the kind that the client knows, and gives it as it is stored.
    pub(super) fn fit_view(
        &self,
        call: &Call<'_>,
        facts: &KindFacts,
        body: body::Body,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), Status> {
        let Some((view, shown)) = &call.view else { return self.fit(facts, body, validation) };
        let (object, warnings) = self.fit(shown, body, validation)?;
        Ok((view.store(object), warnings))
    }

    /// Makes a body fit its kind, or says why it does not.
    pub(super) fn fit(
        &self,
        facts: &KindFacts,
        body: body::Body,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), Status> {
        let mut object = body.value;
        require_kind(facts, &mut object)?;
        let mut problems: Vec<String> =
            body.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
        if self.is_custom(facts) {
            problems.extend(self.prune(facts, &mut object));
        } else {
            let mut walk = Walk { schema: &self.schema, unknown: Vec::new(), misfit: None };
            walk.value(&TypeRef::named(facts.type_name.as_str()), &mut object, &mut String::new(), 0);
            if let Some(misfit) = walk.misfit {
                return Err(Status::bad_request(format!(
                    "{} in version \"{}\" cannot be handled as a {}: {misfit}",
                    facts.gvk.kind, facts.gvk.version, facts.gvk.kind
                )));
            }
            problems.extend(walk.unknown.iter().map(|path| format!("unknown field \"{path}\"")));
        }
        Ok((object, judge(facts, problems, validation)?))
    }
}

/// What is to be said about an applied object: unknown fields are refused when it is merged, so only duplicates are left.
pub(super) fn judge_applied(
    facts: &KindFacts,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    let problems = duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    judge(facts, problems, validation)
}

/// What becomes of unknown and duplicate fields.
fn judge(
    facts: &KindFacts,
    problems: Vec<String>,
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(problems.into_iter().take(MAX_PROBLEMS).collect()),
        FieldValidation::Strict if problems.is_empty() => Ok(problems),
        FieldValidation::Strict => {
            let shown: Vec<String> = problems.into_iter().take(MAX_PROBLEMS).collect();
            Err(Status::bad_request(format!(
                "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                facts.gvk.kind,
                facts.gvk.version,
                facts.gvk.kind,
                shown.join(", ")
            )))
        }
    }
}

/// The body must be of the kind that the path names; a body that says nothing is.
fn require_kind(facts: &KindFacts, object: &mut Value) -> Result<(), Status> {
    let Some(fields) = object.as_object_mut() else {
        return Err(Status::bad_request(format!(
            "the body of the request is {}, not an object",
            object::type_name(object)
        )));
    };
    for (field, expected) in [("apiVersion", facts.gvk.api_version()), ("kind", facts.gvk.kind.clone())] {
        match fields.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(written)) if *written == expected || written.is_empty() => {}
            Some(other) => {
                let what = if field == "kind" { "kind" } else { "API version" };
                return Err(Status::bad_request(format!(
                    "the {what} in the data ({}) does not match the expected {what} ({expected})",
                    other.as_str().map_or_else(|| other.to_string(), str::to_owned)
                )));
            }
        }
        fields.insert(field.to_owned(), json!(expected));
    }
    Ok(())
}

/// One pass through an object of a built-in kind.
struct Walk<'s> {
    schema: &'s Schema,
    unknown: Vec<String>,
    misfit: Option<String>,
}

impl Walk<'_> {
    fn value(&mut self, t: &TypeRef, value: &mut Value, path: &mut String, depth: usize) {
        let schema = self.schema;
        let Some(def) = schema.resolve(t) else { return };
        if depth > MAX_DEPTH || t.name() == Some(DEDUCED) {
            return;
        }
        match value {
            Value::Object(fields) => {
                let Some(map) = &def.map else { return self.refuse("object", def, path) };
                let start = path.len();
                if !map.fields.is_empty() {
                    fields.retain(|_, field| !field.is_null());
                }
                fields.retain(|name, field| {
                    push(path, name);
                    let known = map.fields.get(name).map(|facts| &facts.t).or(map.element.as_ref());
                    match known {
                        Some(t) => self.value(t, field, path, depth + 1),
                        None if self.unknown.len() < MAX_PROBLEMS => self.unknown.push(path.clone()),
                        None => {}
                    }
                    path.truncate(start);
                    known.is_some()
                });
            }
            Value::Array(items) => {
                let Some(list) = &def.list else { return self.refuse("array", def, path) };
                let start = path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    path.push('[');
                    path.push_str(&index.to_string());
                    path.push(']');
                    self.value(&list.element, item, path, depth + 1);
                    path.truncate(start);
                }
            }
            Value::Null => {}
            scalar => {
                let fits = matches!(
                    (def.scalar, &*scalar),
                    (Some(Scalar::Untyped), _)
                        | (Some(Scalar::String), Value::String(_))
                        | (Some(Scalar::Number), Value::Number(_))
                        | (Some(Scalar::Boolean), Value::Bool(_))
                );
                if !fits {
                    let found = match scalar {
                        Value::String(_) => "string",
                        Value::Bool(_) => "bool",
                        _ => "number",
                    };
                    self.refuse(found, def, path);
                }
            }
        }
    }

    fn refuse(&mut self, found: &str, def: &TypeDef, path: &str) {
        let wanted = match (&def.scalar, &def.list, &def.map) {
            (Some(Scalar::String), ..) => "string",
            (Some(Scalar::Number), ..) => "number",
            (Some(Scalar::Boolean), ..) => "bool",
            (_, Some(_), _) => "list",
            _ => "object",
        };
        let text = format!("json: cannot unmarshal {found} into Go struct field .{path} of type {wanted}");
        self.misfit.get_or_insert(text);
    }
}

fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::body::Body;
    use super::*;

    fn fit(value: Value, validation: FieldValidation) -> Result<(Value, Vec<String>), Status> {
        let server = ApiServer::new(false);
        let facts = server.kinds.by_kind("apps", "Deployment").unwrap().clone();
        server.fit(&facts, Body { value, duplicates: vec!["spec.x".into()] }, validation)
    }

    #[test]
    fn unknown_and_null_fields_are_lost_and_told() {
        let body = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {
            "replicas": null, "oops": 1, "template": {"spec": {"containers": [{"name": "c", "imagePullPolic": "x"}]}}}});
        let kept = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": {"x": "y"}},
            "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
        let told = [
            "duplicate field \"spec.x\"",
            "unknown field \"spec.oops\"",
            "unknown field \"spec.template.spec.containers[0].imagePullPolic\"",
        ];
        let (object, warnings) = fit(body.clone(), FieldValidation::Warn).unwrap();
        assert_eq!(object, kept);
        assert_eq!(warnings, told);
        assert_eq!(fit(body.clone(), FieldValidation::Ignore), Ok((kept, vec![])));
        let refused = fit(body, FieldValidation::Strict).unwrap_err();
        assert_eq!(refused.code, 400);
        assert!(refused.message.ends_with(&told.join(", ")), "{}", refused.message);
    }

    #[test]
    fn values_of_another_type_are_refused() {
        for (body, part) in [
            (
                json!({"spec": {"replicas": "3"}}),
                "cannot unmarshal string into Go struct field .spec.replicas of type number",
            ),
            (json!({"spec": []}), "array into Go struct field .spec of type object"),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "number into Go struct field .metadata.labels.a of type string",
            ),
            (json!({"spec": {"paused": "yes"}}), "of type bool"),
            (
                json!({"kind": "Pod"}),
                "the kind in the data (Pod) does not match the expected kind (Deployment)",
            ),
            (json!({"apiVersion": "v1"}), "the API version in the data (v1)"),
            (json!([]), "the body of the request is a list"),
        ] {
            let refused = fit(body, FieldValidation::Warn).unwrap_err();
            assert!(refused.code == 400 && refused.message.contains(part), "{}", refused.message);
        }
    }
}
