//! `scantling refs`.

use std::fs;

use tempfile::TempDir;

use crate::command::{UNPUBLISHED, json, run};
use crate::golden::Golden;

/// The references of the examples' releases.
pub(crate) const GOLDEN: &[Golden] = &[
    refs("refs-stale-1.5", &["refs", "examples/stale-notebook-image/releases/1.5"]),
    refs("refs-unpublished-1.21", &["refs", "examples/unpublished-runtime-image/releases/1.21"]),
    refs(
        "refs-unpublished-1.21-all",
        &["refs", "--all", "examples/unpublished-runtime-image/releases/1.21/manifests/dashboard.yaml"],
    ),
];

const fn refs(name: &'static str, arguments: &'static [&'static str]) -> Golden {
    Golden { name, arguments, columns: "100", code: 0 }
}

#[test]
fn reports_of_the_examples() {
    GOLDEN.iter().for_each(Golden::hold);
}

#[test]
fn data_names_the_same_references_as_the_report() {
    let path = format!("{UNPUBLISHED}/releases/1.21");
    let data = json(&["refs", &path], 0);
    assert_eq!(data, json(&["refs", &path], 0), "twice the same");
    let report = run(&["refs", &path]).report(0);
    let references: Vec<&str> = data["references"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|candidate| candidate["kind"] == "reference")
        .map(|candidate| candidate["reference"].as_str().unwrap())
        .collect();
    assert!(references.len() >= 5, "{references:?}");
    for reference in references {
        assert!(report.contains(reference), "{reference} is not in\n{report}");
    }
}

#[test]
fn a_file_that_is_no_yaml_is_a_fault_and_the_others_are_listed() {
    let folder = TempDir::new().unwrap();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: quay.io/a/b:1}]}\n";
    fs::write(folder.path().join("good.yaml"), pod).unwrap();
    fs::write(folder.path().join("bad.yaml"), "a: [1,\nb: }\n").unwrap();
    let ran = run(&["refs", folder.path().to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
    ran.says(&["good.yaml\n      4:38  quay.io/a/b:1", "bad.yaml:3:1: "]);
}
