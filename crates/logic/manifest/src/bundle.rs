//! What an operator's bundle lists and what it uses.

use std::collections::{BTreeMap, BTreeSet};

use scantling_image::Reference;

use crate::candidate::{Candidate, Route};

/// The images of one bundle, held against its list of related images. Mirrors for disconnected clusters copy what is
/// listed, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<'found> {
    /// The file.
    pub file: &'found str,
    /// The object, as `ClusterServiceVersion name`.
    pub object: &'found str,
    /// References that the bundle uses and does not list.
    pub unlisted: Vec<&'found Candidate>,
    /// References that the bundle lists and does not use.
    pub unused: Vec<&'found Candidate>,
    /// References that the bundle uses without a digest.
    pub unpinned: Vec<&'found Candidate>,
}

/// Holds every `ClusterServiceVersion` against its own list.
pub fn listings(candidates: &[Candidate]) -> Vec<Listing<'_>> {
    let mut bundles: BTreeMap<(&str, &str), Vec<&Candidate>> = BTreeMap::new();
    for candidate in candidates.iter().filter(|candidate| candidate.is_pulled()) {
        if let (Some(file), Some(object)) = (&candidate.place.file, &candidate.place.object)
            && object.starts_with("ClusterServiceVersion")
        {
            bundles.entry((file.path.as_str(), object.as_str())).or_default().push(candidate);
        }
    }
    bundles.into_iter().map(|((file, object), found)| listing(file, object, &found)).collect()
}

fn listing<'found>(file: &'found str, object: &'found str, found: &[&'found Candidate]) -> Listing<'found> {
    let canonical = |candidate: &Candidate| candidate.reference().map(Reference::canonical);
    let names = |listed: bool| -> BTreeSet<String> {
        found
            .iter()
            .filter(|candidate| is_listed(candidate) == listed)
            .filter_map(|candidate| canonical(candidate))
            .collect()
    };
    let (listed, used) = (names(true), names(false));
    let pick = |wanted: &dyn Fn(&Candidate, &Reference) -> bool| -> Vec<&'found Candidate> {
        found
            .iter()
            .copied()
            .filter(|candidate| candidate.reference().is_some_and(|reference| wanted(candidate, reference)))
            .collect()
    };
    Listing {
        file,
        object,
        unlisted: pick(&|candidate, reference| {
            !is_listed(candidate) && !listed.contains(&reference.canonical())
        }),
        unused: pick(&|candidate, reference| is_listed(candidate) && !used.contains(&reference.canonical())),
        unpinned: pick(&|candidate, reference| !is_listed(candidate) && !reference.is_pinned()),
    }
}

fn is_listed(candidate: &Candidate) -> bool {
    candidate.route == Route::Listed
}
