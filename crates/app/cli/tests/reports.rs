//! What the commands on releases print, on small releases of the shape of the two incidents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::PathBuf;

use assert_cmd::Command;
use support::{run, scantling};

fn in_data(columns: &str) -> Command {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../logic/release/tests/data");
    let mut command = scantling();
    command.current_dir(data).env("COLUMNS", columns);
    command
}

#[test]
fn kept_names_are_shown_with_everything_that_changes_behind_them() {
    for columns in ["80", "160"] {
        let (out, err, code) =
            run(in_data(columns).args(["check", "--offline", "--from", "gpu-1.3", "gpu-1.5"]));
        assert_eq!((code, err.as_str()), (1, ""));
        insta::assert_snapshot!(format!("kept_names_{columns}"), out);
    }
}

#[test]
fn new_tags_are_shown_with_the_old_ones_and_what_remains() {
    let (out, err, code) = run(in_data("100").args(["check", "--offline", "--from", "gpu-1.5", "gpu-1.6"]));
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
}

#[test]
fn an_unpublished_fallback_is_shown_with_its_condition() {
    let (out, err, code) =
        run(in_data("100").args(["check", "platform", "--published", "serving/published.txt"]));
    assert_eq!((code, err.as_str()), (1, ""));
    insta::assert_snapshot!(out);
}

#[test]
fn references_are_listed_through_nested_documents() {
    let (out, err, code) = run(in_data("100").args(["refs", "platform", "serving/runtimes.yaml"]));
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
}

#[test]
fn colours_are_only_where_they_are_wanted() {
    let colored = |arguments: &[&str]| run(in_data("100").args(arguments)).0.contains('\u{1b}');
    assert!(!colored(&["refs", "serving"]));
    assert!(colored(&["refs", "serving", "--color", "always"]));
    assert!(!colored(&["refs", "serving", "--color", "never"]));
}

#[test]
fn json_says_the_same_as_data() {
    let (out, err, code) =
        run(in_data("100").args(["check", "--offline", "--from", "gpu-1.3", "gpu-1.5", "--output", "json"]));
    assert_eq!((code, err.as_str()), (1, ""));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["summary"]["errors"], 4);
    let change = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["name"] == "tensorflow:py3.8-cuda-11")
        .unwrap();
    assert_eq!(change["change"], "sameName");
    assert_eq!(change["changed"][0]["from"]["text"], "nb-4");
    assert_eq!(change["through"][0], "minimal-gpu:py3.8-cuda-11");

    let (out, _, _) = run(in_data("100").args(["refs", "serving/runtimes.yaml", "--output", "json"]));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let references: Vec<&str> = report["references"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|candidate| candidate["kind"] == "reference")
        .map(|candidate| candidate["reference"].as_str().unwrap())
        .collect();
    assert_eq!(references.len(), 2, "{references:?}");
}
