//! What every report has in common: where it goes, how wide it is, when it has colours, and that a pipe may close.

use std::fs::OpenOptions;
use std::io::{Read as _, pipe};
use std::process::{Command, Stdio};

use crate::command::{BINARY, Ran, STALE, UNPUBLISHED, bare, repository, run, scantling};

/// One of each report, with its exit code. The rehearsals are the short ones.
const REPORTS: &[(&[&str], i32)] = &[
    (&["rehearse", UNPUBLISHED, "--as-shipped"], 1),
    (&["rehearse", UNPUBLISHED, "--fresh"], 0),
    (
        &[
            "check",
            "--offline",
            "examples/stale-notebook-image/releases/1.5",
            "--from",
            "examples/stale-notebook-image/releases/1.3",
        ],
        1,
    ),
    (&["check", "--offline", "examples/unpublished-runtime-image/releases/1.20"], 0),
    (&["refs", "examples/stale-notebook-image/releases"], 0),
];

fn has_colours(text: &str) -> bool {
    text.contains('\u{1b}')
}

/// Takes colours out: `ESC [ … m`.
fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let (sequence, after) = after.split_once('m').expect("an end");
        assert!(sequence.starts_with('['), "only colours are written: {sequence:?}");
        rest = after;
    }
    plain + rest
}

#[test]
fn colours_are_where_they_are_wanted_and_change_nothing_else() {
    for (arguments, code) in REPORTS {
        let plain = run(arguments).report(*code);
        assert!(!has_colours(&plain), "{plain}");
        let piped = Ran::of(&mut bare(arguments)).report(*code);
        assert!(piped == plain, "a pipe gets no colours: {arguments:?}");
        let never =
            Ran::of(bare(arguments).args(["--color", "never"]).env("CLICOLOR_FORCE", "1")).report(*code);
        assert!(never == plain, "--color never: {arguments:?}");
        let always = Ran::of(scantling(arguments).args(["--color", "always"])).report(*code);
        assert!(has_colours(&always), "--color always is stronger than NO_COLOR: {arguments:?}");
        assert!(without_colours(&always) == plain, "colours change nothing else: {arguments:?}");
    }
    let complaint = Ran::of(&mut bare(&["check", "nowhere", "--color", "always"])).complaint(2);
    assert!(has_colours(&complaint), "{complaint}");
    assert!(!has_colours(&Ran::of(&mut bare(&["check", "nowhere"])).complaint(2)));
}

#[test]
fn data_has_no_colours_and_is_the_same_bytes_twice() {
    for (arguments, code) in REPORTS {
        let data =
            || Ran::of(scantling(arguments).args(["--output", "json", "--color", "always"])).report(*code);
        let (first, second) = (data(), data());
        assert!(first == second, "{arguments:?}");
        assert!(!has_colours(&first) && first.ends_with("}\n"), "{arguments:?}");
        let value: serde_json::Value = serde_json::from_str(&first).unwrap();
        assert!(value.as_object().is_some_and(|object| object.len() > 2), "{arguments:?}: {value}");
    }
}

/// Whether a line quotes a file, or marks what is quoted: `23 | image: …`.
fn is_quoted(line: &str) -> bool {
    line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with('|')
}

/// Where the last word of a line begins, in columns from 0.
fn last_word(line: &str) -> usize {
    line.rfind(' ').map_or(0, |at| line[..=at].chars().count())
}

#[test]
fn lines_end_before_the_screen_does() {
    // What stands before a word that is too long: an indent, a mark, a label, the number of a line.
    const LEAD: usize = 34;
    for (arguments, code) in REPORTS {
        let mut narrower = String::new();
        for columns in [60, 80, 100, 130] {
            let report = Ran::of(scantling(arguments).env("COLUMNS", columns.to_string())).report(*code);
            assert!(report != narrower, "{arguments:?}: {columns} columns look like fewer");
            for line in report.lines() {
                let fits = line.chars().count() <= columns;
                assert!(
                    fits || is_quoted(line) || last_word(line) <= LEAD,
                    "{arguments:?}, {columns} columns: {line}"
                );
                assert_eq!(line, line.trim_end(), "{arguments:?}: no blanks at the end");
            }
            narrower = report;
        }
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    for (arguments, code) in REPORTS {
        let (reader, writer) = pipe().unwrap();
        let mut child = Command::new(BINARY)
            .args(*arguments)
            .current_dir(repository())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Closed before anything is written, which is the hardest case.
        drop(reader);
        let status = child.wait().unwrap();
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!((status.code(), complaint.as_str()), (Some(*code), ""), "{arguments:?}");
    }
    let script = format!("set -o pipefail; '{BINARY}' refs {STALE}/releases | head -1");
    let output = Command::new("bash").args(["-c", &script]).current_dir(repository()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_report_that_cannot_be_written_is_told() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(BINARY)
        .args(["refs", STALE])
        .current_dir(repository())
        .env("NO_COLOR", "1")
        .stdout(full)
        .output()
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{complaint}");
    assert!(complaint.starts_with("error: ") && complaint.contains("No space left"), "{complaint}");
}
