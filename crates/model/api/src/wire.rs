//! The Protocol Buffers form of the API's types: which number each field has.
//!
//! Go clients send built-in kinds in this form. The numbers come from the tags of the Go types, by `cargo xtask api`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireField {
    /// A field of the type itself.
    Field {
        /// Name in JSON.
        name: String,
        /// The text is base64 of bytes that the message holds as they are.
        bytes: bool,
    },
    /// A message whose fields stand inline in JSON.
    Inline(WireMessage),
}

/// The fields of a message by their numbers.
pub type WireMessage = BTreeMap<u32, WireField>;

/// The messages of all types, by the names of the types in the schema.
#[derive(Clone, Debug, Default)]
pub struct Wire(BTreeMap<String, WireMessage>);

impl Wire {
    /// The messages of Kubernetes 1.35.
    pub fn kubernetes() -> &'static Wire {
        static WIRE: OnceLock<Wire> = OnceLock::new();
        WIRE.get_or_init(|| {
            Wire::from_facts(&serde_json::from_str(crate::facts::KUBERNETES).unwrap_or_default())
        })
    }

    /// The message of a type.
    pub fn message(&self, type_name: &str) -> Option<&WireMessage> {
        self.0.get(type_name)
    }

    fn from_facts(facts: &Value) -> Wire {
        let mut wire = Wire::default();
        for (name, t) in facts.get("types").and_then(Value::as_object).into_iter().flatten() {
            let mut message = WireMessage::new();
            for (field, facts) in t.get("fields").and_then(Value::as_object).into_iter().flatten() {
                let bytes = facts.get("bytes") == Some(&Value::Bool(true));
                insert(
                    &mut message,
                    &numbers(facts.get("pb")),
                    WireField::Field { name: field.clone(), bytes },
                );
            }
            if !message.is_empty() {
                wire.0.insert(name.clone(), message);
            }
        }
        wire
    }
}

/// One number, or the numbers of the messages around the field and its own.
fn numbers(written: Option<&Value>) -> Vec<u32> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    match written {
        Some(Value::Array(path)) => path.iter().filter_map(number).collect(),
        Some(value) => number(value).into_iter().collect(),
        None => Vec::new(),
    }
}

fn insert(message: &mut WireMessage, path: &[u32], field: WireField) {
    match path {
        [] => {}
        [number] => {
            message.insert(*number, field);
        }
        [number, rest @ ..] => {
            let inner = message.entry(*number).or_insert_with(|| WireField::Inline(WireMessage::new()));
            if let WireField::Inline(inner) = inner {
                insert(inner, rest, field);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_numbers_of_the_go_types() {
        let wire = Wire::kubernetes();
        let field = |name: &str, bytes| WireField::Field { name: name.to_owned(), bytes };
        let deployment = wire.message("io.k8s.api.apps.v1.Deployment").unwrap();
        let numbered: Vec<_> = deployment.iter().map(|(number, field)| (*number, field.clone())).collect();
        assert_eq!(
            numbered,
            [(1, field("metadata", false)), (2, field("spec", false)), (3, field("status", false))]
        );
        let secret = wire.message("io.k8s.api.core.v1.Secret").unwrap();
        assert_eq!(secret.get(&2), Some(&field("data", true)));
        let volume = wire.message("io.k8s.api.core.v1.Volume").unwrap();
        assert_eq!(volume.get(&1), Some(&field("name", false)));
        let Some(WireField::Inline(source)) = volume.get(&2) else { panic!("{volume:?}") };
        assert_eq!(source.get(&19), Some(&field("configMap", false)));
    }

    #[test]
    fn every_served_kind_has_a_message() {
        for facts in crate::Kinds::kubernetes().iter().filter(|facts| !facts.gvk.version.contains("alpha")) {
            let definition =
                facts.gvk.group == "apiextensions.k8s.io" || facts.gvk.group == "apiregistration.k8s.io";
            let message = Wire::kubernetes().message(&facts.type_name);
            assert!(message.is_some_and(|message| message.contains_key(&1)) || definition, "{}", facts.gvk);
        }
    }
}
