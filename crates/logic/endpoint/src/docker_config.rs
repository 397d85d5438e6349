//! `.dockerconfigjson` and the older `.dockercfg`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Map, Value};

use crate::credential::Secret;

/// One entry of a file: for what, user name, password.
pub(crate) type Entry = (String, Secret, Secret);

/// Entries of a `.dockerconfigjson`, sorted by key. The error never repeats a value.
pub(crate) fn current(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let root = object(bytes)?;
    match root.get("auths") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(auths)) => entries(auths),
        Some(_) => Err("`auths` must be an object".to_owned()),
    }
}

/// Entries of a `.dockercfg`: the same without `auths` around it.
pub(crate) fn legacy(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    entries(&object(bytes)?)
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err("a JSON object is needed".to_owned()),
        // The parser's message has place and kind, and no piece of the input.
        Err(error) => Err(format!("no JSON at line {} column {}", error.line(), error.column())),
    }
}

fn entries(auths: &Map<String, Value>) -> Result<Vec<Entry>, String> {
    let mut found = Vec::with_capacity(auths.len());
    for (key, entry) in auths {
        let Value::Object(entry) = entry else {
            return Err(format!("the entry `{key}` must be an object"));
        };
        let text = |name: &str| match entry.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(format!("`{name}` of the entry `{key}` must be a text")),
        };
        let auth = text("auth")?;
        let (username, password) = if auth.is_empty() {
            (text("username")?.to_owned(), text("password")?.to_owned())
        } else {
            decoded(auth).map_err(|problem| format!("`auth` of the entry `{key}` {problem}"))?
        };
        found.push((key.clone(), Secret::new(username), Secret::new(password)));
    }
    // Whatever the order in the file, the same keyring comes of it.
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// `base64(user:password)`, with or without padding, line breaks ignored, as the kubelet reads it.
fn decoded(auth: &str) -> Result<(String, String), &'static str> {
    let compact: String = auth.trim().chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let engine = if compact.ends_with('=') { &STANDARD } else { &STANDARD_NO_PAD };
    let bytes = engine.decode(compact).map_err(|_| "is no base64")?;
    let text = String::from_utf8(bytes).map_err(|_| "is no text after decoding")?;
    let (user, password) = text.split_once(':').ok_or("has no colon after decoding")?;
    Ok((user.to_owned(), password.to_owned()))
}
