//! What a release writes and a cluster does not have: keys of config maps, and images.

use serde_json::Value;

/// How deep objects are followed.
const MAX_DEPTH: usize = 24;

/// What kind of thing differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// A key that is not there.
    Missing,
    /// An image.
    Image,
    /// A value of a config map: it may be somebody's own.
    Value,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) what: Written,
    /// The field, as people write it.
    pub(crate) field: String,
    /// What the cluster has, if it may be shown.
    pub(crate) found: Option<String>,
    /// The key under `data`.
    pub(crate) key: Option<String>,
    /// Of an image: its place in the cluster's object, as a JSON pointer, and what the release writes there.
    pub(crate) image: Option<(String, String)>,
}

/// The differences that matter here. What the cluster has beyond the release is not its affair.
pub(crate) fn differences(declared: &Value, live: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let kind = declared.get("kind").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "ConfigMap" => keys(declared, live, &mut found),
        // What is in a secret is compared where secrets must agree, and nowhere else.
        "Secret" => {}
        _ => images(declared, live, &At::default(), &mut found),
    }
    found
}

fn keys(declared: &Value, live: &Value, found: &mut Vec<Difference>) {
    let data = |object: &Value| object.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
    let live = data(live);
    for (name, value) in data(declared) {
        let field = format!(".data[\"{name}\"]");
        match live.get(&name) {
            None => found.push(Difference {
                what: Written::Missing,
                field,
                found: None,
                key: Some(name),
                image: None,
            }),
            Some(other) if *other != value => found.push(Difference {
                what: Written::Value,
                field,
                found: Some("another value".to_owned()),
                key: Some(name),
                image: None,
            }),
            Some(_) => {}
        }
    }
}

/// A place in two objects.
#[derive(Default)]
struct At {
    /// As people write it.
    field: String,
    /// In the cluster's object.
    pointer: String,
    depth: usize,
}

impl At {
    fn step(&self, field: &str, pointer: &str) -> Self {
        let pointer = pointer.replace('~', "~0").replace('/', "~1");
        Self {
            field: format!("{}{field}", self.field),
            pointer: format!("{}/{pointer}", self.pointer),
            depth: self.depth + 1,
        }
    }

    /// Does a text of this name hold an image here? The tags of a stream write `from: {kind, name}`.
    fn holds_image(&self, name: &str) -> bool {
        let is_from = self.field.rsplit('.').next() == Some("from") && self.field.contains(".tags[");
        name == "image" || name == "reference" || name == "name" && is_from
    }
}

/// Images at the same place: `image` of containers, `reference` of volumes, `from.name` of a stream's tags.
fn images(declared: &Value, live: &Value, at: &At, found: &mut Vec<Difference>) {
    if at.depth > MAX_DEPTH {
        return;
    }
    match (declared, live) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in fields {
                let Some(other) = others.get(name) else { continue };
                let here = at.step(&format!(".{name}"), name);
                match (value, other) {
                    (Value::String(text), Value::String(has)) if at.holds_image(name) && text != has => {
                        found.push(Difference {
                            what: Written::Image,
                            field: here.field,
                            found: Some(has.clone()),
                            key: None,
                            image: Some((here.pointer, text.clone())),
                        });
                    }
                    _ => images(value, other, &here, found),
                }
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            for (index, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str);
                let other = match name {
                    Some(name) => others
                        .iter()
                        .position(|other| other.get("name").and_then(Value::as_str) == Some(name)),
                    None => Some(index),
                };
                if let Some((number, other)) = other.and_then(|number| Some((number, others.get(number)?))) {
                    let shown = name.map_or_else(|| index.to_string(), str::to_owned);
                    images(item, other, &at.step(&format!("[{shown}]"), &number.to_string()), found);
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
    use serde_json::json;

    #[test]
    fn items_are_found_by_name_and_what_is_more_is_nobodys_affair() {
        let declared = json!({"kind": "Deployment", "spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]}});
        let live = json!({"kind": "Deployment", "spec": {"more": 1, "containers": [
            {"name": "injected", "image": "z:1"}, {"name": "b", "image": "y:1"}, {"name": "a", "image": "x:0"}]}});
        let found = differences(&declared, &live);
        assert_eq!(found.len(), 1);
        let one = found.first().unwrap();
        assert_eq!((one.field.as_str(), one.found.as_deref()), (".spec.containers[a].image", Some("x:0")));
        assert_eq!(one.image, Some(("/spec/containers/2/image".to_owned(), "x:1".to_owned())));
    }

    #[test]
    fn keys_that_are_missing_are_told_from_other_values() {
        let declared = json!({"kind": "ConfigMap", "data": {"a": "1", "b": "2", "c": "3"}});
        let live = json!({"kind": "ConfigMap", "data": {"a": "1", "b": "other", "own": "x"}});
        let found: Vec<_> = differences(&declared, &live).into_iter().map(|it| (it.what, it.key)).collect();
        assert_eq!(found, [(Written::Value, Some("b".to_owned())), (Written::Missing, Some("c".to_owned()))]);
        assert_eq!(differences(&json!({"kind": "Secret", "data": {"a": "1"}}), &json!({})), []);
    }
}
