//! Bytes of any size in the namespace `scantling-system`: a `ConfigMap` as head that names its parts, and the parts, which
//! are `ConfigMaps` or, where they may hold what only a Secret may hold, Secrets.
//!
//! The head is written last, so that a reader sees either what was there before or what is there now, never half of
//! each. Parts are named after the digest of the whole, so that the same bytes have the same names.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use scantling_api::object;
use scantling_image::Digest;
use serde_json::{Value, json};

use crate::state::SYSTEM_NAMESPACE;

/// The only format that is written; a reader refuses others instead of dropping what it does not know.
pub(crate) const FORMAT: &str = "1";
/// Bytes of one part before base64: a `ConfigMap` or a Secret may hold 1 MiB, and base64 adds a third.
const PART_BYTES: usize = 700_000;
/// Bytes of the whole when it is read: far above any release (a thousand objects are about 4 MiB).
const WHOLE_BYTES: u64 = 256 << 20;
/// Parts of one whole when it is read.
const PARTS: usize = 512;
/// The label of parts.
pub(crate) const PART_LABEL: &str = "scantling.dev/part-of";
/// The type of Secrets that are parts.
const SECRET_TYPE: &str = "scantling.dev/part";

/// What the parts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Everybody who may look at the namespace may read them.
    Open,
    /// They may hold values of Secrets.
    Secret,
}

impl Parts {
    fn part(self, name: &str, of: &str, bytes: &[u8]) -> Value {
        let metadata = json!({"name": name, "namespace": SYSTEM_NAMESPACE, "labels": {PART_LABEL: of}});
        let data = json!({"part": STANDARD.encode(bytes)});
        match self {
            Self::Open => {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data})
            }
            Self::Secret => json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": SECRET_TYPE, "data": data,
            }),
        }
    }
}

/// Whether an object is a part.
pub(crate) fn is_part(object: &Value) -> bool {
    object::label(object, PART_LABEL).is_some()
}

/// Why bytes cannot be put away or had again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PackError {
    /// Another program version wrote them.
    Format(String),
    /// They cannot be packed.
    NotWritable(String),
    /// A part is missing or damaged.
    Damaged { name: String, reason: String },
}

fn damaged(name: &str, reason: impl Into<String>) -> PackError {
    PackError::Damaged { name: name.to_owned(), reason: reason.into() }
}

/// The objects that hold `bytes` under the name of a head: parts first, head last. `about` is put into the head beside
/// what is needed to read it again.
pub(crate) fn pack(
    parts: Parts,
    name: &str,
    about: &[(&str, &str)],
    bytes: &[u8],
) -> Result<Vec<Value>, PackError> {
    let packed = gzip(bytes).map_err(PackError::NotWritable)?;
    let digest = Digest::of(&packed);
    let short = digest.hex().get(..10).unwrap_or_default();
    let mut maps = Vec::new();
    let mut names = Vec::new();
    for (index, part) in packed.chunks(PART_BYTES).enumerate() {
        let part_name = format!("{name}-{short}-{index}");
        maps.push(parts.part(&part_name, name, part));
        names.push(part_name);
    }
    let mut head = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
        "data": {"format": FORMAT, "parts": names.join(","), "digest": digest.to_string()},
    });
    for (field, value) in about {
        head["data"][*field] = json!(value);
    }
    maps.push(head);
    Ok(maps)
}

/// The bytes that a head leads to. None if there is no such head.
pub(crate) fn unpack(maps: &[Value], name: &str) -> Result<Option<Vec<u8>>, PackError> {
    let by_name = |name: &str| maps.iter().find(|m| object::name(m) == name);
    let Some(head) = by_name(name) else { return Ok(None) };
    let field = |name: &str| object::text(head, &format!("/data/{name}"));
    if field("format") != FORMAT {
        return Err(PackError::Format(field("format").to_owned()));
    }
    let mut packed = Vec::new();
    for part_name in field("parts").split(',').take(PARTS) {
        let part = by_name(part_name).ok_or_else(|| damaged(part_name, "it is missing"))?;
        let field = if object::text(part, "/kind") == "Secret" { "/data/part" } else { "/binaryData/part" };
        let bytes =
            STANDARD.decode(object::text(part, field)).map_err(|e| damaged(part_name, e.to_string()))?;
        packed.extend(bytes);
    }
    if Digest::of(&packed).to_string() != field("digest") {
        return Err(damaged(name, "its parts do not have the digest that it names"));
    }
    gunzip(&packed).map(Some).map_err(|reason| damaged(name, reason))
}

/// Parts in `maps` of one head, or of heads that are not there, that `head` does not name.
pub(crate) fn stale_parts<'m>(maps: &'m [Value], name: &str, head: &Value) -> Vec<&'m Value> {
    let named: BTreeSet<&str> = object::text(head, "/data/parts").split(',').collect();
    maps.iter()
        .filter(|m| object::label(m, PART_LABEL) == Some(name) && !named.contains(object::name(m)))
        .collect()
}

/// Compresses; the same bytes give the same bytes.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).map_err(|e| e.to_string())?;
    encoder.finish().map_err(|e| e.to_string())
}

/// Decompresses, up to a bound.
pub(crate) fn gunzip(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).take(WHOLE_BYTES).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}
