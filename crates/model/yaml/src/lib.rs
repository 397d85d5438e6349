//! YAML and JSON as Kubernetes reads them.
//!
//! [`parse`] makes one tree of [`Node`]s per document, with the bytes that every key and value stands at. Plain scalars are
//! resolved by the rules of `sigs.k8s.io/yaml` (YAML 1.1 as go-yaml v2 understands it, then JSON): `0644` is 420, `yes` is
//! true, `2024-01-01` is a string. What Kubernetes refuses or reads differently depending on the reader, such as a key
//! that is given twice, is refused here with its place.
//!
//! [`Node::source_map`] leads from a place inside a string back to the file, [`replace_scalar`] changes one value and
//! nothing else, [`decode`] makes typed values and says where they do not fit, [`to_yaml`] writes.

mod build;
mod decode;
mod edit;
mod emit;
mod error;
mod input;
mod json;
mod limits;
mod mapping;
mod node;
mod path;
mod resolve;
mod source_map;
mod span;

pub use decode::{DecodeError, decode, nearest};
pub use edit::{EditError, replace_scalar};
pub use emit::to_yaml;
pub use error::YamlError;
pub use input::text;
pub use limits::{MAX_ALIAS_BYTES, MAX_ALIAS_NODES, MAX_BYTES, MAX_DEPTH, MAX_NODES};
pub use node::{Document, Entry, Node, NodeKind, Style};
pub use path::{push_index, push_key};
pub use source_map::SourceMap;
pub use span::{LineIndex, Span};

/// Reads every document of a YAML stream or a stream of JSON values.
///
/// Spans are byte offsets into [`text`]`(bytes)`, which for UTF-8 are offsets into `bytes` themselves. Documents that hold
/// nothing at all are left out, as Kubernetes leaves them out.
pub fn parse(bytes: &[u8]) -> Result<Vec<Document>, YamlError> {
    let (documents, mut duplicates) = parse_tolerant(bytes)?;
    if duplicates.is_empty() { Ok(documents) } else { Err(duplicates.swap_remove(0)) }
}

/// Like [`parse`], but keys that are given twice do not stop the reading: the first value stays, and every repetition is
/// returned as an error beside the documents. For commands that only look.
pub fn parse_tolerant(bytes: &[u8]) -> Result<(Vec<Document>, Vec<YamlError>), YamlError> {
    let text = text(bytes)?;
    // `kubectl` and the API server take a stream that begins like JSON for JSON, whose escapes and tabs YAML refuses.
    // What begins so but is YAML after all (`{a: b}`) is left to the YAML reader.
    let mut parsed = match text.trim_start_matches('\u{feff}').trim_start().as_bytes().first() {
        Some(b'{' | b'[') => match json::parse(&text) {
            Ok(parsed) => parsed,
            Err(json_error) => build::parse(&text).map_err(|error| error.or_json(json_error))?,
        },
        _ => build::parse(&text)?,
    };
    let mut duplicates = std::mem::take(&mut parsed.duplicates);
    let lines = (!duplicates.is_empty()).then(|| LineIndex::new(&text));
    if let Some(lines) = lines {
        for error in &mut duplicates {
            error.locate(&lines);
        }
    }
    Ok((parsed.documents, duplicates))
}
