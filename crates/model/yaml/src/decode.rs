//! Trees to typed values.

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::path::{push_index, push_key};
use crate::{Node, NodeKind, Span};

/// Why a tree is not a value of the type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}{}", .hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct DecodeError {
    /// The bytes of the value, or for an unknown field those of its key.
    pub span: Span,
    /// The path of the value, as `.spec.images[0]`; `.` for the whole.
    pub path: String,
    /// What does not fit.
    pub message: String,
    /// What was probably meant.
    pub hint: Option<String>,
}

/// Makes a typed value of a tree.
pub fn decode<T: DeserializeOwned>(node: &Node) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(node.to_json()).map_err(|error| {
        let mut path = String::new();
        let mut place = node;
        let mut span = node.span;
        for segment in error.path() {
            match segment {
                Segment::Map { key } => {
                    push_key(&mut path, key);
                    if let Some(entry) = place.entries().iter().find(|entry| entry.key == *key) {
                        place = &entry.value;
                        span = place.span;
                    }
                }
                Segment::Seq { index } => {
                    push_index(&mut path, *index);
                    if let Some(item) = place.index(*index) {
                        place = item;
                        span = place.span;
                    }
                }
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        let message = without_value(error.inner().to_string());
        let unknown = unknown_field(&message);
        if let Some((field, _)) = &unknown {
            // The error stands at the field or at what holds it, as serde's data model has it.
            if let Some(entry) = find_key(node, error.path(), field) {
                span = entry;
            }
        }
        let hint = unknown.and_then(|(field, known)| {
            nearest(field, known.iter().copied()).map(|near| format!("did you mean {near:?}?"))
        });
        if path.is_empty() {
            path.push('.');
        }
        DecodeError { span, path, message, hint }
    })
}

/// The span of the key `field` in the mapping that the path leads to or through.
fn find_key(node: &Node, path: &serde_path_to_error::Path, field: &str) -> Option<Span> {
    let mut place = node;
    let mut found = None;
    let mut look = |place: &Node| {
        if let NodeKind::Mapping(entries) = &place.kind
            && let Some(entry) = entries.iter().find(|entry| entry.key == field)
        {
            found = Some(entry.key_span);
        }
    };
    look(place);
    for segment in path {
        let next = match segment {
            Segment::Map { key } => place.get(key),
            Segment::Seq { index } => place.index(*index),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        let Some(next) = next else { continue };
        place = next;
        look(place);
    }
    found
}

/// serde's sentence without the string that did not fit: it stands at the place that is named, and may be secret.
fn without_value(message: String) -> String {
    for start in ["invalid type: string ", "invalid value: string "] {
        if let Some(rest) = message.strip_prefix(start)
            && let Some(end) = rest.rfind(", expected ")
        {
            return format!("{}{}", start.trim_end(), rest.get(end..).unwrap_or_default());
        }
    }
    message
}

/// Takes serde's sentence about an unknown field or variant apart: the name, and the names that are known.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))?;
    let (field, rest) = rest.split_once('`')?;
    let known = rest.split('`').skip(1).step_by(2).collect();
    Some((field, known))
}

/// The known name that is written most like the given one, if any is like it at all: one change in three characters.
pub fn nearest<'name>(name: &str, known: impl IntoIterator<Item = &'name str>) -> Option<&'name str> {
    // Longer names are not typed by people, and the distance costs their product.
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let allowed = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many characters must be changed, added, removed or swapped with their neighbour, letter case aside.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut line = Vec::with_capacity(above.len());
        let mut last = row + 1;
        line.push(last);
        for (column, b) in right.iter().enumerate() {
            let cell = |cells: &[usize], at: usize| cells.get(at).copied().unwrap_or(usize::MAX - 1);
            let changed = cell(&above, column) + usize::from(a != b);
            let mut best = changed.min(cell(&above, column + 1) + 1).min(last + 1);
            let swapped =
                row > 0 && column > 0 && left.get(row - 1) == Some(b) && right.get(column - 1) == Some(a);
            if swapped {
                best = best.min(cell(&before, column - 1) + 1);
            }
            line.push(best);
            last = best;
        }
        before = std::mem::replace(&mut above, line);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        name: String,
        #[serde(default)]
        images: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[allow(dead_code)]
    struct Inner {
        repository: String,
        pull_policy: Option<String>,
    }

    fn error(text: &str) -> (String, String, Option<String>) {
        let documents = crate::parse(text.as_bytes()).unwrap();
        let error = decode::<Outer>(&documents[0].root).unwrap_err();
        (error.path.clone(), error.span.of(text).to_owned(), error.hint)
    }

    #[test]
    fn errors_name_the_place_and_what_was_meant() {
        let text = "name: x\nimages:\n- repository: a\n- repository: b\n  pulPolicy: Always\n";
        let (path, written, hint) = error(text);
        assert_eq!((path.as_str(), written.as_str()), (".images[1].pulPolicy", "pulPolicy"));
        assert_eq!(hint.as_deref(), Some("did you mean \"pullPolicy\"?"));

        let (path, written, _) = error("name: x\nimages:\n- repository: 5\n");
        assert_eq!((path.as_str(), written.as_str()), (".images[0].repository", "5"));

        let (path, written, hint) = error("{images: []}");
        assert_eq!((path.as_str(), written.as_str(), hint), (".", "{images: []}", None));
    }

    #[test]
    fn errors_do_not_repeat_values() {
        let documents = crate::parse(b"name: x\nimages: hunter2\n").unwrap();
        let error = decode::<Outer>(&documents[0].root).unwrap_err();
        assert_eq!(error.to_string(), ".images: invalid type: string, expected a sequence");
    }

    #[test]
    fn only_what_is_alike_is_offered() {
        assert_eq!(nearest("imgae", ["image", "images"]), Some("image"));
        assert_eq!(nearest("zzz", ["image"]), None);
        assert_eq!(nearest("Tag", ["tag"]), Some("tag"));
    }
}
