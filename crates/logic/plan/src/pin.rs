//! Writing images by digest.

use std::collections::{BTreeMap, BTreeSet};

use scantling_image::Reference;
use serde_json::Value;

/// References as the release writes them, and the same by digest.
pub type Pins = BTreeMap<String, Reference>;

/// Replaces every string that is exactly a known reference by the same reference with its digest. Labels and
/// annotations are words about an object, nothing pulls by them; they stay. Returns the references that were replaced
/// or were by digest already.
pub fn pin(object: &mut Value, pins: &Pins) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let Some(fields) = object.as_object_mut() else { return used };
    for (name, value) in fields {
        if name != "metadata" && name != "status" {
            walk(value, pins, &mut used);
        }
    }
    used
}

fn walk(value: &mut Value, pins: &Pins, used: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if let Some(pinned) = pins.get(text.as_str()) {
                used.insert(text.clone());
                pinned.written().clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, pins, used)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if name != "annotations" && name != "labels" {
                    walk(field, pins, used);
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
        let used = pin(&mut object, &pins);
        assert_eq!(used, BTreeSet::from([written.to_owned()]));
        assert_eq!(object["spec"]["template"]["spec"]["containers"][0]["image"], pinned.written());
        assert_eq!(object["spec"]["template"]["spec"]["containers"][1]["image"], "quay.io/other:1");
        assert_eq!(object["spec"]["template"]["metadata"]["annotations"]["was"], written);
        assert_eq!(object["metadata"]["annotations"]["was"], written);
    }
}
