//! Changing references in place: the bytes of the reference and nothing else.

use scantling_image::Reference;

use crate::candidate::{Candidate, Part, Role, What};

/// Why a reference cannot be changed in place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The candidate is no reference.
    #[error("{written:?} is no reference that could be replaced")]
    NoReference {
        /// What is written.
        written: String,
    },
    /// The text at the candidate's place is another one.
    #[error(
        "{written:?} is not what stands at its place: the file has changed, or the text is escaped there"
    )]
    OtherText {
        /// What was expected.
        written: String,
    },
    /// The fields that make the reference have no place for what the new one has.
    #[error("the fields of {written} have no place for {new}: add a field for the {missing}")]
    NoField {
        /// What is written.
        written: String,
        /// The new reference.
        new: String,
        /// "digest" or "tag".
        missing: &'static str,
    },
    /// Two edits want different texts at one place.
    #[error("two different references are to be written at one place, one of them {new}")]
    Conflict {
        /// One of the two.
        new: String,
    },
}

/// Writes new references in the place of candidates of one file.
///
/// Comments, order and quotes stay. A reference that several aliases stand for is written once.
pub fn rewrite(text: &str, edits: &[(&Candidate, &Reference)]) -> Result<String, RewriteError> {
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    for (candidate, new) in edits {
        match &candidate.what {
            What::Reference { .. } => {
                let (start, end) = span(candidate.place.file.as_ref());
                if text.get(start..end) != Some(candidate.written.as_str()) {
                    return Err(RewriteError::OtherText { written: candidate.written.clone() });
                }
                changes.push((start, end, new.to_string()));
            }
            What::Joined { parts, .. } => joined(text, candidate, parts, new, &mut changes)?,
            _ => return Err(RewriteError::NoReference { written: candidate.written.clone() }),
        }
    }
    changes.sort();
    changes.dedup();
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new) in changes {
        let Some(before) = text.get(at..start) else { return Err(RewriteError::Conflict { new }) };
        result.push_str(before);
        result.push_str(&new);
        at = end;
    }
    result.push_str(text.get(at..).unwrap_or_default());
    Ok(result)
}

fn span(file: Option<&scantling_finding::FilePlace>) -> (usize, usize) {
    file.and_then(|file| file.span).unwrap_or_default()
}

fn joined(
    text: &str,
    candidate: &Candidate,
    parts: &[Part],
    new: &Reference,
    changes: &mut Vec<(usize, usize, String)>,
) -> Result<(), RewriteError> {
    let has = |role: Role| parts.iter().any(|part| part.role == role);
    let no_field =
        |missing| RewriteError::NoField { written: candidate.written.clone(), new: new.to_string(), missing };
    if new.digest().is_some() && !has(Role::Digest) {
        return Err(no_field("digest"));
    }
    if new.tag().is_some() && new.digest().is_none() && !has(Role::Tag) {
        return Err(no_field("tag"));
    }
    if new.digest().is_none() && has(Role::Digest) {
        // The old digest would win over the new tag.
        return Err(no_field("tag without a digest"));
    }
    for part in parts {
        let value = match part.role {
            Role::Registry => new.domain().unwrap_or(scantling_image::DOCKER_HUB).to_owned(),
            Role::Name => name(new, has(Role::Registry)),
            Role::Tag => match new.tag() {
                Some(tag) => tag.to_owned(),
                None => continue,
            },
            Role::Digest => match new.digest() {
                Some(digest) if part.written.contains(':') => digest.to_string(),
                Some(digest) => digest.hex().to_owned(),
                None => continue,
            },
        };
        let (start, end) = span(part.place.file.as_ref());
        let written = text.get(start..end).unwrap_or_default();
        let quote = ["\"", "'", ""].into_iter().find(|quote| {
            written.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote))
                == Some(part.written.as_str())
        });
        let Some(quote) = quote else {
            return Err(RewriteError::OtherText { written: part.written.clone() });
        };
        // A tag without quotes may be read as a number.
        let quote = if quote.is_empty() && part.role == Role::Tag { "\"" } else { quote };
        changes.push((start, end, format!("{quote}{value}{quote}")));
    }
    Ok(())
}

/// The name as it is written, with its registry unless that has a field of its own.
fn name(reference: &Reference, registry_apart: bool) -> String {
    let written = reference.written();
    let written = written.split('@').next().unwrap_or_default();
    let name = match reference.tag() {
        Some(tag) => written.strip_suffix(tag).and_then(|name| name.strip_suffix(':')).unwrap_or(written),
        None => written,
    };
    match reference.domain() {
        Some(domain) if registry_apart => {
            name.strip_prefix(domain).map_or(name, |rest| rest.trim_start_matches('/'))
        }
        _ => name,
    }
    .to_owned()
}
