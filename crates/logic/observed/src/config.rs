//! Config maps and secrets.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::object;
use serde_json::Value;

use crate::view::{View as _, view};

view!(
    /// A config map.
    ConfigMap, "", "ConfigMap"
);

impl<'a> ConfigMap<'a> {
    /// Its text, by key.
    pub fn data(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let data = object::mapping(self.object(), "/data");
        data.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// The text of one key.
    pub fn get(self, key: &str) -> Option<&'a str> {
        self.object().get("data")?.get(key)?.as_str()
    }

    /// Keys of `binaryData`.
    pub fn binary_keys(self) -> impl Iterator<Item = &'a str> {
        object::mapping(self.object(), "/binaryData").into_iter().flatten().map(|(key, _)| key.as_str())
    }
}

/// A secret. Its values are in no `Debug` output.
#[derive(Clone, Copy, PartialEq)]
pub struct Secret<'a>(&'a Value);

impl<'a> crate::view::View<'a> for Secret<'a> {
    const GROUP: &'static str = "";
    const KIND: &'static str = "Secret";

    fn of(object: &'a Value) -> Self {
        Self(object)
    }

    fn object(self) -> &'a Value {
        self.0
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("key", &self.key().to_string())
            .field("type", &self.kind())
            .field("keys", &self.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// A value of a secret. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Vec<u8>);

impl SecretValue {
    /// The bytes; do not put them into messages.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

impl<'a> Secret<'a> {
    /// Its type; `Opaque` where none is written.
    pub fn kind(self) -> &'a str {
        match object::text(self.object(), "/type") {
            "" => "Opaque",
            kind => kind,
        }
    }

    /// Its keys, sorted.
    pub fn keys(self) -> impl Iterator<Item = &'a str> {
        object::mapping(self.object(), "/data").into_iter().flatten().map(|(key, _)| key.as_str())
    }

    /// The decoded value of one key; `None` if there is none or it is not base64.
    pub fn value(self, key: &str) -> Option<SecretValue> {
        let text = self.object().get("data")?.get(key)?.as_str()?;
        STANDARD.decode(text).ok().map(SecretValue)
    }
}
