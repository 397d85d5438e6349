//! `scantling check`.

use crate::command::{STALE, UNPUBLISHED, json, run};
use crate::golden::Golden;

/// The examples' releases, asking nobody.
pub(crate) const GOLDEN: &[Golden] = &[
    check("check-stale-1.3", &["check", "--offline", "examples/stale-notebook-image/releases/1.3"], 0),
    check(
        "check-stale-1.5-from-1.3",
        &[
            "check",
            "--offline",
            "examples/stale-notebook-image/releases/1.5",
            "--from",
            "examples/stale-notebook-image/releases/1.3",
        ],
        1,
    ),
    check(
        "check-unpublished-1.21",
        &["check", "--offline", "examples/unpublished-runtime-image/releases/1.21"],
        0,
    ),
    check(
        "check-unpublished-1.21-from-1.20",
        &[
            "check",
            "--offline",
            "examples/unpublished-runtime-image/releases/1.21",
            "--from",
            "examples/unpublished-runtime-image/releases/1.20",
        ],
        0,
    ),
    check(
        "check-unpublished-1.21.1-from-1.20",
        &[
            "check",
            "--offline",
            "examples/unpublished-runtime-image/releases/1.21.1",
            "--from",
            "examples/unpublished-runtime-image/releases/1.20",
        ],
        0,
    ),
];

const fn check(name: &'static str, arguments: &'static [&'static str], code: i32) -> Golden {
    Golden { name, arguments, columns: "100", code }
}

#[test]
fn reports_of_the_examples() {
    GOLDEN.iter().for_each(Golden::hold);
}

#[test]
fn data_agrees_with_the_exit_code() {
    for (release, from, code) in [
        (format!("{STALE}/releases/1.5"), format!("{STALE}/releases/1.3"), 1),
        (format!("{UNPUBLISHED}/releases/1.21.1"), format!("{UNPUBLISHED}/releases/1.20"), 0),
    ] {
        let arguments = ["check", "--offline", &release, "--from", &from];
        let data = json(&arguments, code);
        assert_eq!(data, json(&arguments, code), "twice the same");
        let errors = data["summary"]["errors"].as_u64().unwrap();
        assert_eq!(errors > 0, code == 1, "{data}");
        let listed =
            data["findings"].as_array().unwrap().iter().filter(|it| it["severity"] == "error").count();
        assert_eq!(u64::try_from(listed).unwrap(), errors);
    }
}

#[test]
fn a_release_file_is_its_release() {
    let folder = run(&["check", "--offline", &format!("{UNPUBLISHED}/releases/1.21")]);
    let file = run(&["check", "--offline", &format!("{UNPUBLISHED}/releases/1.21/release.yaml")]);
    assert_eq!(file.code, folder.code);
    assert_eq!(file.out.replace("/release.yaml:", ":"), folder.out.replace("/release.yaml:", ":"));
}
