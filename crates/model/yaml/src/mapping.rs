//! Mappings while they are read: duplicate keys, merge keys, keys that are no strings.

use std::collections::HashMap;

use crate::resolve;
use crate::{Entry, Node, NodeKind, Span, Style, YamlError};

/// A mapping that is being read.
#[derive(Default)]
pub(crate) struct Mapping {
    pub(crate) entries: Vec<Entry>,
    /// For every entry: whether a merge key brought it.
    pub(crate) merged: Vec<bool>,
    /// Where a key stands among the entries, once there are many.
    index: HashMap<String, usize>,
    pub(crate) key: Option<Key>,
}

/// A key that waits for its value.
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
    pub(crate) merge: bool,
}

/// From how many entries on a mapping is indexed.
const INDEXED: usize = 24;

impl Mapping {
    pub(crate) fn find(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            self.entries.iter().position(|entry| entry.key == key)
        } else {
            self.index.get(key).copied()
        }
    }

    pub(crate) fn push(&mut self, entry: Entry, merged: bool) {
        if !self.index.is_empty() {
            self.index.insert(entry.key.clone(), self.entries.len());
        } else if self.entries.len() >= INDEXED {
            self.index = self.entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
            self.index.insert(entry.key.clone(), self.entries.len());
        }
        self.entries.push(entry);
        self.merged.push(merged);
    }

    /// Adds what a merge key brings. As go-yaml v2 has it, the later of a key and a merge wins.
    pub(crate) fn merge(&mut self, entries: &[Entry]) {
        for entry in entries {
            match self.find(&entry.key) {
                Some(at) => {
                    if let (Some(old), Some(merged)) = (self.entries.get_mut(at), self.merged.get_mut(at)) {
                        *old = entry.clone();
                        *merged = true;
                    }
                }
                None => self.push(entry.clone(), true),
            }
        }
    }
}

/// Turns a node into a key, numbers and booleans as `sigs.k8s.io/yaml` does.
pub(crate) fn key(text: &str, node: Node) -> Result<Key, YamlError> {
    let span = node.alias.unwrap_or(node.span);
    let plain = node.style == Style::Plain && node.tag.is_none();
    let key = match node.kind {
        NodeKind::String(string) => string,
        NodeKind::Bool(value) => value.to_string(),
        NodeKind::Number(number) if resolve::is_integer(node.span.of(text)) => match number.as_i64() {
            Some(number) => number.to_string(),
            None => {
                return Err(
                    YamlError::at(span, "the number is too large for a key").with_hint("quote the key")
                );
            }
        },
        NodeKind::Number(number) => float_key(number.as_f64().unwrap_or_default()),
        NodeKind::Null => {
            return Err(YamlError::at(span, "the key is null, and Kubernetes takes only strings for keys")
                .with_hint("quote the key"));
        }
        NodeKind::Sequence(_) | NodeKind::Mapping(_) => {
            return Err(YamlError::at(span, "a list or a mapping stands where a key is expected"));
        }
    };
    Ok(Key { merge: plain && key == "<<", text: key, span })
}

/// A floating-point number as a key: Go's `strconv.FormatFloat(value, 'g', -1, 32)`.
fn float_key(value: f64) -> String {
    // The shortest digits that tell a 32-bit number from its neighbours.
    #[allow(clippy::cast_possible_truncation)]
    let value = value as f32;
    if value.is_infinite() {
        return if value > 0.0 { ".inf".to_owned() } else { "-.inf".to_owned() };
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..=5) if value != 0.0 || exponent == 0 => value.to_string(),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        Err(_) => scientific,
    }
}
