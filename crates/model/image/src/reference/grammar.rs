//! The grammar's checks, part by part.

use super::error::{Part, Reason, ReferenceError};
use super::{TAG_LENGTH_MAX, WRITTEN_LENGTH_MAX};
use crate::digest::{Digest, DigestError};

type Check = Result<(), ReferenceError>;

/// What can be said about the text before it is taken apart.
pub(super) fn check_whole(written: &str) -> Check {
    let fail = |reason| Err(ReferenceError::new(written, Part::Whole, reason));
    if written.is_empty() {
        return fail(Reason::Empty);
    }
    if written.len() > WRITTEN_LENGTH_MAX {
        return fail(Reason::TooLong { most: WRITTEN_LENGTH_MAX, found: written.len() });
    }
    let invisible = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | '\u{200b}');
    if let Some(character) = written.chars().find(|&c| invisible(c)) {
        let trimmed = written.trim_matches(invisible);
        let at_end = !trimmed.contains(invisible);
        let error = ReferenceError::new(written, Part::Whole, Reason::Space { character, at_end });
        return Err(if at_end && super::Reference::parse(trimmed).is_ok() {
            error.suggesting(trimmed.to_owned())
        } else {
            error
        });
    }
    if let Some((scheme, rest)) = written.split_once("://") {
        let error =
            ReferenceError::new(written, Part::Whole, Reason::Scheme { scheme: format!("{scheme}://") });
        let rest = rest.trim_end_matches('/');
        return Err(if super::Reference::parse(rest).is_ok() {
            error.suggesting(rest.to_owned())
        } else {
            error
        });
    }
    if let Some(character) = written.chars().find(|c| matches!(c, '$' | '{' | '}' | '<' | '>' | '%')) {
        return fail(Reason::Placeholder { character });
    }
    if written.len() == 64 && written.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return fail(Reason::BareId);
    }
    if Digest::parse(written).is_ok() {
        return fail(Reason::BareId);
    }
    Ok(())
}

/// The text behind the first `@`.
pub(super) fn digest(written: &str, before: &str, text: &str) -> Result<Digest, ReferenceError> {
    let error = |reason| ReferenceError::new(written, Part::Digest, reason);
    if text.is_empty() {
        return Err(error(Reason::Empty));
    }
    if let Some((first, _)) = text.split_once('@') {
        let reason = if Digest::parse(first).is_ok() {
            Reason::TwoDigests
        } else {
            Reason::Character { character: '@' }
        };
        return Err(error(reason));
    }
    match Digest::parse(text) {
        Ok(digest) => Ok(digest),
        Err(DigestError::Doubled { algorithm }) => {
            let single = text.strip_prefix(&format!("{algorithm}:")).unwrap_or(text);
            let error = error(Reason::DoubledAlgorithm);
            Err(if Digest::parse(single).is_ok() {
                error.suggesting(format!("{before}@{single}"))
            } else {
                error
            })
        }
        Err(problem) => {
            if let Some((digest, tag)) = text.rsplit_once(':')
                && Digest::parse(digest).is_ok()
            {
                return Err(error(Reason::TagAfterDigest).suggesting(format!("{before}:{tag}@{digest}")));
            }
            Err(error(Reason::Digest(problem)))
        }
    }
}

/// Path and tag of what follows the registry. A colon separates a tag only behind the last slash.
pub(super) fn split_tag<'a>(
    written: &str,
    rest: &'a str,
    digest: Option<&Digest>,
) -> Result<(&'a str, Option<&'a str>), ReferenceError> {
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (before, component) = rest.split_at(last);
    if before.contains(':') {
        // `a/b:tag/c`: what follows the colon is no tag because of the slash, and no path has a colon.
        return Err(ReferenceError::new(written, Part::Repository, Reason::Character { character: ':' }));
    }
    let Some((name, tag)) = component.split_once(':') else {
        return Ok((rest, None));
    };
    let path = rest.get(..last + name.len()).unwrap_or(rest);
    if tag.is_empty() {
        return Err(ReferenceError::new(written, Part::Tag, Reason::Empty));
    }
    if let Some((algorithm, _)) = tag.split_once(':') {
        let prefix = written.get(..written.len() - tag.len() - 1).unwrap_or_default();
        if digest.is_none() && Digest::parse(tag).is_ok() {
            return Err(ReferenceError::new(written, Part::Tag, Reason::DigestAsTag)
                .suggesting(format!("{prefix}@{tag}")));
        }
        let reason = if matches!(algorithm, "sha256" | "sha512") || tag.contains(":sha256:") {
            Reason::DigestAsTag
        } else {
            Reason::TwoTags
        };
        return Err(ReferenceError::new(written, Part::Tag, reason));
    }
    Ok((path, Some(tag)))
}

/// A host, perhaps with a port: a name, an IPv4 address, or an IPv6 address in brackets.
pub(super) fn check_domain(written: &str, domain: &str) -> Check {
    let error = |part, reason| Err(ReferenceError::new(written, part, reason));
    let (host, port) = if domain.starts_with('[') {
        let Some(end) = domain.find(']') else {
            return error(Part::Registry, Reason::Character { character: '[' });
        };
        let (address, behind) = domain.split_at(end + 1);
        let inner = address.get(1..end).unwrap_or_default();
        if inner.is_empty() {
            return error(Part::Registry, Reason::Empty);
        }
        if let Some(character) = inner.chars().find(|c| !c.is_ascii_hexdigit() && *c != ':') {
            return error(Part::Registry, Reason::Character { character });
        }
        match behind.strip_prefix(':') {
            Some(port) => (None, Some(port)),
            None if behind.is_empty() => (None, None),
            None => {
                let character = behind.chars().next().unwrap_or(']');
                return error(Part::Registry, Reason::Character { character });
            }
        }
    } else {
        match domain.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(domain), None),
        }
    };
    if let Some(host) = host {
        if host.is_empty() {
            return error(Part::Registry, Reason::Empty);
        }
        for label in host.split('.') {
            if let Some(character) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
                return error(Part::Registry, Reason::Character { character });
            }
            if label.is_empty() || label.starts_with('-') || label.ends_with('-') {
                return error(Part::Registry, Reason::Separator { component: label.to_owned() });
            }
        }
    }
    match port {
        Some(port) if !is_port(port) => error(Part::Port, Reason::Port { port: port.to_owned() }),
        _ => Ok(()),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port != 0)
}

/// A repository's path.
pub(super) fn check_path(written: &str, path: &str, domain: Option<&str>) -> Check {
    let error = |reason| Err(ReferenceError::new(written, Part::Repository, reason));
    if path.is_empty() {
        return error(Reason::Empty);
    }
    if let Some(component) = path.split('/').find(|part| part.bytes().any(|b| b.is_ascii_uppercase())) {
        return error(Reason::UpperCase { component: component.to_owned() });
    }
    if domain.is_none() && path.starts_with('[') {
        return error(Reason::Character { character: '[' });
    }
    for component in path.split('/') {
        let legal = |c: &char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
        if let Some(character) = component.chars().find(|c| !legal(c)) {
            return error(Reason::Character { character });
        }
        if component.is_empty() {
            return error(Reason::Empty);
        }
        if !separators_fit(component) {
            return error(Reason::Separator { component: component.to_owned() });
        }
    }
    Ok(())
}

/// Letters and digits with `.`, `_`, `__` or any number of `-` between them.
fn separators_fit(component: &str) -> bool {
    let is_separator = |c: char| matches!(c, '.' | '_' | '-');
    if component.starts_with(is_separator) || component.ends_with(is_separator) {
        return false;
    }
    component
        .split(|c: char| !is_separator(c))
        .filter(|run| !run.is_empty())
        .all(|run| matches!(run, "." | "_" | "__") || run.bytes().all(|b| b == b'-'))
}

/// A tag.
pub(super) fn check_tag(written: &str, tag: &str) -> Check {
    let error = |reason| Err(ReferenceError::new(written, Part::Tag, reason));
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if let Some(character) = tag.chars().find(|&c| !legal(c)) {
        return error(Reason::Character { character });
    }
    match tag.chars().next() {
        None => error(Reason::Empty),
        Some(character @ ('.' | '-')) => error(Reason::Start { character }),
        Some(_) if tag.len() > TAG_LENGTH_MAX => {
            error(Reason::TooLong { most: TAG_LENGTH_MAX, found: tag.len() })
        }
        Some(_) => Ok(()),
    }
}
