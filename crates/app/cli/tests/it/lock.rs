//! `scantling lock` and `scantling check` on the registries of an example.

use std::fs;
use std::path::Path;

use crate::command::{BINARY, Ran, STALE, UNPUBLISHED, copy_of, scantling};
use crate::golden;

/// The command inside an example's sandbox, in a copy of the example.
fn inside(folder: &Path, arguments: &[&str]) -> Ran {
    Ran::of(scantling(&["sandbox", ".", "--", BINARY]).args(arguments).current_dir(folder))
}

#[test]
fn a_lock_says_what_the_registries_hold() {
    let example = copy_of(UNPUBLISHED);
    let folder = example.path();
    let report = inside(folder, &["lock", "releases/1.21.1"]).report(0);
    golden::compare("lock-unpublished", &report);
    let path = folder.join("releases/1.21.1/release.lock");
    let lock = fs::read_to_string(&path).unwrap();
    golden::compare("lock-unpublished-file", &lock);

    // Each digest of the lock is one that the example's registries hold.
    let images = Ran::of(scantling(&["sandbox", ".", "--images"]).current_dir(folder)).report(0);
    let digests: Vec<&str> = report
        .split(['@', ' ', '\n'])
        .filter(|word| word.len() == 71 && word.starts_with("sha256:"))
        .collect();
    assert!(digests.len() >= 5, "{report}");
    for digest in digests {
        assert!(images.contains(digest), "{digest} is none of\n{images}");
    }

    // Made again, by whatever order the registries answered in.
    let data = inside(folder, &["lock", "releases/1.21.1", "--output", "json"]).report(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), lock);
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["images"].as_array().map(Vec::len), Some(5), "{data}");
}

#[test]
fn no_lock_is_written_of_a_release_that_cannot_be_pulled() {
    let example = copy_of(UNPUBLISHED);
    let ran = inside(example.path(), &["lock", "releases/1.21"]);
    ran.says(&["error[SCN0401]", "releases/1.21/dashboard/const.ts:23:14", "nothing was written"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert!(!example.path().join("releases/1.21/release.lock").exists());
}

#[test]
fn a_release_that_cannot_be_read_is_not_locked() {
    let example = copy_of(UNPUBLISHED);
    fs::write(example.path().join("releases/1.21.1/release.yaml"), "kind: [\n").unwrap();
    let ran = inside(example.path(), &["lock", "releases/1.21.1"]);
    assert_eq!(ran.code, 3, "{}", ran.out);
    ran.says(&["error: the release cannot be read", "releases/1.21.1/release.yaml:"]);
}

#[test]
fn a_check_on_the_registries_names_the_fallback_that_was_never_published() {
    let example = copy_of(UNPUBLISHED);
    let folder = example.path();
    let ran = inside(folder, &["check", "releases/1.21"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
    ran.says(&[
        "error[SCN0401]",
        " --> releases/1.21/dashboard/const.ts:23:14",
        "ConfigMap servingruntimes-config is absent or has no key",
        "MANIFEST_UNKNOWN",
        "rhods 1.21.0-22: 1 error",
    ]);
    // The place is where the file says it.
    let source = fs::read_to_string(folder.join("releases/1.21/dashboard/const.ts")).unwrap();
    let line = source.lines().nth(22).unwrap();
    assert!(
        line[13..].starts_with("registry.redhat.io/rhods/odh-openvino-servingruntime-rhel8@sha256:"),
        "{line}"
    );

    let data = inside(folder, &["check", "releases/1.21", "--output", "json"]).report(1);
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    let finding = &data["findings"][0];
    assert_eq!(finding["code"], "SCN0401");
    let place = &finding["place"]["file"];
    assert_eq!((&place["line"], &place["column"]), (&23.into(), &14.into()), "{place}");

    let report = inside(folder, &["check", "releases/1.21.1"]).report(0);
    assert_eq!(report, "rhods 1.21.1-1: nothing found (11 objects, 5 images)\n");
}

#[test]
fn a_promoted_image_is_no_fault_any_more() {
    let example = copy_of(UNPUBLISHED);
    let folder = example.path();
    let constant = "releases/1.21/dashboard/const.ts";
    let source = fs::read_to_string(folder.join(constant)).unwrap();
    let corrected = fs::read_to_string(folder.join("releases/1.21.1/dashboard/const.ts")).unwrap();
    assert_ne!(source, corrected);
    fs::write(folder.join(constant), corrected).unwrap();
    let report = inside(folder, &["check", "releases/1.21"]).report(0);
    assert!(report.contains("nothing found"), "{report}");
}

#[test]
fn builds_are_locked_by_their_sources() {
    let example = copy_of(STALE);
    let report = inside(example.path(), &["lock", "releases/1.5"]).report(0);
    for text in [
        "quay.io/modh/s2i-minimal-notebook:v0.0.20",
        "tensorflow:py3.8-cuda-11.0.3 built on the cluster",
        "s2i-tensorflow-gpu-notebook at nb-5 upon",
        "3 references, 7 images without a digest",
    ] {
        assert!(report.contains(text), "{text:?} is not in\n{report}");
    }
}
