//! What the command says when it cannot do what it is told.

use std::fs;

use tempfile::TempDir;

use crate::command::{Ran, STALE, UNPUBLISHED, copy_of, replace, run, scantling};
use crate::golden::{self, Golden};

/// Command lines that cannot be followed.
pub(crate) const GOLDEN: &[Golden] = &[
    mistake("error-no-arguments", &[]),
    mistake("error-missing-example", &["rehearse", "examples/stale-notebook-imge"]),
    mistake("error-not-an-example", &["rehearse", "docs"]),
    mistake("error-missing-sandbox", &["sandbox", "nowhere", "--", "true"]),
    mistake("error-missing-release", &["check", "examples/stale-notebook-image/releases/1.4"]),
    mistake(
        "error-missing-old-release",
        &["check", "examples/stale-notebook-image/releases/1.5", "--from", "1.3"],
    ),
    mistake("error-missing-path", &["refs", "nowhere.yaml"]),
    mistake("error-missing-lock", &["lock", "nowhere"]),
    mistake("error-unknown-flag", &["rehearse", STALE, "--as-shiped"]),
    mistake("error-unknown-command", &["rehears", STALE]),
    mistake("error-unknown-output", &["check", STALE, "--output", "yaml"]),
    mistake("error-no-registry", &["rbac", "releases/2026.1"]),
    mistake(
        "error-unknown-component",
        &["rbac", "releases/2026.1", "--registry", "r.io", "--with", "nosuch"],
    ),
    mistake("error-nothing-shipped", &["rehearse", "examples/platform-upgrade", "--as-shipped"]),
    mistake("error-unknown-variant", &["rehearse", UNPUBLISHED, "--as-shipped", "--variant", "reboot"]),
    mistake("error-variant-alone", &["rehearse", UNPUBLISHED, "--variant", "c-promote-the-image"]),
    mistake(
        "error-variant-fresh",
        &["rehearse", UNPUBLISHED, "--as-shipped", "--fresh", "--variant", "c-promote-the-image"],
    ),
    mistake("error-seed", &["rehearse", STALE, "--seed", "lucky"]),
    mistake("error-platform", &["check", STALE, "--platform", "linux"]),
    mistake("error-no-such-program", &["sandbox", UNPUBLISHED, "--", "no-such-program-here"]),
];

const fn mistake(name: &'static str, arguments: &'static [&'static str]) -> Golden {
    Golden { name, arguments, columns: "100", code: 2 }
}

/// A mistake in a file of an example.
pub(crate) struct Broken {
    pub(crate) name: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
    code: i32,
    /// What must be said, apart from being said as kept; LINE is where `new` begins.
    says: &'static [&'static str],
}

/// Mistakes in the files of an example: each is told with its place and what to do.
pub(crate) const BROKEN: &[Broken] = &[
    Broken {
        name: "error-broken-yaml",
        file: "rehearsal.yaml",
        old: "  flavour: openshift\n",
        new: "  flavour: openshift: yes\n",
        code: 2,
        says: &["rehearsal.yaml:LINE:21: "],
    },
    Broken {
        name: "error-tab-in-yaml",
        file: "rehearsal.yaml",
        old: "  flavour: openshift\n",
        new: "\tflavour: openshift\n",
        code: 2,
        says: &["rehearsal.yaml:LINE:2: tabs", "YAML takes only spaces"],
    },
    Broken {
        name: "error-unknown-field",
        file: "rehearsal.yaml",
        old: "  flavour: openshift\n",
        new: "  flavor: openshift\n",
        code: 2,
        says: &["rehearsal.yaml:LINE:3", "flavor", "flavour"],
    },
    Broken {
        name: "error-unknown-step",
        file: "rehearsal.yaml",
        old: "  - project: {person: ravi, name: fraud}\n",
        new: "  - projekt: {person: ravi, name: fraud}\n",
        code: 2,
        says: &["rehearsal.yaml:LINE:5: ", "did you mean \"project\"?"],
    },
    Broken {
        name: "error-unknown-promise",
        file: "rehearsal.yaml",
        old: "mustHold: [people, converged]",
        new: "mustHold: [people, convergd]",
        code: 2,
        says: &["rehearsal.yaml:LINE:24: ", "convergd", "did you mean \"converged\"?"],
    },
    Broken {
        name: "error-missing-release-folder",
        file: "rehearsal.yaml",
        old: "  new: releases/1.21\n",
        new: "  new: releases/1.22\n",
        code: 2,
        says: &["rehearsal.yaml: releases/1.22/ is not in the example"],
    },
    Broken {
        name: "error-missing-manifest",
        file: "rehearsal.yaml",
        old: "    - apply: manifests/serving-runtimes-crd.yaml\n    - random: {length: 20, as: etcd_password}",
        new: "    - apply: manifests/serving-runtime-crd.yaml\n    - random: {length: 20, as: etcd_password}",
        code: 3,
        says: &["manifests/serving-runtime-crd.yaml"],
    },
    Broken {
        name: "error-broken-images",
        file: "images.yaml",
        old: "images:\n",
        new: "images: {\n",
        code: 2,
        says: &["images.yaml:4:3: "],
    },
    Broken {
        name: "error-broken-release",
        file: "releases/1.21/release.yaml",
        old: "kind: Release\n",
        new: "kind: Relaese\n",
        code: 3,
        says: &["--> ./releases/1.21/release.yaml:2:7", "fix: write `kind: Release`"],
    },
];

#[test]
fn command_lines_that_cannot_be_followed() {
    GOLDEN.iter().for_each(Golden::hold);
}

#[test]
fn mistakes_in_files_are_told_with_their_places() {
    for broken in BROKEN {
        let example = copy_of(UNPUBLISHED);
        let file = example.path().join(broken.file);
        replace(&file, broken.old, broken.new);
        let text = fs::read_to_string(file).unwrap();
        let line = text[..text.find(broken.new).unwrap()].matches('\n').count() + 1;
        let ran = Ran::of(scantling(&["rehearse", "."]).current_dir(example.path()));
        for said in broken.says {
            ran.says(&[&said.replace("LINE", &line.to_string())]);
        }
        golden::compare(broken.name, &ran.complaint(broken.code));
    }
}

#[test]
fn what_cannot_be_written_is_not_the_users_fault() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("missing/trace.txt");
    let complaint =
        run(&["rehearse", UNPUBLISHED, "--as-shipped", "--trace", path.to_str().unwrap()]).complaint(3);
    assert!(complaint.starts_with("error: ") && complaint.contains(path.to_str().unwrap()), "{complaint}");
}

#[test]
fn a_broken_lock_stops_a_check() {
    let example = copy_of(UNPUBLISHED);
    let release = example.path().join("releases/1.21");
    fs::write(release.join("release.lock"), "version: [\n").unwrap();
    let complaint = run(&["check", "--offline", release.to_str().unwrap()]).complaint(3);
    assert!(complaint.contains("release.lock") && complaint.contains("scantling lock"), "{complaint}");
}

#[test]
fn help_and_version_are_no_mistakes() {
    for command in ["rehearse", "refs", "lock", "check", "sandbox"] {
        let help = run(&[command, "--help"]).report(0);
        assert!(help.contains(&format!("Usage: scantling {command}")), "{help}");
    }
    let version = run(&["--version"]).report(0);
    assert_eq!(version, format!("scantling {}\n", env!("CARGO_PKG_VERSION")));
    assert!(run(&["--help"]).report(0).contains("Exit codes: 0"));
}
