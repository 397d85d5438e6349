//! Writing images by digest.

use std::collections::BTreeMap;

use scantling_image::Reference;
use serde::Serialize;
use serde_json::Value;

/// References as the release writes them, and the same by digest.
pub type Pins = BTreeMap<String, Reference>;

/// A field that is written otherwise than the release declares it, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adjusted {
    /// The field's path by position, `.spec.tags[0].from.name`.
    pub field: String,
    /// What the release declares; none for a field that it does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// What is written.
    pub written: String,
    /// Why, in words.
    pub why: String,
}

/// Replaces every string that is exactly a known reference by the same reference with its digest. Labels and
/// annotations are words about an object, nothing pulls by them; they stay. Returns what was replaced.
pub fn pin(object: &mut Value, pins: &Pins) -> Vec<Adjusted> {
    let mut adjusted = Vec::new();
    let Some(fields) = object.as_object_mut() else { return adjusted };
    for (name, value) in fields {
        if name != "metadata" && name != "status" {
            walk(value, &format!(".{name}"), pins, &mut adjusted);
        }
    }
    adjusted
}

fn walk(value: &mut Value, path: &str, pins: &Pins, adjusted: &mut Vec<Adjusted>) {
    match value {
        Value::String(text) => {
            if let Some(pinned) = pins.get(text.as_str()).filter(|pinned| pinned.written() != text) {
                let declared = std::mem::replace(text, pinned.written().to_owned());
                adjusted.push(Adjusted {
                    field: path.to_owned(),
                    declared: Some(declared),
                    written: text.clone(),
                    why: "the image by its digest".to_owned(),
                });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{path}[{index}]"), pins, adjusted);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                if name != "annotations" && name != "labels" {
                    walk(field, &format!("{path}.{name}"), pins, adjusted);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use scantling_image::Digest;
    use serde_json::json;

    #[test]
    fn images_get_their_digest_and_words_stay() {
        let written = "quay.io/a/b:1";
        let pinned = Reference::parse(written).unwrap().with_digest(&Digest::of(b"x"));
        let pins = Pins::from([(written.to_owned(), pinned.clone())]);
        let mut object = json!({
            "metadata": {"annotations": {"was": written}},
            "spec": {"template": {"metadata": {"annotations": {"was": written}},
                "spec": {"containers": [{"image": written}, {"image": "quay.io/other:1"}]}}},
        });
        let adjusted = pin(&mut object, &pins);
        assert_eq!(adjusted.len(), 1);
        assert_eq!(adjusted[0].field, ".spec.template.spec.containers[0].image");
        assert_eq!(adjusted[0].declared.as_deref(), Some(written));
        assert!(pin(&mut object, &pins).is_empty());
        assert_eq!(object["spec"]["template"]["spec"]["containers"][0]["image"], pinned.written());
        assert_eq!(object["spec"]["template"]["spec"]["containers"][1]["image"], "quay.io/other:1");
        assert_eq!(object["spec"]["template"]["metadata"]["annotations"]["was"], written);
        assert_eq!(object["metadata"]["annotations"]["was"], written);
    }
}
