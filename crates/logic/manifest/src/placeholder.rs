//! Texts that have to be replaced: `${NAME}`, `${NAME:-default}`, `$(name)`, `{{ expression }}`, `<name>`, `…_PLACEHOLDER`.

use std::collections::BTreeMap;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'text> {
    /// Text that stays.
    Text(&'text str),
    /// A variable with the default that is written beside it.
    Variable { name: &'text str, default: Option<&'text str> },
    /// A template expression.
    Expression(&'text str),
}

/// Cuts a text into what stays and what is replaced. One piece of text means that there is no placeholder.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut begun = 0;
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(['$', '{', '<', '%'])) {
        at += offset;
        let rest = text.get(at..).unwrap_or_default();
        match variable(rest) {
            Some((piece, length)) => {
                if begun < at {
                    pieces.push(Piece::Text(text.get(begun..at).unwrap_or_default()));
                }
                pieces.push(piece);
                at += length;
                begun = at;
            }
            None => at += 1,
        }
    }
    if begun < text.len() || pieces.is_empty() {
        pieces.push(Piece::Text(text.get(begun..).unwrap_or_default()));
    }
    pieces
}

/// The placeholder that a text begins with, and its length.
pub(crate) fn variable(text: &str) -> Option<(Piece<'_>, usize)> {
    if let Some(rest) = text.strip_prefix("{{") {
        let end = rest.find("}}")?;
        return Some((Piece::Expression(rest.get(..end)?.trim_matches([' ', '-'])), end + 4));
    }
    if let Some(rest) = text.strip_prefix("${{") {
        // OpenShift's templates: a parameter that is put in without quotes.
        let end = rest.find("}}")?;
        return Some((Piece::Variable { name: rest.get(..end)?, default: None }, end + 5));
    }
    if let Some(rest) = text.strip_prefix("${") {
        let length = closing(rest)?;
        let inner = rest.get(..length)?;
        let name_length = inner
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
            .count();
        // In `${NAME-default}` the sign belongs to the default, in `${some-name}` to the name; only with a colon, or an
        // upper-case name, is it surely the former.
        let shell = inner.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (name, after) = inner.split_at_checked(shell)?;
        for sign in [":-", ":=", "="] {
            if let Some(default) = after.strip_prefix(sign) {
                return Some((Piece::Variable { name, default: Some(default) }, length + 3));
            }
        }
        if let Some(default) = after.strip_prefix('-')
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        {
            return Some((Piece::Variable { name, default: Some(default) }, length + 3));
        }
        if name_length == 0 {
            return None;
        }
        return Some((Piece::Variable { name: inner.get(..name_length)?, default: None }, length + 3));
    }
    if let Some(rest) = text.strip_prefix("$(") {
        let end = rest.find(')')?;
        let name = rest.get(..end)?;
        return is_name(name).then_some((Piece::Variable { name, default: None }, end + 3));
    }
    if let Some(rest) = text.strip_prefix('$') {
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
            .count();
        let name = rest.get(..length)?;
        return (length > 1).then_some((Piece::Variable { name, default: None }, length + 1));
    }
    for (open, close) in [('<', '>'), ('%', '%')] {
        if let Some(rest) = text.strip_prefix(open) {
            let end = rest.find(close)?;
            let name = rest.get(..end)?;
            return is_name(name).then_some((Piece::Variable { name, default: None }, end + 2));
        }
    }
    None
}

/// Variables with their defaults are this long at most; without a bound, unclosed ones would be searched again and again.
const LONGEST: usize = 2048;

/// Where the brace that closes `${` stands.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().take(LONGEST) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            b'\n' => return None,
            _ => {}
        }
    }
    None
}

/// Whether the text may be the name of a variable: letters, digits and signs, a letter first, of bounded length.
fn is_name(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '.'))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// A text with its variables replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// The text as far as it is known.
    pub(crate) text: String,
    /// What has no value.
    pub(crate) missing: Vec<String>,
    /// What has only its default.
    pub(crate) defaulted: Vec<String>,
}

/// Replaces variables by values and, where there is none, by their defaults.
pub(crate) fn replace(pieces: &[Piece<'_>], values: &BTreeMap<String, String>) -> Replaced {
    let mut result = Replaced::default();
    replace_into(pieces, values, &mut result, 0);
    result
}

/// Defaults within defaults are followed this deep.
const NESTED_DEFAULTS: usize = 4;

fn replace_into(
    pieces: &[Piece<'_>],
    values: &BTreeMap<String, String>,
    result: &mut Replaced,
    depth: usize,
) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => result.text.push_str(text),
            Piece::Expression(expression) => result.missing.push((*expression).to_owned()),
            Piece::Variable { name, default } => match (values.get(*name), default) {
                (Some(value), _) if !value.is_empty() => result.text.push_str(value),
                (_, Some(default)) if depth < NESTED_DEFAULTS => {
                    result.defaulted.push((*name).to_owned());
                    replace_into(&self::pieces(default), values, result, depth + 1);
                }
                _ => result.missing.push((*name).to_owned()),
            },
        }
    }
}

/// Whether a text without variables says of itself that it has to be replaced.
pub(crate) fn is_marker(text: &str) -> bool {
    if text.len() > 256 || text.contains(char::is_whitespace) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    matches!(
        lower.as_str(),
        "dummy" | "placeholder" | "changeme" | "change-me" | "replaceme" | "replace-me" | "todo" | "tbd"
    ) || is_written_marker(text)
        || lower.contains("-placeholder")
        || lower.starts_with("replace_image")
        || lower.starts_with("replace-image")
        || lower.ends_with(":replace")
        || lower.ends_with(":dummy")
}

/// Whether a text is a marker wherever it stands.
pub(crate) fn is_written_marker(text: &str) -> bool {
    text.ends_with("_PLACEHOLDER") || text.starts_with("PLACEHOLDER_") || text.starts_with("REPLACE_IMAGE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        replace(&pieces(text), &BTreeMap::new()).missing
    }

    #[test]
    fn placeholders_of_all_kinds_are_seen() {
        for (text, wanted) in [
            ("${RELATED_IMAGE_X}", vec!["RELATED_IMAGE_X"]),
            ("$(rt-openvino)", vec!["rt-openvino"]),
            ("{{ .Values.triton.image }}", vec![".Values.triton.image"]),
            ("<openvino_image>", vec!["openvino_image"]),
            ("${{PARAM}}", vec!["PARAM"]),
            ("$IMAGE:$TAG", vec!["IMAGE", "TAG"]),
            ("%IMAGE%", vec!["IMAGE"]),
            ("${some-name}/x:${other.name}", vec!["some-name", "other.name"]),
            ("plain", vec![]),
            ("cost: 5$ {a} < b > c 50% off 20%", vec![]),
            ("$(echo hello)", vec![]),
            ("${", vec![]),
        ] {
            assert_eq!(names(text), wanted, "{text}");
        }
    }

    #[test]
    fn defaults_and_values_are_put_in() {
        let values = BTreeMap::from([("REGISTRY".to_owned(), "registry.example.com".to_owned())]);
        let replaced = replace(&pieces("${REGISTRY}/obs/exporter:${TAG:-1.4}"), &values);
        assert_eq!(replaced.text, "registry.example.com/obs/exporter:1.4");
        assert_eq!((replaced.missing, replaced.defaulted), (vec![], vec!["TAG".to_owned()]));
        let replaced = replace(&pieces("${A:-${B:-${C-x/y:1}}}"), &BTreeMap::new());
        assert_eq!((replaced.text.as_str(), replaced.defaulted.len()), ("x/y:1", 3));
    }

    #[test]
    fn markers_say_it_of_themselves() {
        for text in ["dummy", "x-n_PLACEHOLDER", "REPLACE_IMAGE:v0.0.0-placeholder", "mlserver-0:replace"] {
            assert!(is_marker(text), "{text}");
        }
        for text in ["nginx", "a dummy text", "replacement/x:1"] {
            assert!(!is_marker(text), "{text}");
        }
    }
}
