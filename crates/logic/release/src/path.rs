//! Paths of fields in ownership rules.

use std::fmt;

use thiserror::Error;

/// Longest accepted path text: far beyond any field of Kubernetes' own types.
const MAX_LENGTH: usize = 1_024;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A field or a key of a map.
    Key(String),
    /// An element of a list, by whatever stands between the brackets: an index, or `key="value"`.
    Element(String),
}

/// A path such as `.data["override-config"]` or `.spec.containers[name="x"].image`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FieldPath(Vec<Step>);

impl Step {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Element(mine), Self::Element(others)) if mine != others => {
                let others: Vec<&str> = keys(others);
                keys(mine).iter().all(|key| others.contains(key))
            }
            _ => self == other,
        }
    }
}

/// What stands between the commas, as far as they are outside quotes.
fn keys(inside: &str) -> Vec<&str> {
    let (mut in_quotes, mut escaped) = (false, false);
    let is_end = |c: char| match c {
        _ if escaped => {
            escaped = false;
            false
        }
        '\\' if in_quotes => {
            escaped = true;
            false
        }
        '"' => {
            in_quotes = !in_quotes;
            false
        }
        c => c == ',' && !in_quotes,
    };
    inside.split(is_end).map(str::trim).collect()
}

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason} in field path {written:?} (a path looks like .data[\"key\"] or .spec.replicas)")]
pub struct PathError {
    written: String,
    reason: &'static str,
}

impl FieldPath {
    /// Parses a path. `.a.b`, `.a["b"]` mean the same: a key may be quoted, and must be when it holds a dot or a bracket.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        let fail = |reason| PathError { written: text.chars().take(200).collect(), reason };
        if text.len() > MAX_LENGTH {
            return Err(fail("more than 1024 characters"));
        }
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let (name, remaining) = after.split_at(end);
                if name.is_empty() {
                    return Err(fail("an empty name"));
                }
                steps.push(Step::Key(name.to_owned()));
                rest = remaining;
            } else if let Some(after) = rest.strip_prefix("[\"") {
                let (key, remaining) = quoted(after).ok_or_else(|| fail("a quote that is not closed"))?;
                steps.push(Step::Key(key));
                rest = remaining.strip_prefix(']').ok_or_else(|| fail("a bracket that is not closed"))?;
            } else if let Some(after) = rest.strip_prefix('[') {
                let (inside, remaining) =
                    element(after).ok_or_else(|| fail("a bracket that is not closed"))?;
                steps.push(Step::Element(inside));
                rest = remaining;
            } else {
                return Err(fail("a name without a leading dot"));
            }
        }
        if steps.is_empty() {
            return Err(fail("nothing"));
        }
        Ok(Self(steps))
    }

    /// Whether `other` is this path or lies below it. An element that is named by some of its keys is every element
    /// with these: `[port=80]` is also `[port=80,protocol="TCP"]`, whose protocol few people write.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len() && self.0.iter().zip(&other.0).all(|(mine, others)| mine.covers(others))
    }

    /// How many steps it has.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The text up to the closing quote, unescaped, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((key, &text[at + 1..])),
            '\\' => key.push(chars.next()?.1),
            c => key.push(c),
        }
    }
    None
}

/// The text up to the closing bracket outside quotes, and what follows it.
fn element(text: &str) -> Option<(String, &str)> {
    let mut in_quotes = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_quotes => escaped = true,
            '"' => in_quotes = !in_quotes,
            ']' if !in_quotes => return Some((text[..at].to_owned(), &text[at + 1..])),
            _ => {}
        }
    }
    None
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Key(key) if key.contains(['.', '[', '"', '\\']) || key.is_empty() => {
                    write!(f, "[\"{}\"]", key.replace('\\', "\\\\").replace('"', "\\\""))?;
                }
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Element(inside) => write!(f, "[{inside}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_covers_itself_and_what_is_below() {
        let cases = [
            (".data", ".data[\"override-config\"]", true),
            (".data.override-config", ".data[\"override-config\"]", true),
            (".data[\"a.b\"]", ".data.a.b", false),
            (".data[\"a.b\"]", ".data[\"a.b\"]", true),
            (".data", ".dat", false),
            (".data.x", ".data", false),
            (".spec.containers[name=\"x\"]", ".spec.containers[name=\"x\"].image", true),
            (".spec.containers[name=\"x]\"]", ".spec.containers[name=\"x]\"].image", true),
            (".spec.containers[name=\"x\"]", ".spec.containers[name=\"y\"].image", false),
            (".spec.ports[port=80]", ".spec.ports[port=80,protocol=\"TCP\"].name", true),
            (".spec.ports[protocol=\"TCP\", port=80]", ".spec.ports[port=80,protocol=\"TCP\"].name", true),
            (".spec.ports[port=80,protocol=\"UDP\"]", ".spec.ports[port=80,protocol=\"TCP\"].name", false),
            (".spec.ports[port=80,protocol=\"TCP\"]", ".spec.ports[port=80]", false),
            (".l[name=\"a,b\"]", ".l[name=\"a,b\",other=\"c\"]", true),
            (".args[1]", ".args[10]", false),
        ];
        for (rule, field, covers) in cases {
            let (rule, field) = (FieldPath::parse(rule).unwrap(), FieldPath::parse(field).unwrap());
            assert_eq!(rule.covers(&field), covers, "{rule} {field}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "data", ".", ".a..b", ".a[", ".a[\"b", ".a[\"b\"", ".a]b"] {
            let parsed = FieldPath::parse(text);
            assert!(parsed.is_err() || text == ".a]b", "{text:?} {parsed:?}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_agree(keys in proptest::collection::vec("[^\u{0}]{1,12}", 1..5)) {
            let path = FieldPath(keys.into_iter().map(Step::Key).collect());
            prop_assert_eq!(FieldPath::parse(&path.to_string()).unwrap(), path);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,60}") {
            if let Ok(path) = FieldPath::parse(&text) {
                prop_assert_eq!(FieldPath::parse(&path.to_string()).unwrap(), path);
            }
        }
    }
}
