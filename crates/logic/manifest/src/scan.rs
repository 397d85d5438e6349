//! References in text that is no document: program source, scripts, prose, lists.

use std::collections::BTreeMap;

use scantling_image::Reference;

use crate::classify::{Verdict, classify};
use crate::hosts::{is_host, is_registry};
use crate::names::{Expect, speaks_of_image};
use crate::placeholder::variable;

/// What a text is, which decides how much a word in it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// A program's source: what stands in quotes is data.
    Code,
    /// A script, or text in a field of an object.
    Script,
}

/// A word that is a reference or looks like one.
#[derive(Debug)]
pub(crate) struct Hit<'text> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) verdict: Verdict,
    /// The variable whose value is used before this word is.
    pub(crate) variable: Option<&'text str>,
    /// The name that the word is assigned to.
    pub(crate) assigned: Option<&'text str>,
}

/// Looks through a text.
pub(crate) fn scan<'text>(
    text: &'text str,
    kind: Text,
    values: &BTreeMap<String, String>,
) -> Vec<Hit<'text>> {
    let bytes = text.as_bytes();
    let mut hits = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (end, shape) = word(text, at);
        if end == at {
            at += 1;
            continue;
        }
        if shape.may_be_reference() && end - at <= LONGEST {
            let start = at;
            if let Some(hit) = weigh(text, start, end, shape, kind, values) {
                hits.push(hit);
            }
        }
        at = end;
    }
    hits
}

/// Words that are longer than every reference with its variables are nothing of ours.
const LONGEST: usize = 2048;

/// What is in a word.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    slash: bool,
    colon: bool,
    at_sign: bool,
    variable: bool,
}

impl Shape {
    fn may_be_reference(self) -> bool {
        self.at_sign || (self.slash && self.colon) || (self.variable && self.slash)
    }
}

/// The end of the word that begins here: characters of references, and variables.
fn word(text: &str, start: usize) -> (usize, Shape) {
    let bytes = text.as_bytes();
    let mut shape = Shape::default();
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'/' => shape.slash = true,
            b':' => shape.colon = true,
            b'@' => shape.at_sign = true,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'+' => {}
            b'$' if bytes.get(at + 1) == Some(&b'{') => match text.get(at..).and_then(variable) {
                Some((_, length)) => {
                    let inner = text.get(at..at + length).unwrap_or_default();
                    shape.slash |= inner.contains('/');
                    shape.colon |= inner.contains(':');
                    shape.at_sign |= inner.contains('@');
                    shape.variable = true;
                    at += length;
                    continue;
                }
                None => break,
            },
            _ => break,
        }
        at += 1;
    }
    (at, shape)
}

fn weigh<'text>(
    text: &'text str,
    start: usize,
    end: usize,
    shape: Shape,
    kind: Text,
    values: &BTreeMap<String, String>,
) -> Option<Hit<'text>> {
    let quoted = is_quoted(text, start, end);
    let written = text.get(start..end)?;
    let trimmed = written
        .trim_end_matches(['.', ':', '/', '+', '@'])
        .trim_start_matches(['.', ':', '/', '-', '+', '@']);
    let start = start + written.find(trimmed)?;
    let (start, trimmed) = match trimmed.split_once("://") {
        Some(("oci" | "docker" | "docker-pullable", rest)) => (start + trimmed.len() - rest.len(), rest),
        Some(_) => return None,
        None => (start, trimmed),
    };
    let line = line_before(text, start);
    let hit = |start: usize, length: usize, verdict: Verdict| {
        let variable = variable_before(text, start);
        Some(Hit { start, end: start + length, verdict, variable, assigned: assigned_in(line) })
    };
    if shape.variable {
        let expect = if speaks_of_image(line) { Expect::Perhaps } else { Expect::Nothing };
        return match classify(trimmed, expect, values) {
            verdict @ (Verdict::Defaulted { .. } | Verdict::Reference { .. }) => {
                hit(start, trimmed.len(), verdict)
            }
            Verdict::Placeholder { names } if host_of(trimmed).is_some_and(is_registry) => {
                let reason = format!("code puts it together from {}", names.join(", "));
                hit(start, trimmed.len(), Verdict::Unclassified { reason })
            }
            _ => None,
        };
    }
    if trimmed.contains("@sha") || trimmed.contains(":sha256:") {
        // `image:registry/name@digest` without a space, as in compact JSON-like texts.
        let mut piece = trimmed;
        loop {
            match classify(piece, Expect::Nothing, values) {
                Verdict::Nothing | Verdict::Malformed { .. }
                    if piece.split('/').next().is_some_and(|host| host.contains(':')) =>
                {
                    let (_, rest) = piece.split_once(':')?;
                    if !rest.contains("@sha") {
                        break;
                    }
                    piece = rest;
                }
                Verdict::Nothing => break,
                verdict => return hit(start + trimmed.len() - piece.len(), piece.len(), verdict),
            }
        }
        return match classify(trimmed, Expect::Nothing, values) {
            Verdict::Nothing => None,
            verdict => hit(start, trimmed.len(), verdict),
        };
    }
    let host = host_of(trimmed)?;
    let reference = Reference::parse(trimmed).ok()?;
    let tag = reference.tag()?;
    let is_reference = if is_registry(host) {
        let named = host.starts_with(|first: char| first.is_ascii_alphabetic()) || is_address(host);
        is_host(host) || host.starts_with("localhost") || (quoted && named)
    } else {
        quoted && (is_host(host) || kind == Text::Script) && speaks_of_image(line)
    };
    if is_reference {
        return hit(start, trimmed.len(), Verdict::Reference { reference, start: 0, end: trimmed.len() });
    }
    if quoted && kind == Text::Code && speaks_of_image(line) && is_version(tag) {
        let reason = "it has the form name:version, and no registry".to_owned();
        return hit(start, trimmed.len(), Verdict::Unclassified { reason });
    }
    None
}

fn is_version(tag: &str) -> bool {
    tag == "latest"
        || (tag.contains('.')
            && tag.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether a host is four numbers.
fn is_address(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or_default();
    name.split('.').count() == 4 && name.split('.').all(|number| number.parse::<u8>().is_ok())
}

/// What stands before the first slash.
fn host_of(text: &str) -> Option<&str> {
    text.split_once('/').map(|(host, _)| host).filter(|host| !host.is_empty())
}

fn is_quoted(text: &str, start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
    before.is_some_and(|quote| matches!(quote, b'"' | b'\'' | b'`')) && text.as_bytes().get(end) == before
}

/// How far back on its line, and in how long lines, a word's surroundings are looked at.
const SURROUNDINGS: usize = 240;

/// The part of the line before a place.
fn line_before(text: &str, at: usize) -> &str {
    let mut from = at.saturating_sub(SURROUNDINGS);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let window = text.get(from..at).unwrap_or_default();
    window.rsplit('\n').next().unwrap_or_default()
}

/// The name that a program assigns a word to: the last before `=`, `:` or `(`.
fn assigned_in(line: &str) -> Option<&str> {
    let before = line.trim_end_matches(['"', '\'', '`', ' ', '\t']);
    let before = before.strip_suffix([':', '='])?.trim_end_matches([' ', ':', '\t', '"', '\'']);
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, character)| character.is_alphanumeric() || matches!(character, '_' | '-' | '.'))
        .last()
        .map(|(at, _)| at)?;
    before.get(start..).filter(|name| name.starts_with(|first: char| first.is_alphabetic() || first == '_'))
}

/// The environment variable that is asked for on the same line or the one before, ahead of the word.
fn variable_before(text: &str, at: usize) -> Option<&str> {
    let mut from = at.saturating_sub(SURROUNDINGS);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let window = text.get(from..at)?;
    let mut lines = window.rsplit('\n');
    let (this, before) = (lines.next()?, lines.next().unwrap_or_default());
    // A statement that ended on the line before has nothing to do with this one.
    let before = if before.trim_end().ends_with([';', '}']) { "" } else { before };
    [this, before].into_iter().find_map(asked_for)
}

/// `process.env.NAME`, `getenv("NAME"`, `environ.get('NAME'`, `env::var("NAME")`: the name comes within so many bytes.
const SOON: usize = 24;

fn asked_for(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    let at = lower.rfind("env")?;
    let rest = line.get(at + 3..)?;
    let start = rest.find(|character: char| character.is_ascii_uppercase())?;
    let name = rest.get(start..)?;
    let length = name
        .bytes()
        .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
        .count();
    let name = name.get(..length)?;
    (start <= SOON && length >= 3).then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    const DIGEST: &str = "sha256:7dd5aa540ddce2e323e2209cb9f50cf4948cb79f17eed96b7bbc33b31a0eca5d";

    fn references(text: &str, kind: Text) -> Vec<String> {
        scan(text, kind, &BTreeMap::new())
            .into_iter()
            .map(|hit| match hit.verdict {
                Verdict::Reference { reference, .. } => reference.to_string(),
                Verdict::Defaulted { reference, .. } => format!("default {reference}"),
                Verdict::Malformed { .. } => format!("malformed {}", &text[hit.start..hit.end]),
                Verdict::Unclassified { .. } => format!("unclassified {}", &text[hit.start..hit.end]),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn references_are_found_in_text() {
        let digest = format!("registry.example.com/a/b@{DIGEST}");
        for (text, kind, wanted) in [
            (format!("pull {digest}, then {digest}."), Text::Script, vec![digest.clone(), digest.clone()]),
            (format!("FROM={digest}"), Text::Script, vec![digest.clone()]),
            (format!("image:{digest}"), Text::Script, vec![digest.clone()]),
            (format!("oci://{digest}"), Text::Script, vec![digest.clone()]),
            (format!("https://{digest}"), Text::Script, vec![]),
            (format!("a/b@sha256:{DIGEST}"), Text::Script, vec![format!("malformed a/b@sha256:{DIGEST}")]),
            (
                "docker pull quay.io/a/b:1.2 # see http://quay.io/a/b:1".to_owned(),
                Text::Script,
                vec!["quay.io/a/b:1.2".to_owned()],
            ),
            ("IMG=${IMG:-quay.io/a/b:1}".to_owned(), Text::Script, vec!["default quay.io/a/b:1".to_owned()]),
            (
                "const image = 'bitnami/redis:7.2';".to_owned(),
                Text::Code,
                vec!["unclassified bitnami/redis:7.2".to_owned()],
            ),
            (
                "import x from 'text/html:latest'; user@example.com:a/b; git@github.com:a/b.git".to_owned(),
                Text::Code,
                vec![],
            ),
            (
                "x=\"10:30/40:50\" path/to:8080 /etc/x:/etc/y:ro http://a.b/c:d".to_owned(),
                Text::Script,
                vec![],
            ),
            (
                "run quay.io/a/b:${TAG}".to_owned(),
                Text::Script,
                vec!["unclassified quay.io/a/b:${TAG}".to_owned()],
            ),
        ] {
            assert_eq!(references(&text, kind), wanted, "{text}");
        }
    }

    #[test]
    fn fallbacks_name_their_variable() {
        for (text, variable, assigned) in [
            ("const x = process.env.OVMS_IMAGE || 'quay.io/a/b:1'", Some("OVMS_IMAGE"), None),
            ("img = os.environ.get(\"OVMS_IMAGE\", \"quay.io/a/b:1\")", Some("OVMS_IMAGE"), None),
            ("  image := getEnv(\n\t\"OVMS_IMAGE\", \"quay.io/a/b:1\")", None, None),
            ("export const DEFAULT_IMAGE = 'quay.io/a/b:1'", None, Some("DEFAULT_IMAGE")),
            ("  image: 'quay.io/a/b:1',", None, Some("image")),
        ] {
            let hits = scan(text, Text::Code, &BTreeMap::new());
            assert_eq!(hits.len(), 1, "{text}");
            assert_eq!((hits[0].variable, hits[0].assigned), (variable, assigned), "{text}");
        }
    }
}
