//! Looking for references in files of every kind.

use std::collections::BTreeMap;

use scantling_finding::Place;
use scantling_manifest::{Options, What, discover, rewrite};

use super::parts;

/// Names by which files are told apart; the parts of an input are the files in this order.
const NAMES: [&str; 8] = [
    "base/kustomization.yaml",
    "base/manifest.yaml",
    "base/params.env",
    "code/const.ts",
    "Dockerfile",
    "chart/values.yaml",
    "chart/templates/pod.yaml",
    "pipeline.json",
];

/// What must hold of all files.
pub fn run(data: &[u8]) {
    let files: BTreeMap<String, Vec<u8>> =
        NAMES.iter().zip(parts(data)).map(|(name, part)| ((*name).to_owned(), part.to_vec())).collect();
    let found = discover(&files, &Options::default());
    for candidate in &found.candidates {
        check(&candidate.place, &files);
        if let What::Reference { reference } = &candidate.what
            && let Some(file) = &candidate.place.file
            && let Ok(text) = scantling_yaml::text(&files[&file.path])
            && let Ok(same) = rewrite(&text, &[(candidate, reference)])
        {
            assert_eq!(same, text, "a reference written over itself changes nothing");
        }
    }
    for finding in &found.findings {
        check(&finding.place, &files);
        assert!(!finding.message.is_empty());
        for (place, _) in &finding.related {
            check(place, &files);
        }
    }
}

/// A place in a file is a place in that file.
fn check(place: &Place, files: &BTreeMap<String, Vec<u8>>) {
    let Some(file) = &place.file else { return };
    let bytes = files.get(&file.path).expect("a place names a file that was given");
    assert!(file.line >= 1 && file.column >= 1);
    if let (Some((start, end)), Ok(text)) = (file.span, scantling_yaml::text(bytes)) {
        assert!(text.get(start..end).is_some(), "a span is a part of its file: {place}");
    }
}
