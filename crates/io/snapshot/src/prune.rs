//! Of kinds that nobody here knows: what carries images.

use serde_json::Value;

/// Takes away of an object what carries no images. Its identity and metadata stay.
pub(crate) fn prune(object: &mut Value) {
    let Value::Object(fields) = object else { return };
    fields.retain(|name, value| {
        matches!(name.as_str(), "apiVersion" | "kind" | "metadata") || is_image(name) || keeps(value)
    });
}

/// Prunes a value; false if nothing of it is kept. A mapping that names an image stays whole: its other fields say how it is pulled.
fn keeps(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            if fields.iter().any(|(name, value)| is_image(name) && !value.is_null()) {
                return true;
            }
            fields.retain(|_, value| keeps(value));
            !fields.is_empty()
        }
        Value::Array(elements) => {
            let mut any = false;
            for element in elements {
                // Places in lists stay what they are.
                if keeps(element) {
                    any = true;
                } else if element.is_object() || element.is_array() {
                    *element = Value::Null;
                }
            }
            any
        }
        _ => false,
    }
}

/// Does a field of this name hold an image, or containers?
fn is_image(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["image", "images", "containers"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_carries_images_stays_in_its_place() {
        let mut object = json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
            "spec": {
                "long": {"text": "x", "list": [1, 2]},
                "workers": [{"size": 3}, {"template": {"spec": {"containers": [{"name": "c", "image": "x:1", "env": []}]}}}],
                "side": {"runtimeImage": "y:1", "pullPolicy": "Always"},
            },
            "status": {"conditions": [{"type": "Ready"}]},
        });
        prune(&mut object);
        assert_eq!(
            object,
            json!({
                "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
                "spec": {
                    "workers": [null, {"template": {"spec": {"containers": [{"name": "c", "image": "x:1", "env": []}]}}}],
                    "side": {"runtimeImage": "y:1", "pullPolicy": "Always"},
                },
            })
        );
    }
}
