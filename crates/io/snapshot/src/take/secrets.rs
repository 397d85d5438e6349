//! Secrets without their secrets: values become tokens, the same for the same value.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Bytes of a block of SHA-256, by which HMAC pads its key (RFC 2104).
const BLOCK: usize = 64;
/// Bytes of a token that are written: two values have the same one once in 2^64 pairs.
const TOKEN: usize = 16;
/// How deep values that are JSON are followed. Docker's own configuration has three.
const DEPTH: usize = 8;
/// What of a secret's metadata is kept as it is.
const METADATA: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
];

/// The key from which tokens are made. It is in no file and in no message.
pub struct TokenKey([u8; 32]);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

impl TokenKey {
    /// A key of random bytes; a new one for each snapshot.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Replaces every value of a secret, in its annotations too: tools keep copies there. A value that is a JSON object keeps its keys, and
    /// the texts in it become tokens, so that a password in one secret still compares with the same password in another.
    pub(super) fn hide(&self, secret: &mut Value) {
        let Value::Object(fields) = secret else { return };
        fields.retain(|name, _| {
            matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "type" | "data" | "immutable")
        });
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|name, _| METADATA.contains(&name.as_str()) || name == "annotations");
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                for value in annotations.values_mut() {
                    let token = value.as_str().map(|text| self.token(text.as_bytes()));
                    *value = token.map_or(Value::Null, Value::String);
                }
            }
        }
        match fields.get_mut("data") {
            Some(Value::Object(data)) => {
                for value in data.values_mut() {
                    let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
                    *value = bytes
                        .map_or(Value::Null, |bytes| Value::String(STANDARD.encode(self.hidden(&bytes))));
                }
            }
            Some(other) => *other = Value::Object(Map::new()),
            None => {}
        }
    }

    fn hidden(&self, value: &[u8]) -> String {
        match serde_json::from_slice::<Value>(value) {
            Ok(Value::Object(mut fields)) => {
                fields.values_mut().for_each(|value| self.hide_texts(value, 0));
                Value::Object(fields).to_string()
            }
            _ => self.token(value),
        }
    }

    fn hide_texts(&self, value: &mut Value, depth: usize) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::String(text) => *text = self.token(text.as_bytes()),
            Value::Object(fields) if depth < DEPTH => {
                fields.values_mut().for_each(|value| self.hide_texts(value, depth + 1));
            }
            Value::Array(elements) if depth < DEPTH => {
                for value in elements {
                    self.hide_texts(value, depth + 1);
                }
            }
            other => *other = Value::String(self.token(other.to_string().as_bytes())),
        }
    }

    /// `token:` and half of the HMAC-SHA-256 of a value. The empty value stays empty: it hides nothing, and being empty is a fault of its own.
    fn token(&self, value: &[u8]) -> String {
        if value.is_empty() {
            return String::new();
        }
        let code = hmac(&self.0, value);
        let mut token = "token:".to_owned();
        for byte in code.into_iter().take(TOKEN) {
            // Writing to a string does not fail.
            let _ = write!(token, "{byte:02x}");
        }
        token
    }
}

/// HMAC-SHA-256 (RFC 2104) with a key that is no longer than a block.
fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let padded = |pad: u8| {
        let mut block = [pad; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn the_code_is_that_of_the_standard() {
        // RFC 4231 has keys of 20 bytes and more; a shorter key is the same as one with zeros behind it.
        let mut key = [0u8; 32];
        key[..4].copy_from_slice(b"Jefe");
        let code = hmac(&key, b"what do ya want for nothing?");
        let code = code.iter().fold(String::new(), |code, byte| code + &format!("{byte:02x}"));
        assert_eq!(code, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn equal_values_stay_equal_and_no_value_stays() {
        let encoded = |text: &str| STANDARD.encode(text);
        let secret = |data: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": "a", "namespace": "n", "labels": {"app": "x"}, "generateName": "hunter2-",
                    "annotations": {"note": "hunter2"}, "managedFields": [{"x": "hunter2"}]},
                "data": data, "stringData": {"x": "hunter2"}, "other": "hunter2"})
        };
        let key = TokenKey::new([7; 32]);
        let hidden = |key: &TokenKey, data: Value| {
            let mut object = secret(data);
            key.hide(&mut object);
            assert!(!object.to_string().contains("hunter2"), "{object}");
            assert!(!object.to_string().contains(&encoded("hunter2")), "{object}");
            object
        };
        let text = |object: &Value, pointer: &str| {
            String::from_utf8(STANDARD.decode(object.pointer(pointer).unwrap().as_str().unwrap()).unwrap())
                .unwrap()
        };
        let one = hidden(
            &key,
            json!({"root": encoded("hunter2"), "empty": "", "odd": 5, "more": encoded("hunter3")}),
        );
        let connection = r#"{"endpoints":"https://etcd:2379","userid":"root","password":"hunter2","tls":true,"port":1,"all":["hunter2"]}"#;
        let other = hidden(&key, json!({"etcd_connection": encoded(connection)}));
        let inside: Value = serde_json::from_str(&text(&other, "/data/etcd_connection")).unwrap();
        let root = text(&one, "/data/root");
        assert!(root.starts_with("token:") && root.len() == 38, "{root}");
        assert_eq!(inside["password"], json!(root));
        assert_eq!(inside["all"][0], json!(root));
        assert_eq!(inside["tls"], json!(true));
        assert_ne!(inside["userid"], json!("root"));
        assert_ne!(text(&one, "/data/more"), root);
        assert_eq!((&one["data"]["empty"], &one["data"]["odd"]), (&json!(""), &Value::Null));
        assert_eq!(one["metadata"]["labels"], json!({"app": "x"}));
        let elsewhere = hidden(&TokenKey::new([8; 32]), json!({"root": encoded("hunter2")}));
        assert_ne!(text(&elsewhere, "/data/root"), root, "tokens of two snapshots do not compare");
        assert_eq!(format!("{key:?}"), "<hidden>");
    }
}
