//! `scantling rehearse`.

use std::fs;

use tempfile::TempDir;

use crate::command::{STALE, UNPUBLISHED, copy_of, json, replace, run};
use crate::golden::Golden;

/// The reports of both examples, every way.
pub(crate) const GOLDEN: &[Golden] = &[
    rehearsal("rehearse-stale", &["rehearse", STALE], 0),
    rehearsal("rehearse-stale-fresh", &["rehearse", STALE, "--fresh"], 0),
    rehearsal("rehearse-stale-as-shipped", &["rehearse", STALE, "--as-shipped"], 1),
    rehearsal("rehearse-stale-as-shipped-fresh", &["rehearse", STALE, "--as-shipped", "--fresh"], 1),
    rehearsal(
        "rehearse-stale-as-shipped-remove-cached-images",
        &["rehearse", STALE, "--as-shipped", "--variant", "remove-cached-images"],
        0,
    ),
    rehearsal("rehearse-unpublished", &["rehearse", UNPUBLISHED], 0),
    rehearsal("rehearse-unpublished-fresh", &["rehearse", UNPUBLISHED, "--fresh"], 0),
    rehearsal("rehearse-unpublished-as-shipped", &["rehearse", UNPUBLISHED, "--as-shipped"], 1),
    rehearsal(
        "rehearse-unpublished-as-shipped-fresh",
        &["rehearse", UNPUBLISHED, "--as-shipped", "--fresh"],
        0,
    ),
    rehearsal(
        "rehearse-unpublished-as-shipped-a-write-the-right-image",
        &["rehearse", UNPUBLISHED, "--as-shipped", "--variant", "a-write-the-right-image"],
        0,
    ),
    rehearsal(
        "rehearse-unpublished-as-shipped-b-delete-the-config-map",
        &["rehearse", UNPUBLISHED, "--as-shipped", "--variant", "b-delete-the-config-map"],
        0,
    ),
    rehearsal(
        "rehearse-unpublished-as-shipped-c-promote-the-image",
        &["rehearse", UNPUBLISHED, "--as-shipped", "--variant", "c-promote-the-image"],
        0,
    ),
    Golden { name: "rehearse-unpublished-80", arguments: &["rehearse", UNPUBLISHED], columns: "80", code: 0 },
];

const fn rehearsal(name: &'static str, arguments: &'static [&'static str], code: i32) -> Golden {
    Golden { name, arguments, columns: "100", code }
}

fn hold(example: &str) {
    for golden in GOLDEN.iter().filter(|golden| golden.arguments.contains(&example)) {
        golden.hold();
    }
}

#[test]
fn reports_of_stale_notebook_images() {
    hold(STALE);
}

#[test]
fn reports_of_the_unpublished_runtime_image() {
    hold(UNPUBLISHED);
}

#[test]
fn data_is_the_same_twice_and_says_what_the_report_says() {
    let arguments = ["rehearse", UNPUBLISHED, "--as-shipped"];
    let data = json(&arguments, 1);
    let again = json(&arguments, 1);
    assert_eq!(data, again);
    let report = run(&arguments).report(1);
    assert!(report.contains(data["title"].as_str().unwrap()), "{report}");
    let written = data["models"][0]["written"].as_str().unwrap();
    assert!(written.contains("@sha256:") && report.contains(written), "{written}\n{report}");
}

#[test]
fn a_seed_replays_byte_for_byte_and_another_one_does_not() {
    let folder = TempDir::new().unwrap();
    let trace = |name: &str, seed: &str| {
        let path = folder.path().join(name);
        run(&["rehearse", UNPUBLISHED, "--seed", seed, "--trace", path.to_str().unwrap()]).report(0);
        fs::read_to_string(path).unwrap()
    };
    let (first, second, other) = (trace("first", "7"), trace("second", "7"), trace("other", "8"));
    assert!(first.lines().count() > 100, "{first}");
    assert!(first == second, "the same seed gave another trace");
    assert!(first != other, "another seed gave the same trace");
}

#[test]
fn a_corrected_example_ends_well_as_shipped() {
    let example = copy_of(UNPUBLISHED);
    let path = example.path().to_str().unwrap();
    assert!(run(&["rehearse", path, "--as-shipped"]).report(1).contains("ImagePullBackOff"));
    // Nobody made the config map beforehand: the vendor's script applies its own, and nothing falls back.
    replace(
        &example.path().join("rehearsal.yaml"),
        "metadata: {name: servingruntimes-config, namespace: redhat-ods-applications}\n            data: {team-notes",
        "metadata: {name: notes-of-ours, namespace: redhat-ods-applications}\n            data: {team-notes",
    );
    let report = run(&["rehearse", path, "--as-shipped"]).out;
    assert!(!report.contains("ImagePullBackOff"), "{report}");
    assert!(report.contains("fraud-detection in fraud: answers"), "{report}");
}
