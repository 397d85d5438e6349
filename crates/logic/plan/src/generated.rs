//! Secrets whose values are made on the cluster: made once, kept for ever, equal where they must be.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::ObjectKey;
use scantling_release::Generated;
use serde_json::{Map, Value};

/// Characters of a generated value when the release does not say how many: 24 of 62 letters and digits are 142 bits.
const DEFAULT_LENGTH: usize = 24;

/// Two values that must be equal and are not. The values themselves are not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// One place, `Secret ns/name key`.
    pub one: String,
    /// Its object.
    pub one_key: ObjectKey,
    /// The other place.
    pub other: String,
    /// Its object.
    pub other_key: ObjectKey,
}

/// What was decided about one generated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The cluster has it; it stays.
    Kept,
    /// Its partner has it; it gets the same.
    Repeated,
    /// Nobody has it; it is made.
    Made,
}

/// The values of all generated keys. Holds secrets: it has no `Debug` and is never serialised.
pub struct GeneratedValues {
    values: BTreeMap<Place, (String, Origin)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    object: ObjectKey,
    key: String,
    pointer: Option<String>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} key {}", self.object, self.key)?;
        self.pointer.as_ref().map_or(Ok(()), |pointer| write!(f, " at {pointer}"))
    }
}

fn place(generated: &Generated, namespace: Option<&str>) -> Place {
    Place {
        object: ObjectKey {
            group: String::new(),
            kind: generated.kind.clone(),
            namespace: generated.namespace.clone().or_else(|| namespace.map(ToOwned::to_owned)),
            name: generated.name.clone(),
        },
        key: generated.key.clone(),
        pointer: generated.json_pointer.clone(),
    }
}

/// The decoded text under a key of a Secret.
fn text(secret: &Value, key: &str) -> Option<String> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

/// The value at a place, if the Secret has one there.
fn read(live: &BTreeMap<ObjectKey, Value>, place: &Place) -> Option<String> {
    let written = text(live.get(&place.object)?, &place.key)?;
    let value = match &place.pointer {
        None => written,
        Some(pointer) => serde_json::from_str::<Value>(&written).ok()?.pointer(pointer)?.as_str()?.to_owned(),
    };
    Some(value).filter(|v| !v.is_empty())
}

impl GeneratedValues {
    /// Decides every generated value: what the cluster has stays, a partner's value is repeated, and only what nobody
    /// has is made with `make`, which is given the place in words and a length.
    ///
    /// # Errors
    /// The pairs that must be equal and are not, when the cluster has both.
    pub fn decide(
        generated: &[Generated],
        namespace: Option<&str>,
        live: &BTreeMap<ObjectKey, Value>,
        mut make: impl FnMut(&str, usize) -> String,
    ) -> Result<Self, Vec<Disagreement>> {
        let mut disagreements = Vec::new();
        // Values that must be equal form a group around the one that the others name.
        let leader = |entry: &Generated| -> usize {
            let Some(wanted) = &entry.same_as else { return usize::MAX };
            let (name, key) = wanted.split_once('/').unwrap_or((wanted, ""));
            generated
                .iter()
                .position(|g| g.name == name && g.key == key && g.same_as.is_none())
                .unwrap_or(usize::MAX)
        };
        let mut values = BTreeMap::new();
        for (index, first) in generated.iter().enumerate() {
            if leader(first) != usize::MAX {
                continue;
            }
            let group: Vec<&Generated> =
                std::iter::once(first).chain(generated.iter().filter(|g| leader(g) == index)).collect();
            let found: Vec<(Place, Option<String>)> = group
                .iter()
                .map(|g| {
                    let place = place(g, namespace);
                    let value = read(live, &place);
                    (place, value)
                })
                .collect();
            let known = found.iter().find_map(|(place, value)| Some((place, value.clone()?)));
            if let Some((one, known)) = &known {
                for (other, _) in found.iter().filter(|(_, v)| v.as_ref().is_some_and(|v| v != known)) {
                    disagreements.push(Disagreement {
                        one: one.to_string(),
                        one_key: one.object.clone(),
                        other: other.to_string(),
                        other_key: other.object.clone(),
                    });
                }
            }
            let (value, origin) = if let Some((_, value)) = known {
                (value, Origin::Repeated)
            } else {
                let purpose = found.first().map(|(p, _)| p.to_string()).unwrap_or_default();
                (make(&purpose, first.length.unwrap_or(DEFAULT_LENGTH)), Origin::Made)
            };
            for (place, found) in found {
                let origin = if found.is_some() { Origin::Kept } else { origin };
                values.insert(place, (value.clone(), origin));
            }
        }
        if disagreements.is_empty() { Ok(Self { values }) } else { Err(disagreements) }
    }

    /// Whether any key of an object is generated.
    pub fn concerns(&self, key: &ObjectKey) -> bool {
        self.values.keys().any(|place| place.object == *key)
    }

    /// What was decided for each place, without the values.
    pub fn decisions(&self) -> impl Iterator<Item = (String, Origin)> {
        self.values.iter().map(|(place, (_, origin))| (place.to_string(), *origin))
    }

    /// Puts the values into a Secret of the release. A JSON text that says the same as the one in the cluster is taken
    /// from there letter by letter, so that nothing is rewritten for the order of its fields.
    pub fn fill(&self, secret: &mut Value, key: &ObjectKey, live: Option<&Value>) {
        for (place, (value, _)) in self.values.iter().filter(|(place, _)| place.object == *key) {
            let filled = match &place.pointer {
                None => value.clone(),
                Some(pointer) => {
                    let template = text(secret, &place.key).unwrap_or_default();
                    let mut json = serde_json::from_str(&template).unwrap_or(Value::Object(Map::new()));
                    put(&mut json, pointer, Value::String(value.clone()));
                    live.and_then(|live| text(live, &place.key))
                        .filter(|kept| serde_json::from_str::<Value>(kept).is_ok_and(|kept| kept == json))
                        .unwrap_or_else(|| json.to_string())
                }
            };
            if let Some(fields) = secret.as_object_mut() {
                let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
                if let Some(data) = data.as_object_mut() {
                    data.insert(place.key.clone(), Value::String(STANDARD.encode(filled)));
                }
            }
        }
    }
}

/// Sets the value at a JSON pointer (RFC 6901), making the objects on the way.
fn put(json: &mut Value, pointer: &str, value: Value) {
    let mut at = json;
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Some(fields) = at.as_object_mut() else { return };
        at = fields.entry(name).or_insert(Value::Null);
    }
    *at = value;
}

/// Turns `stringData` into `data`, as the server does: `stringData` is never stored, so it could not be compared.
pub fn encode_string_data(object: &mut Value) {
    let Some(fields) =
        object.as_object_mut().filter(|f| f.get("kind").and_then(Value::as_str) == Some("Secret"))
    else {
        return;
    };
    let Some(Value::Object(strings)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let Some(data) = data.as_object_mut() {
        for (key, value) in strings {
            if let Value::String(value) = value {
                data.insert(key, Value::String(STANDARD.encode(value)));
            }
        }
    }
}

/// The object without the values of a Secret, for storing: names of keys stay.
pub fn without_values(key: &ObjectKey, object: &Value) -> Value {
    let mut object = object.clone();
    if key.group.is_empty()
        && key.kind == "Secret"
        && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
    {
        for value in data.values_mut() {
            *value = Value::Null;
        }
    }
    object
}
