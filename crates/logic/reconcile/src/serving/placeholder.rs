//! Placeholders in a runtime's container: `{{.Name}}`, `{{.Labels.team}}`.
//!
//! KServe runs the container's text through Go's templates with the service's metadata. A name that is not there becomes `<no value>` there,
//! and the server starts with it; here it is refused.

use scantling_api::object;
use serde_json::Value;

/// Replaces the placeholders in every text of a value.
///
/// # Errors
/// The first placeholder that is not known or has no value, and why.
pub(crate) fn fill(value: &mut Value, service: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => {
            if text.contains("{{") {
                *text = filled(text, service)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, service)),
        Value::Object(fields) => fields.values_mut().try_for_each(|field| fill(field, service)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn filled(text: &str, service: &Value) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        result.push_str(before);
        let Some((inner, after)) = after.split_once("}}") else {
            return Err(format!("{text:?} opens a placeholder and does not close it"));
        };
        result.push_str(value_of(inner.trim(), service)?);
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

fn value_of<'a>(placeholder: &str, service: &'a Value) -> Result<&'a str, String> {
    let known = || {
        format!(
            "the placeholder {{{{{placeholder}}}}} is not known; there are {{{{.Name}}}}, {{{{.Namespace}}}}, {{{{.UID}}}}, {{{{.Labels.KEY}}}} and {{{{.Annotations.KEY}}}}"
        )
    };
    let path = placeholder.strip_prefix('.').ok_or_else(known)?;
    // Go's way to ask for a key that is no identifier.
    let (field, key) = match path.split_once('.') {
        Some((field, key)) => (field, Some(key)),
        None => (path, None),
    };
    let missing = |what: &str, key: &str| {
        format!(
            "the placeholder {{{{{placeholder}}}}} asks for the {what} {key:?}, which the InferenceService does not have: add it, or use another runtime"
        )
    };
    match (field, key) {
        ("Name", None) => Ok(object::name(service)),
        ("Namespace", None) => Ok(object::namespace(service).unwrap_or_default()),
        ("UID", None) => Ok(object::uid(service)),
        ("Labels", Some(key)) => object::label(service, key).ok_or_else(|| missing("label", key)),
        ("Annotations", Some(key)) => {
            object::annotation(service, key).ok_or_else(|| missing("annotation", key))
        }
        _ => Err(known()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_are_filled_or_named() {
        let service = json!({"metadata": {
            "name": "iris", "namespace": "team", "uid": "u", "labels": {"tier": "gold"}, "annotations": {"a": "{{.Name}}"},
        }});
        for (text, expected) in [
            ("--model_name={{.Name}}", Ok("--model_name=iris")),
            ("{{ .Namespace }}/{{.Name}}-{{.UID}}", Ok("team/iris-u")),
            ("{{.Labels.tier}}{{.Annotations.a}}", Ok("gold{{.Name}}")),
            ("{no} {} }}", Ok("{no} {} }}")),
            ("{{.Labels.team}}", Err("asks for the label \"team\"")),
            ("{{.Spec.x}}", Err("is not known")),
            ("{{Name}}", Err("is not known")),
            ("{{.Name.x}}", Err("is not known")),
            ("{{.Name", Err("does not close it")),
            ("{{if .Name}}", Err("is not known")),
        ] {
            let mut value = json!({"args": [text]});
            match (fill(&mut value, &service), expected) {
                (Ok(()), Ok(expected)) => assert_eq!(value["args"][0], expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}
