//! The image references of a release.

use std::collections::BTreeSet;
use std::fmt;

use scantling_finding::{Finding, Place, codes};
use scantling_image::Reference;
use scantling_manifest::{Candidate, Discovery, Options, Route, What, discover};
use serde::Serialize;

use crate::read::{Tree, shown};
use crate::substitution::Substitutions;
use crate::{Fallback, LiveWhen, Release};

/// One use of a reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsedReference {
    /// The reference.
    pub reference: Reference,
    /// Where it is written; for a placeholder that the release fills, where the placeholder is.
    pub place: Place,
    /// How the cluster comes to use it.
    pub route: Route,
    /// When it is live.
    pub reach: Reach,
}

/// When a reference is live.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reach {
    /// As soon as the release is applied.
    Applied,
    /// When something else is missing.
    Fallback(Condition),
    /// It is in code, and the release does not say when it is used.
    Undeclared,
}

/// When a fallback is used; shown as the words for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The condition in words.
    pub words: String,
    /// The release's own declaration, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<LiveWhen>,
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}

/// Finds the references of a release in its manifests and sources.
pub(crate) fn read(
    release: &mut Release,
    root: &str,
    tree: &Tree,
    manifests: &BTreeSet<&str>,
    sources: &BTreeSet<&str>,
    fallbacks: &[Fallback],
    substitutions: &Substitutions,
) {
    let files: Tree = manifests
        .union(sources)
        .filter_map(|file| Some((shown(root, file), tree.get(*file)?.clone())))
        .collect();
    let code: BTreeSet<String> = sources.difference(manifests).map(|file| shown(root, file)).collect();
    let Discovery { candidates, findings, .. } = discover(&files, &Options::default());
    let mut filled: BTreeSet<Place> = BTreeSet::new();
    let mut unfilled: Vec<Finding> = Vec::new();
    for candidate in &candidates {
        let in_code = candidate.place.file.as_ref().is_some_and(|place| code.contains(&place.path));
        let reference = match &candidate.what {
            What::Placeholder { names, filled_by } => {
                let Some(text) = substitutions.filled(&candidate.written) else {
                    if filled_by.is_empty() && candidate.route.is_pulled() {
                        unfilled.push(left(candidate, names));
                    }
                    continue;
                };
                filled.insert(candidate.place.clone());
                match Reference::parse(&text) {
                    Ok(reference) => reference,
                    Err(error) => {
                        release.findings.push(
                            Finding::new(
                                codes::references::MALFORMED_REFERENCE,
                                format!(
                                    "{} becomes {text:?}, which is no reference: {error}",
                                    candidate.written
                                ),
                                candidate.place.clone(),
                            )
                            .with_remedy("correct the value under `substitutions:`"),
                        );
                        continue;
                    }
                }
            }
            _ => match candidate.reference() {
                Some(reference) if candidate.route.is_pulled() => reference.clone(),
                _ => continue,
            },
        };
        let reach = if in_code { in_source(root, candidate, fallbacks) } else { in_manifest(candidate) };
        release.references.push(UsedReference {
            reference,
            place: candidate.place.clone(),
            route: candidate.route.clone(),
            reach,
        });
    }
    unfilled.retain(|left| {
        findings
            .iter()
            .all(|known| known.code != left.code || position(&known.place) != position(&left.place))
    });
    release.findings.extend(findings.into_iter().filter(|finding| {
        finding.code != codes::references::UNRESOLVED_PLACEHOLDER || !is_filled(&finding.place, &filled)
    }));
    release.findings.extend(unfilled);
    release.findings.extend(undeclared(release));
    release.findings.extend(empty(release, root, fallbacks));
}

/// Where a place begins.
pub(crate) fn position(place: &Place) -> Option<(&str, u32, u32)> {
    place.file.as_ref().map(|file| (file.path.as_str(), file.line, file.column))
}

/// A placeholder that nothing fills.
fn left(candidate: &Candidate, names: &[String]) -> Finding {
    let message = format!("nothing fills {}", candidate.written);
    Finding::new(codes::references::UNRESOLVED_PLACEHOLDER, message, candidate.place.clone())
        .with_remedy(format!("give {} a value, under `substitutions:` in release.yaml", names.join(", ")))
}

/// Whether a finding is about a placeholder that the release fills.
fn is_filled(place: &Place, filled: &BTreeSet<Place>) -> bool {
    filled.iter().any(|filled| position(filled) == position(place))
}

fn in_manifest(candidate: &Candidate) -> Reach {
    let words = match (&candidate.condition, &candidate.route) {
        (Some(words), _) if candidate.is_fallback() => words.clone(),
        (None, Route::Fallback(name)) => format!("{name} is not set"),
        _ => return Reach::Applied,
    };
    Reach::Fallback(Condition { words, declared: None })
}

fn in_source(root: &str, candidate: &Candidate, fallbacks: &[Fallback]) -> Reach {
    let path = candidate.place.file.as_ref().map(|place| place.path.as_str());
    match fallbacks.iter().find(|fallback| Some(shown(root, &fallback.file).as_str()) == path) {
        Some(fallback) => Reach::Fallback(Condition {
            words: fallback.live_when.to_string(),
            declared: Some(fallback.live_when.clone()),
        }),
        None => Reach::Undeclared,
    }
}

/// References in code that the release says nothing about.
fn undeclared(release: &Release) -> Vec<Finding> {
    release
        .references
        .iter()
        .filter(|used| used.reach == Reach::Undeclared)
        .map(|used| {
            let message =
                format!("the code brings {} along, and the release does not say when", used.reference);
            Finding::new(codes::fallbacks::UNDECLARED_FALLBACK, message, used.place.clone())
        })
        .collect()
}

/// Declared fallbacks whose file holds no reference.
fn empty(release: &Release, root: &str, fallbacks: &[Fallback]) -> Vec<Finding> {
    let files: BTreeSet<&str> =
        release.references.iter().filter_map(|used| Some(used.place.file.as_ref()?.path.as_str())).collect();
    fallbacks
        .iter()
        .map(|fallback| shown(root, &fallback.file))
        .filter(|path| !files.contains(path.as_str()))
        .map(|path| {
            let message = format!("{path} is declared as a fallback and holds no reference");
            Finding::new(codes::fallbacks::EMPTY_FALLBACK, message, release.place.clone())
        })
        .collect()
}
