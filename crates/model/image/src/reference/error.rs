//! Why a text is no reference: which part, what is wrong, what to do.

use std::fmt;

use crate::digest::DigestError;

/// The part of a reference that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The text as a whole.
    Whole,
    /// The registry's host.
    Registry,
    /// The registry's port.
    Port,
    /// The repository's path.
    Repository,
    /// The tag.
    Tag,
    /// The digest.
    Digest,
}

impl Part {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "reference",
            Self::Registry => "registry",
            Self::Port => "port",
            Self::Repository => "repository",
            Self::Tag => "tag",
            Self::Digest => "digest",
        }
    }
}

/// What is wrong with a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Nothing is there.
    Empty,
    /// Longer than allowed.
    TooLong {
        /// Most characters allowed.
        most: usize,
        /// Characters found.
        found: usize,
    },
    /// White space, a line break or a control character, at the ends or within.
    Space {
        /// The character.
        character: char,
        /// True if it stands only at the ends.
        at_end: bool,
    },
    /// A scheme or transport such as `https://` or `docker://` in front.
    Scheme {
        /// The scheme with its slashes.
        scheme: String,
    },
    /// A variable or template expression that was not replaced.
    Placeholder {
        /// The character that gives it away.
        character: char,
    },
    /// A character that does not belong in this part.
    Character {
        /// The character.
        character: char,
    },
    /// Upper-case letters in a part that is lower-case.
    UpperCase {
        /// The component with upper-case letters.
        component: String,
    },
    /// A component of the path or host begins or ends with a separator, or has separators that cannot follow each other.
    Separator {
        /// The component.
        component: String,
    },
    /// A tag begins with `.` or `-`.
    Start {
        /// The character.
        character: char,
    },
    /// Two tags.
    TwoTags,
    /// Two digests.
    TwoDigests,
    /// A digest joined by a colon, as if it were a tag.
    DigestAsTag,
    /// A digest's algorithm written twice.
    DoubledAlgorithm,
    /// The tag stands behind the digest.
    TagAfterDigest,
    /// The digest is malformed.
    Digest(DigestError),
    /// A port that is no number from 1 to 65535.
    Port {
        /// What was written.
        port: String,
    },
    /// A bare 64-digit ID, which names an image on one machine only.
    BareId,
}

/// A text that is no image reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceError {
    written: String,
    part: Part,
    reason: Reason,
    suggestion: Option<String>,
}

/// Most characters of the text that are repeated in a message.
const SHOWN: usize = 200;

impl ReferenceError {
    pub(super) fn new(written: &str, part: Part, reason: Reason) -> Self {
        Self { written: shown(written), part, reason, suggestion: None }
    }

    pub(super) fn suggesting(mut self, suggestion: String) -> Self {
        self.suggestion = Some(suggestion);
        self
    }

    /// What was written, shortened to 200 characters.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Which part is wrong.
    pub fn part(&self) -> Part {
        self.part
    }

    /// What is wrong with it.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// The reference that was probably meant, where that is plain.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }

    /// What is wrong, without the text and without the hint.
    pub fn message(&self) -> String {
        let part = self.part.name();
        match &self.reason {
            Reason::Empty => format!("the {part} is empty"),
            Reason::TooLong { most, found } => {
                format!("the {part} has {found} characters, {most} are allowed")
            }
            Reason::Space { character, at_end: true } => {
                format!("the {part} has {} at its end or beginning", spoken(*character))
            }
            Reason::Space { character, at_end: false } => {
                format!("the {part} has {} in it", spoken(*character))
            }
            Reason::Scheme { scheme } => format!("`{scheme}` does not belong in a reference"),
            Reason::Placeholder { character } => {
                format!("`{character}` shows that a variable or template was not replaced")
            }
            Reason::Character { character } => format!("the {part} cannot have {}", spoken(*character)),
            Reason::UpperCase { component } => {
                format!("`{component}` has upper-case letters, the {part} must be lower-case")
            }
            Reason::Separator { component } => format!(
                "the {part}'s component `{component}` must begin and end with a letter or digit, with single \
                 separators between"
            ),
            Reason::Start { character } => format!("the {part} begins with `{character}`"),
            Reason::TwoTags => "there are two tags".to_owned(),
            Reason::TwoDigests => "there are two digests".to_owned(),
            Reason::DigestAsTag => "a digest is written as if it were a tag".to_owned(),
            Reason::DoubledAlgorithm => "the digest's algorithm is written twice".to_owned(),
            Reason::TagAfterDigest => "the tag stands behind the digest".to_owned(),
            Reason::Digest(error) => error.to_string(),
            Reason::Port { port } => format!("`{port}` is no port"),
            Reason::BareId => "this is the ID of an image on one machine, not a reference".to_owned(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        if let Some(suggestion) = &self.suggestion {
            return Some(format!("write {suggestion}"));
        }
        let hint = match (&self.reason, self.part) {
            (Reason::Empty, Part::Repository) => "name the repository between registry and tag",
            (Reason::Empty, Part::Tag) => "write a tag behind the colon, or remove the colon",
            (Reason::Empty, Part::Digest) => "write a digest behind the @, or remove the @",
            (Reason::Empty, _) => "write REGISTRY/REPOSITORY@DIGEST or REGISTRY/REPOSITORY:TAG",
            (Reason::Space { .. }, _) => "remove it",
            (Reason::Placeholder { .. }, _) => "set the variable, or give the value that it stands for",
            (Reason::Character { .. }, Part::Tag) => {
                "a tag has letters, digits, `_`, `.` and `-`, at most 128, and begins with a letter, digit or `_`"
            }
            (Reason::Character { .. }, Part::Repository) => {
                "a repository has lower-case letters and digits, with `.`, `_`, `__` or `-` between them"
            }
            (Reason::Start { .. }, _) => "a tag begins with a letter, a digit or `_`",
            (Reason::TwoTags, _) => "keep one tag; a registry's port stands before the first slash",
            (Reason::TwoDigests, _) => "keep one digest",
            (Reason::Port { .. }, _) => "a port is a number from 1 to 65535",
            (Reason::BareId, _) => "write REGISTRY/REPOSITORY@sha256: and a manifest's digest",
            (Reason::UpperCase { .. }, _) => "use the repository's name as the registry has it",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` is no image reference: {}", self.written.escape_debug(), self.message())?;
        match self.hint() {
            Some(hint) => write!(formatter, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ReferenceError {}

fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn spoken(character: char) -> String {
    match character {
        '\n' | '\r' => "a line break".to_owned(),
        ' ' => "a space".to_owned(),
        '\t' => "a tab".to_owned(),
        '\u{feff}' => "a byte order mark".to_owned(),
        other if other.is_control() || other.is_whitespace() => {
            format!("the invisible character U+{:04X}", u32::from(other))
        }
        other => format!("`{other}`"),
    }
}
