//! Real manifests, as published. The folder's `INDEX.md` counts, by an independent scan, the distinct references and
//! placeholders of every file: a floor that must be reached.
//!
//! The folder is given by the variable `SCANTLING_REAL_INPUTS`; without it the tests say so and end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use scantling_manifest::{Candidate, Discovery, Options, What, discover};

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SCANTLING_REAL_INPUTS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: SCANTLING_REAL_INPUTS is not set");
    }
    folder
}

fn look(folder: &Path, path: &str) -> Discovery {
    let bytes = std::fs::read(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    discover(&BTreeMap::from([(path.to_owned(), bytes)]), &Options::default())
}

fn distinct(candidates: &[Candidate], pick: impl Fn(&Candidate) -> Option<String>) -> BTreeSet<String> {
    candidates.iter().filter_map(pick).collect()
}

#[test]
fn everything_that_was_counted_is_found() {
    let Some(folder) = folder() else { return };
    let index = std::fs::read_to_string(folder.join("INDEX.md")).unwrap();
    let mut checked = 0;
    for line in index.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, path, _, _, digests, tags, placeholders, _] = cells.as_slice() else { continue };
        let (Ok(digests), Ok(tags), Ok(placeholders)) =
            (digests.parse::<usize>(), tags.parse::<usize>(), placeholders.parse::<usize>())
        else {
            continue;
        };
        let found = look(&folder, path).candidates;
        let pinned = distinct(&found, |candidate| {
            let reference = candidate.reference()?;
            reference.digest().map(|digest| format!("{}@{digest}", reference.name()))
        });
        let tagged = distinct(&found, |candidate| {
            let reference = candidate.reference()?;
            (!reference.is_pinned() && reference.tag().is_some()).then(|| reference.to_string())
        });
        let waiting = distinct(&found, |candidate| match &candidate.what {
            What::Placeholder { .. } => Some(candidate.written.clone()),
            // A name that only a kustomization can fill, in one of the counted files.
            What::Reference { reference } if reference.tag().is_none() && reference.domain().is_none() => {
                Some(candidate.written.clone())
            }
            _ => None,
        });
        assert!(pinned.len() >= digests, "{path}: {} of {digests} digests: {pinned:#?}", pinned.len());
        assert!(tagged.len() >= tags, "{path}: {} of {tags} tags: {tagged:#?}", tagged.len());
        assert!(
            waiting.len() >= placeholders,
            "{path}: {} of {placeholders} placeholders: {waiting:#?}",
            waiting.len()
        );
        checked += 1;
    }
    assert!(checked > 30, "INDEX.md lists only {checked} files");
}
