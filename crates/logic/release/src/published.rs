//! Lists of published images.

use std::collections::{BTreeMap, BTreeSet};

use scantling_finding::{Finding, Place, codes};
use scantling_image::{Digest, Reference};

/// What begins the comment in which a list declares itself complete.
const COMPLETE: &str = "complete:";

/// A list of published images: one reference a line, comments after `#`.
///
/// A list is only evidence of *presence*, unless its first line is a comment `# complete: WHO, WHEN`: then whoever signs
/// there says that what is not in it does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedList {
    /// The list's path, for messages.
    pub path: String,
    /// Who declares it complete, and when.
    pub complete: Option<String>,
    digests: BTreeMap<String, BTreeSet<Digest>>,
    tags: BTreeSet<(String, String)>,
}

/// What a list says about a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// It holds the reference.
    Yes,
    /// It does not.
    No {
        /// How many digests it holds of the same repository.
        same_repository: usize,
        /// Other repositories under which it holds the same digest.
        same_digest: Vec<String>,
    },
    /// The reference is a tag; the list names digests of its repository, and which of them the tag means is not known.
    OnlyDigests {
        /// How many digests it holds of the repository.
        same_repository: usize,
    },
}

impl PublishedList {
    /// Reads a list. Lines that are no references become findings.
    pub fn parse(path: &str, text: &str) -> (Self, Vec<Finding>) {
        let mut list = Self { path: path.to_owned(), ..Self::default() };
        let mut findings = Vec::new();
        for (number, line) in (1u32..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                let comment = line.trim().trim_start_matches('#').trim();
                if let Some(who) = comment.strip_prefix(COMPLETE).filter(|_| number == 1) {
                    list.complete = Some(who.trim().to_owned());
                }
                continue;
            }
            match Reference::parse(entry) {
                Ok(reference) => list.insert(&reference),
                Err(error) => findings.push(Finding::new(
                    codes::publication::LIST_UNREADABLE,
                    error.to_string(),
                    Place::file(path, number, 1),
                )),
            }
        }
        if list.complete.as_deref() == Some("") {
            list.complete = None;
            findings.push(
                Finding::new(
                    codes::publication::LIST_UNREADABLE,
                    "the list declares itself complete but does not say who says so and when",
                    Place::file(path, 1, 1),
                )
                .with_remedy("write `# complete: NAME, DATE`"),
            );
        }
        (list, findings)
    }

    fn insert(&mut self, reference: &Reference) {
        if let Some(digest) = reference.digest() {
            self.digests.entry(reference.name()).or_default().insert(digest.clone());
        } else if let Some(tag) = reference.effective_tag() {
            self.tags.insert((reference.name(), tag.to_owned()));
        }
    }

    /// How many images it holds.
    pub fn len(&self) -> usize {
        self.digests.values().map(BTreeSet::len).sum::<usize>() + self.tags.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it holds a reference.
    pub fn holds(&self, reference: &Reference) -> Listed {
        let name = reference.name();
        let same = self.digests.get(&name);
        let same_repository = same.map_or(0, BTreeSet::len);
        if let Some(digest) = reference.digest() {
            if same.is_some_and(|digests| digests.contains(digest)) {
                return Listed::Yes;
            }
            let elsewhere = self.digests.iter().filter(|(_, digests)| digests.contains(digest));
            return Listed::No {
                same_repository,
                same_digest: elsewhere.map(|(name, _)| name.clone()).collect(),
            };
        }
        match reference.effective_tag() {
            Some(tag) if self.tags.contains(&(name, tag.to_owned())) => Listed::Yes,
            _ if same_repository > 0 => Listed::OnlyDigests { same_repository },
            _ => Listed::No { same_repository, same_digest: Vec::new() },
        }
    }
}
