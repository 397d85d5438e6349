//! What one string is.

use std::collections::BTreeMap;

use scantling_image::Reference;

use crate::hosts::{is_host, is_known, is_other, is_registry};
use crate::names::{Expect, speaks_of_image};
use crate::placeholder::{Piece, is_marker, is_written_marker, pieces, replace};

/// What a string is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Neither a reference nor like one.
    Nothing,
    /// Empty where an image is demanded.
    Empty,
    /// A reference; the text between the offsets.
    Reference { reference: Reference, start: usize, end: usize },
    /// A reference once its variables have their defaults.
    Defaulted { reference: Reference, defaulted: Vec<String> },
    /// Something that has to be replaced.
    Placeholder { names: Vec<String> },
    /// Expected to be a reference, and none.
    Malformed { reason: String, suggestion: Option<String> },
    /// Like a reference, and known to be none.
    Decoy { reason: String },
    /// Like a reference, and nothing says whether it is one.
    Unclassified { reason: String },
}

/// Transports that stand before references in storage locations and in the arguments of tools.
const TRANSPORTS: &[&str] = &["oci://", "docker://", "docker-pullable://"];

/// The longest text that can be one reference with placeholders in it.
const LONGEST: usize = 2048;

/// What a whole string is, given what its name says.
pub(crate) fn classify(text: &str, expect: Expect, values: &BTreeMap<String, String>) -> Verdict {
    if text.is_empty() {
        return if expect == Expect::Image { Verdict::Empty } else { Verdict::Nothing };
    }
    if text.len() > LONGEST || expect == Expect::Never {
        return Verdict::Nothing;
    }
    if expect < Expect::Perhaps && !text.contains(['/', ':', '@', '$', '{', '<', '_']) {
        return Verdict::Nothing;
    }
    if text.contains(['$', '{', '<', '%']) {
        let found = pieces(text);
        if found.iter().any(|piece| !matches!(piece, Piece::Text(_))) {
            return with_placeholders(text, &found, expect, values);
        }
    }
    let marker = if expect >= Expect::Perhaps { is_marker(text) } else { is_written_marker(text) };
    if marker {
        return Verdict::Placeholder { names: vec![text.to_owned()] };
    }
    let (start, inner) = match TRANSPORTS.iter().find(|transport| text.starts_with(**transport)) {
        Some(transport) => (transport.len(), text.get(transport.len()..).unwrap_or_default()),
        None => (0, text),
    };
    // What surrounds a value does no harm where a program reads it; in a container it is an error.
    let trimmed = if expect == Expect::Image { inner } else { inner.trim() };
    let start = start + inner.find(trimmed).unwrap_or(0);
    if trimmed.contains(char::is_whitespace) && expect != Expect::Image {
        return Verdict::Nothing;
    }
    match Reference::parse(trimmed) {
        Ok(reference) => match weigh(&reference, expect, start > 0) {
            Weight::Reference => Verdict::Reference { end: start + trimmed.len(), reference, start },
            Weight::Decoy(reason) => Verdict::Decoy { reason: reason.to_owned() },
            Weight::Unclassified(reason) => Verdict::Unclassified { reason: reason.to_owned() },
            Weight::Nothing => Verdict::Nothing,
        },
        Err(error) => {
            let reason = error.message();
            let suggestion = error.suggestion().map(str::to_owned);
            if trimmed.contains(['*', '|', '?', '^']) || trimmed.starts_with('!') {
                return if expect == Expect::Image {
                    Verdict::Decoy { reason: "a pattern that references are held against".to_owned() }
                } else {
                    Verdict::Nothing
                };
            }
            if expect == Expect::Image || has_digest(trimmed) {
                Verdict::Malformed { reason, suggestion }
            } else if expect == Expect::Perhaps
                && trimmed.contains('/')
                && trimmed.contains(':')
                && !trimmed.contains("://")
            {
                Verdict::Unclassified { reason }
            } else {
                Verdict::Nothing
            }
        }
    }
}

/// Whether a text that is no reference was surely meant to be one by digest.
fn has_digest(text: &str) -> bool {
    let Some((name, digest)) = text.split_once("@sha256:").or_else(|| text.split_once(":sha256:")) else {
        return false;
    };
    let hex = digest.bytes().rev().take_while(u8::is_ascii_hexdigit).count();
    !name.is_empty() && !name.contains("://") && name.contains('/') && hex >= 12
}

fn with_placeholders(
    text: &str,
    found: &[Piece<'_>],
    expect: Expect,
    values: &BTreeMap<String, String>,
) -> Verdict {
    let replaced = replace(found, values);
    if replaced.missing.is_empty() {
        let expect = expect.max(if replaced.defaulted.iter().any(|name| speaks_of_image(name)) {
            Expect::Perhaps
        } else {
            Expect::Nothing
        });
        return match classify(&replaced.text, expect, &BTreeMap::new()) {
            Verdict::Reference { reference, .. } => {
                Verdict::Defaulted { reference, defaulted: replaced.defaulted }
            }
            Verdict::Empty | Verdict::Malformed { .. } if expect == Expect::Image => {
                Verdict::Placeholder { names: replaced.defaulted }
            }
            _ => Verdict::Nothing,
        };
    }
    let spoken = replaced.missing.iter().any(|name| speaks_of_image(name));
    // `--port=$(PORT)` is for the program; `$(IMAGE)` alone, or a path and tag around variables, is for us.
    let whole = matches!(found, [Piece::Variable { .. } | Piece::Expression(_)]);
    let shaped = !text.contains(char::is_whitespace)
        && text.contains('/')
        && (text.contains(':') || text.contains('@'));
    let first = found.first();
    let host = matches!(first, Some(Piece::Text(text)) if text.split('/').next().is_some_and(is_registry));
    if expect == Expect::Image
        || (expect == Expect::Perhaps && (whole || shaped))
        || (spoken && whole)
        || (host && shaped)
    {
        return Verdict::Placeholder { names: replaced.missing };
    }
    if spoken && shaped && !text.contains("://") {
        return Verdict::Placeholder { names: replaced.missing };
    }
    Verdict::Nothing
}

enum Weight {
    Reference,
    Decoy(&'static str),
    Unclassified(&'static str),
    Nothing,
}

/// Decides whether a text that follows the grammar is meant as a reference.
fn weigh(reference: &Reference, expect: Expect, transport: bool) -> Weight {
    if reference.digest().is_some() || transport {
        return Weight::Reference;
    }
    let tag = reference.tag();
    if expect == Expect::Image {
        return if is_picture(reference.written()) {
            Weight::Decoy("a picture's file")
        } else {
            Weight::Reference
        };
    }
    match (reference.domain(), tag) {
        (Some(domain), Some(_)) if is_registry(domain) => Weight::Reference,
        (Some(domain), _) if is_other(domain) && expect < Expect::Perhaps => {
            if tag.is_some() {
                Weight::Decoy("a path on a host that holds no images")
            } else {
                Weight::Nothing
            }
        }
        (Some(domain), Some(tag)) if is_host(domain) => {
            if expect == Expect::Perhaps || !is_port(tag) {
                Weight::Reference
            } else {
                Weight::Decoy("a host's path with a port")
            }
        }
        // A tag was perhaps left to the default.
        (Some(_), None) if expect == Expect::Perhaps => Weight::Reference,
        (Some(domain), None) if is_known(domain) && is_host(domain) && is_path(reference) => {
            Weight::Reference
        }
        (Some(_), None) => Weight::Nothing,
        (Some(_), Some(_)) => Weight::Unclassified("its first part may be a host or a path"),
        (None, Some(tag)) => without_host(reference, tag, expect),
        (None, None) => match expect {
            Expect::Perhaps if reference.written().contains('/') && !is_picture(reference.written()) => {
                Weight::Unclassified("it names neither a registry nor a tag nor a digest")
            }
            _ => Weight::Nothing,
        },
    }
}

/// `name:tag` without a host: an image, a port, a role, a time, a key with its value.
fn without_host(reference: &Reference, tag: &str, expect: Expect) -> Weight {
    let written = reference.written();
    let name = written.strip_suffix(tag).and_then(|name| name.strip_suffix(':')).unwrap_or(written);
    if is_host(name) && is_port(tag) {
        return Weight::Decoy("a host with a port");
    }
    if matches!(name, "sha256" | "sha512" | "sha1" | "md5") {
        return Weight::Decoy("a checksum without a name");
    }
    if expect == Expect::Perhaps {
        return Weight::Reference;
    }
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Weight::Decoy("a time or two numbers");
    }
    if is_port(tag) && !name.contains('/') {
        return Weight::Decoy("a name with a port or number");
    }
    if matches!(name, "system" | "lab" | "cluster" | "user" | "group" | "role" | "serviceaccount") {
        return Weight::Decoy("the name of a role, user or group");
    }
    let versioned = tag == "latest"
        || tag.strip_prefix('v').unwrap_or(tag).starts_with(|first: char| first.is_ascii_digit())
            && tag.contains('.');
    if versioned {
        return Weight::Unclassified("it has the form name:version, and no registry");
    }
    Weight::Decoy("a name with a colon, and neither a registry nor a version")
}

fn is_port(tag: &str) -> bool {
    tag.len() <= 5 && tag.parse::<u16>().is_ok()
}

fn is_path(reference: &Reference) -> bool {
    reference.repository().contains('/')
}

fn is_picture(text: &str) -> bool {
    let extension = text.rsplit('.').next().unwrap_or_default();
    text.contains('.') && ["png", "svg", "jpg", "jpeg", "gif", "ico", "webp"].contains(&extension)
}
