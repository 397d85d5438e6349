//! Paths to fields of an object, and their human-readable form.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::value::{self, number_text, write_json};

/// Most elements a path may have: objects nest no deeper.
pub const MAX_DEPTH: usize = 128;

/// A JSON value inside a path, compared by value: `1` and `1.0` are the same.
#[derive(Debug, Clone)]
pub struct KeyValue(pub Value);

impl PartialEq for KeyValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for KeyValue {}
impl PartialOrd for KeyValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for KeyValue {
    fn cmp(&self, other: &Self) -> Ordering {
        value::compare(&self.0, &other.0)
    }
}

/// One step of a path. The order of the variants is the order in an encoded field set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A field of a structure or a key of a map.
    Field(String),
    /// The item of a list whose key fields have these values, sorted by name.
    Key(Vec<(String, KeyValue)>),
    /// The item of a set with this value.
    Value(KeyValue),
    /// The item of an atomic list at this position.
    Index(i64),
}

impl Element {
    /// A field step.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// A key step with one text key.
    pub fn key(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Key(vec![(name.into(), KeyValue(value.into()))])
    }

    /// Finds what this step selects in `container` by what is written there.
    fn select<'a>(&self, container: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Field(name) => container.get(name),
            Self::Key(_) | Self::Value(_) => container.as_array()?.iter().find(|item| self.names(item)),
            Self::Index(index) => container.get(usize::try_from(*index).ok()?),
        }
    }

    /// Whether a step by key or by value names this item, by what is written in it.
    pub(crate) fn names(&self, item: &Value) -> bool {
        match self {
            Self::Key(keys) => {
                keys.iter().all(|(name, wanted)| item.get(name).is_some_and(|v| value::equal(v, &wanted.0)))
            }
            Self::Value(wanted) => value::equal(item, &wanted.0),
            Self::Field(_) | Self::Index(_) => false,
        }
    }

    /// The step in the encoded form of a field set: `f:name`, `k:{…}`, `v:…`, `i:…`.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let mut out = String::from("k:{");
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    value::write_json_text(name, &mut out);
                    out.push(':');
                    write_json(&value.0, &mut out);
                }
                out.push('}');
                out
            }
            Self::Value(value) => {
                let mut out = String::from("v:");
                write_json(&value.0, &mut out);
                out
            }
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads the encoded form; `None` for a kind of step that is not known, which is skipped.
    pub(crate) fn decode(text: &str) -> Result<Option<Self>, String> {
        let bad = |why: &str| Err(format!("field set key {text:?}: {why}"));
        let (Some(kind), Some(b':'), Some(rest)) =
            (text.as_bytes().first(), text.as_bytes().get(1), text.get(2..))
        else {
            return bad("expected a letter and a colon");
        };
        Ok(Some(match kind {
            b'f' => Self::Field(rest.to_owned()),
            b'v' => match serde_json::from_str(rest) {
                Ok(value) => Self::Value(KeyValue(value)),
                Err(_) => return bad("the value is not JSON"),
            },
            b'k' => match serde_json::from_str::<Option<Map<String, Value>>>(rest) {
                Ok(map) => {
                    let map = map.unwrap_or_default();
                    let mut keys: Vec<(String, KeyValue)> =
                        map.into_iter().map(|(name, value)| (name, KeyValue(value))).collect();
                    keys.sort_by(|a, b| a.0.cmp(&b.0));
                    Self::Key(keys)
                }
                Err(_) => return bad("the keys are not a JSON object"),
            },
            b'i' => match rest.parse() {
                Ok(index) => Self::Index(index),
                Err(_) => return bad("the index is not a number"),
            },
            _ => return Ok(None),
        }))
    }
}

/// `{}` writes what the server writes in conflicts; `{:#}` quotes names that could be misread, so that the
/// text can be read back.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) if f.alternate() && !is_plain(name) => {
                let mut out = String::new();
                write_json(&Value::String(name.clone()), &mut out);
                write!(f, "[{out}]")
            }
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{name}={}", human(&value.0))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", human(&value.0)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '$' | ':'))
}

/// A value in a path. Text is quoted with the usual escapes.
fn human(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let mut out = String::from("\"");
            for character in text.chars() {
                match character {
                    '"' => out.push_str("\\\""),
                    '\\' => out.push_str("\\\\"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    other if other.is_control() => {
                        let _ = write!(out, "\\u{:04x}", u32::from(other));
                    }
                    other => out.push(other),
                }
            }
            out.push('"');
            out
        }
        Value::Number(number) => number_text(number),
        other => {
            let mut out = String::new();
            write_json(other, &mut out);
            out
        }
    }
}

/// A path from the root of an object to one field.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Element>);

impl Path {
    /// A path of field names.
    pub fn fields<I: IntoIterator<Item = S>, S: Into<String>>(names: I) -> Self {
        Self(names.into_iter().map(Element::field).collect())
    }

    /// What the path selects in `object`, if anything, by what is written there. An item whose key has a default is
    /// found by [`value_at`](crate::value_at()) only, which knows the types.
    pub(crate) fn select<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, element| element.select(value))
    }

    /// The path with one more step.
    #[must_use]
    pub fn child(&self, element: Element) -> Self {
        let mut elements = self.0.clone();
        elements.push(element);
        Self(elements)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for element in &self.0 {
            fmt::Display::fmt(element, f)?;
        }
        Ok(())
    }
}

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field path {text:?}: {problem} at byte {at}; write it like .spec.containers[name=\"app\"].image")]
pub struct PathError {
    /// The text that was read.
    pub text: String,
    /// Offset of the problem in bytes.
    pub at: usize,
    /// What is wrong.
    pub problem: &'static str,
}

/// Reads `.spec.containers[name="app"].env[0]`, `[="x/finalizer"]` and `.metadata.annotations["a.b/c"]`; the
/// first dot may be left out.
impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut elements = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let fail = |problem| PathError { text: text.to_owned(), at, problem };
            if elements.len() >= MAX_DEPTH {
                return Err(fail("too many steps"));
            }
            if let Some(inner) = rest.strip_prefix('[') {
                let (element, after) = bracket(inner).map_err(fail)?;
                elements.push(element);
                rest = after;
            } else {
                let name = match rest.strip_prefix('.') {
                    Some(name) => name,
                    None if elements.is_empty() => rest,
                    None => return Err(fail("expected a dot or a bracket")),
                };
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (name, after) = name.split_at(end);
                if name.is_empty() {
                    return Err(fail("a field has no name"));
                }
                elements.push(Element::field(name));
                rest = after;
            }
        }
        Ok(Self(elements))
    }
}

/// The inside of a bracket up to and with its end.
fn bracket(inner: &str) -> Result<(Element, &str), &'static str> {
    if inner.starts_with('"') {
        let (name, rest) = json_prefix(inner)?;
        let Value::String(name) = name else { return Err("expected a quoted name") };
        return Ok((Element::Field(name), rest.strip_prefix(']').ok_or("expected a closing bracket")?));
    }
    if let Some(value) = inner.strip_prefix('=') {
        let (value, rest) = json_prefix(value)?;
        let rest = rest.strip_prefix(']').ok_or("expected a closing bracket")?;
        return Ok((Element::Value(KeyValue(value)), rest));
    }
    if let Some((index, rest)) = inner.split_once(']')
        && let Ok(index) = index.parse()
    {
        return Ok((Element::Index(index), rest));
    }
    let mut keys = Vec::new();
    let mut rest = inner;
    loop {
        let (name, value) = rest.split_once('=').ok_or("expected `name=value`, an index or a quoted name")?;
        let (value, after) = json_prefix(value)?;
        keys.push((name.to_owned(), KeyValue(value)));
        match after.as_bytes().first() {
            Some(b',') => rest = &after[1..],
            Some(b']') => {
                keys.sort_by(|a, b| a.0.cmp(&b.0));
                return Ok((Element::Key(keys), &after[1..]));
            }
            _ => return Err("expected a comma or a closing bracket"),
        }
    }
}

/// One JSON value at the start of `text`, and what follows it.
fn json_prefix(text: &str) -> Result<(Value, &str), &'static str> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) => {
            let end = stream.byte_offset();
            Ok((value, text.get(end..).unwrap_or("")))
        }
        _ => Err("expected a value such as 80, true or \"text\""),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_and_reads_paths() {
        let cases = [
            (".spec.replicas", ".spec.replicas"),
            (".spec.containers[name=\"app\"].image", ".spec.containers[name=\"app\"].image"),
            (".ports[port=80,protocol=\"TCP\"].name", ".ports[port=80,protocol=\"TCP\"].name"),
            (".metadata.finalizers[=\"x/a\"]", ".metadata.finalizers[=\"x/a\"]"),
            (".args[3]", ".args[3]"),
            ("spec.x", ".spec.x"),
            (".metadata.annotations[\"a.b/c d\"]", ".metadata.annotations[\"a.b/c d\"]"),
        ];
        for (text, wanted) in cases {
            let path: Path = text.parse().unwrap();
            assert_eq!(format!("{path:#}"), wanted);
            assert_eq!(format!("{path:#}").parse::<Path>().unwrap(), path);
        }
        let path: Path = ".metadata.annotations[\"a.b/c\"]".parse().unwrap();
        assert_eq!(path.to_string(), ".metadata.annotations.a.b/c");
    }

    #[test]
    fn says_what_is_wrong_with_a_path() {
        for (text, problem, at) in [
            (".a..b", "a field has no name", 2),
            (".a[name]", "expected `name=value`", 2),
            (".a[name=x]", "expected a value", 2),
            (".a[=1", "expected a closing bracket", 2),
            (".a[0]b", "expected a dot or a bracket", 5),
        ] {
            let error = text.parse::<Path>().unwrap_err();
            assert!(error.problem.starts_with(problem), "{error}");
            assert_eq!(error.at, at, "{error}");
        }
    }

    #[test]
    fn selects_in_objects() {
        let object = json!({"l": [{"name": "a", "v": [1, "x"]}, {"name": "b", "v": 2}]});
        for (path, wanted) in [
            (".l[name=\"b\"].v", Some(json!(2))),
            (".l[0].v[=\"x\"]", Some(json!("x"))),
            (".l[name=\"c\"]", None),
            (".l[-1]", None),
        ] {
            let path: Path = path.parse().unwrap();
            assert_eq!(path.select(&object), wanted.as_ref(), "{path}");
        }
    }

    #[test]
    fn encodes_and_decodes_elements() {
        for text in ["f:a.b", "k:{\"a\":1,\"b\":\"x\"}", "v:\"x\"", "v:1", "i:7", "f:"] {
            assert_eq!(Element::decode(text).unwrap().unwrap().encode(), text);
        }
        assert_eq!(Element::decode("v:1.0").unwrap(), Element::decode("v:1").unwrap());
        assert_eq!(Element::decode("x:1").unwrap(), None);
        for text in ["", "f", "fx", "v:{", "k:1", "i:x", "é:"] {
            assert!(Element::decode(text).is_err(), "{text}");
        }
    }
}
