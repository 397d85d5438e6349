//! What the command says when it is used wrongly, and where it says it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;

use support::{run, scantling};
use tempfile::TempDir;

#[test]
fn wrong_use_is_explained_on_standard_error() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("list.txt"), "").unwrap();
    fs::write(folder.path().join("pod.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n").unwrap();
    fs::write(folder.path().join("rules.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n").unwrap();
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["check", "relaese"], 2, "error: relaese: no such file or folder", "hint: "),
        (
            &["check", "pod.yml"],
            2,
            "error: pod.yml: no such file or folder",
            "hint: did you mean `pod.yaml`?",
        ),
        (&["check", "empty"], 2, "error: empty: no text files", "hint: "),
        (
            &["check", "pod.yaml", "--offline", "--published", "list.txt"],
            2,
            "error: list.txt: the list",
            "hint: ",
        ),
        (
            &["check", "pod.yaml", "--mirrors", "rules.yaml"],
            2,
            "error: rules.yaml: Pod holds no mirror rules",
            "hint: ",
        ),
        (&["check", "pod.yaml", "--form", "x"], 2, "error: unexpected argument '--form'", "--from"),
        (&["chekc"], 2, "error: unrecognized subcommand 'chekc'", "check"),
        (&["refs"], 2, "error: the following required arguments", "<PATH>"),
    ];
    for (arguments, code, error, hint) in cases {
        let (out, err, found) = run(scantling().current_dir(folder.path()).args(*arguments));
        assert_eq!(found, *code, "{arguments:?}: {err}");
        assert_eq!(out, "", "{arguments:?}");
        assert!(err.starts_with(error) && err.contains(hint), "{arguments:?}: {err}");
    }
}

#[test]
fn a_broken_release_is_shown_with_the_line_and_the_fix() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("release.yaml"),
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: shop\nversion: 1.0.0\nmanifest: [m]\n",
    )
    .unwrap();
    let (out, err, code) = run(scantling().current_dir(folder.path()).args(["check", "."]));
    assert_eq!((code, err.as_str()), (1, ""));
    let wanted = "\
error[SCN0701]: unknown field `manifest`";
    assert!(out.starts_with(wanted), "{out}");
    for line in
        [" --> release.yaml:5:1", "5 | manifest: [m]", "  | ^^^^^^^^", "fix: did you mean \"manifests\"?"]
    {
        assert!(out.contains(line), "{line}: {out}");
    }
    let (out, err, code) = run(scantling().current_dir(folder.path()).args(["lock", "."]));
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(
        err.starts_with("error: the release cannot be read") && err.contains("release.yaml:5:1"),
        "{err}"
    );
    let (out, _, code) = run(scantling().current_dir(folder.path()).args(["check", ".", "--output", "json"]));
    assert_eq!(code, 1);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["findings"][0]["place"]["file"]["line"], 5);
}
