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

/// Every folder at once: places are true, and nothing that is no image is taken for one.
#[test]
fn places_are_true_and_decoys_are_not_references() {
    let Some(folder) = folder() else { return };
    let mut files = BTreeMap::new();
    collect(&folder, &folder, &mut files);
    let found = discover(&files, &Options::default());
    let mut references = 0;
    for candidate in &found.candidates {
        let place = candidate.place.file.as_ref().unwrap();
        let (start, end) = place.span.unwrap();
        let text = std::str::from_utf8(&files[&place.path]).unwrap();
        let reference = candidate.reference();
        if let What::Reference { .. } | What::Placeholder { .. } | What::Malformed { .. } = &candidate.what {
            assert_eq!(&text[start..end], candidate.written, "{}", candidate.place);
        }
        let line = text[..start].matches('\n').count() + 1;
        assert_eq!(place.line as usize, line, "{}", candidate.place);
        let Some(reference) = reference else { continue };
        references += 1;
        let written = reference.written();
        assert!(
            !written.starts_with("port:")
                && !written.starts_with("system:")
                && !written.starts_with("sha256:"),
            "{written}"
        );
        let host = reference.domain().unwrap_or_default();
        let known = ["registry.", "quay.io", "nvcr.io", "127.0.0.1", "docker.io", "gcr.io", "ghcr.io"];
        assert!(known.iter().any(|start| host.starts_with(start)), "{written} at {}", candidate.place);
    }
    assert!(references > 3500, "{references}");
    for finding in &found.findings {
        println!("{} {} {}", finding.code, finding.place, finding.message);
        assert!(finding.code.as_str() < "SCN0600", "{finding:?}");
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
}
