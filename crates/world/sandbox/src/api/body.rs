//! Bodies of requests: JSON or YAML to a value, with what is wrong about their keys.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Status, protobuf};

/// Largest body of a request, as on a real server (`MaxRequestBodyBytes`).
pub(super) const MAX_BODY: usize = 3 * 1024 * 1024;
/// Duplicate keys that are named; the rest is not worth the memory.
const MAX_DUPLICATES: usize = 100;

/// A body that has been read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Body {
    /// The value; of a key that occurs twice, the last one counts.
    pub(super) value: Value,
    /// Paths of keys that occur more than once in their mapping.
    pub(super) duplicates: Vec<String>,
}

/// Reads a body of a media type, which may have parameters.
pub(super) fn read(bytes: &[u8], content_type: &str) -> Result<Body, Status> {
    if bytes.len() > MAX_BODY {
        return Err(Status::too_large(MAX_BODY));
    }
    match media_type(content_type) {
        "" | "application/json" => json(bytes),
        "application/yaml" => yaml(bytes),
        protobuf::MEDIA_TYPE => Ok(Body { value: protobuf::read(bytes)?, duplicates: Vec::new() }),
        other => {
            let known = ["application/json", "application/yaml", protobuf::MEDIA_TYPE].join(", ");
            Err(Status::unsupported_media_type(other, &known))
        }
    }
}

/// The media type of a header without its parameters.
pub(super) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Reads JSON.
pub(super) fn json(bytes: &[u8]) -> Result<Body, Status> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Node { path: String::new(), duplicates: &mut duplicates }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| Status::bad_request(format!("the object provided is unrecognized: {error}")))?;
    Ok(Body { value, duplicates })
}

/// Reads one document of YAML (or JSON, which is YAML).
pub(super) fn yaml(bytes: &[u8]) -> Result<Body, Status> {
    if bytes.len() > MAX_BODY {
        return Err(Status::too_large(MAX_BODY));
    }
    // JSON is read as JSON: it is what clients send below YAML's name, and it reports duplicates instead of refusing.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && let Ok(body) = json(bytes)
    {
        return Ok(body);
    }
    let documents = scantling_yaml::parse(bytes)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    match documents.as_slice() {
        [only] => Ok(Body { value: only.root.to_json(), duplicates: Vec::new() }),
        [] => Err(Status::bad_request("the body is empty")),
        _ => Err(Status::bad_request("the body holds more than one document")),
    }
}

/// Reads one value and notes the keys that occur twice.
struct Node<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let item = Node { path: format!("{}[{}]", self.path, list.len()), duplicates: self.duplicates };
            match items.next_element_seed(item)? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if map.contains_key(&key) && self.duplicates.len() < MAX_DUPLICATES {
                self.duplicates.push(path.clone());
            }
            let value = entries.next_value_seed(Node { path, duplicates: self.duplicates })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_read_as_serde_json_reads_it_and_duplicates_are_named() {
        let body = json(br#"{"a": {"b": 1, "b": [{"c": null, "c": 2.5}]}, "d": -1}"#).unwrap();
        assert_eq!(body.value, json!({"a": {"b": [{"c": 2.5}]}, "d": -1}));
        assert_eq!(
            body.duplicates,
            ["a.b[0].c", "a.b"].map(str::to_owned).iter().rev().cloned().collect::<Vec<_>>()
        );
    }

    #[test]
    fn media_types_decide() {
        let value = json!({"a": 1});
        for (bytes, content_type) in [
            (&b"{\"a\":1}"[..], ""),
            (b"{\"a\":1}", "application/json; charset=utf-8"),
            (b"a: 1", "application/yaml"),
            (b"{\"a\":1}", "application/yaml"),
        ] {
            assert_eq!(read(bytes, content_type).unwrap().value, value);
        }
        for (bytes, content_type, code) in [
            (&b"a: 1"[..], "application/json", 400),
            (b"", "application/json", 400),
            (b"a: 1\n---\nb: 2", "application/yaml", 400),
            (b"{}", "application/vnd.kubernetes.protobuf", 400),
            (b"{}", "application/cbor", 415),
        ] {
            assert_eq!(read(bytes, content_type).unwrap_err().code, code);
        }
        assert_eq!(read(&vec![b' '; MAX_BODY + 1], "").unwrap_err().code, 413);
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert_eq!(json("[".repeat(100_000).as_bytes()).unwrap_err().code, 400);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            for content_type in ["application/json", "application/yaml"] {
                if let Err(status) = read(&bytes, content_type) {
                    prop_assert_eq!(status.code, 400);
                }
            }
        }

        #[test]
        fn json_agrees_with_serde_json(text in "[\\[\\]{}\":,a-c0-9.e-]{0,40}") {
            let expected = serde_json::from_str::<Value>(&text).ok();
            prop_assert_eq!(json(text.as_bytes()).ok().map(|body| body.value), expected);
        }
    }
}
