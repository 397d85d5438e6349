//! Findings in a terminal: snippets, long lines, narrow screens, hostile text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use scantling_finding::{FilePlace, Finding, Place, codes};
use scantling_report::findings::{Texts, findings, lines, summary};
use scantling_report::style::Screen;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn place(path: &str, text: &str, what: &str) -> Place {
    let start = text.find(what).unwrap();
    let before = &text[..start];
    let line = u32::try_from(before.matches('\n').count() + 1).unwrap();
    let column = u32::try_from(before.rsplit('\n').next().unwrap().chars().count() + 1).unwrap();
    let file = FilePlace { path: path.to_owned(), line, column, span: Some((start, start + what.len())) };
    Place { file: Some(file), ..Place::default() }
}

fn show(finding: &[Finding], texts: &[(&str, &str)], width: usize) -> String {
    let texts: Texts<'_> = texts.iter().map(|(path, text)| ((*path).to_owned(), *text)).collect();
    plain(&findings(finding, &texts, Screen::new(width)))
}

const MANIFEST: &str = "items:\n- metadata:\n    name: tensorflow\n  spec:\n    claims: '[{\"name\":\"Python\",\"version\":\"v3.8\"},{\"name\":\"TensorFlow\",\"version\":\"2.7\"},{\"name\":\"Tensorboard\",\"version\":\"2.6\"}]'\n    tag: \"py3.8\"\n    a: 1\n    b: 2\n    c: 3\n    d: 4\n    ref: nb-5\n";

fn stale() -> Finding {
    Finding::new(
        codes::identity::SAME_NAME_NEW_CONTENT,
        "tensorflow:py3.8 keeps its name and gets new content",
        place("m.yaml", MANIFEST, "py3.8"),
    )
    .with_related(place("m.yaml", MANIFEST, "2.7"), "TensorFlow 2.4.1 → 2.7")
    .with_related(place("m.yaml", MANIFEST, "nb-5"), "git ref nb-4 → nb-5")
    .with_cause("nodes keep what they have")
    .with_remedy("give the new content a new tag")
}

#[test]
fn every_line_is_cut_by_itself_so_that_marks_and_labels_are_seen() {
    insta::assert_snapshot!(show(&[stale()], &[("m.yaml", MANIFEST)], 80));
}

#[test]
fn a_wide_screen_shows_whole_lines() {
    let shown = show(&[stale()], &[("m.yaml", MANIFEST)], 200);
    assert!(shown.contains("    claims: '[{\"name\":\"Python\"") && shown.contains("\"2.6\"}]'"), "{shown}");
}

#[test]
fn a_second_file_follows_the_first() {
    let other = "tag: old\n";
    let finding = stale().with_related(place("before/m.yaml", other, "old"), "the old tag");
    let shown = show(&[finding], &[("m.yaml", MANIFEST), ("before/m.yaml", other)], 100);
    assert!(shown.contains("::: before/m.yaml:1:6"), "{shown}");
    assert!(shown.contains("--- the old tag"), "{shown}");
}

#[test]
fn what_a_code_means_is_said_once() {
    let finding = || Finding::new(codes::references::EMPTY_REFERENCE, "empty", Place::file("x", 1, 1));
    let shown = show(&[finding(), finding(), finding().with_cause("another cause")], &[], 100);
    assert_eq!(shown.matches("why: ").count(), 2, "{shown}");
    assert_eq!(shown.matches("fix: ").count(), 1, "{shown}");
}

#[test]
fn places_without_a_text_and_objects_are_named() {
    let finding = Finding::new(codes::references::EMPTY_REFERENCE, "empty", Place::file("gone.yaml", 7, 3))
        .with_related(Place::object("Pod a/b").with_field(".spec"), "runs it");
    let shown = show(&[finding], &[], 100);
    assert!(
        shown.contains("--> gone.yaml:7:3") && shown.contains("= also: Pod a/b .spec: runs it"),
        "{shown}"
    );
}

#[test]
fn numbers_of_findings_are_summed_up() {
    let error = Finding::new(codes::references::EMPTY_REFERENCE, "e", Place::file("x", 1, 1));
    let note = Finding::new(codes::identity::RENAMED, "n", Place::default());
    assert_eq!(plain(&summary(&[error.clone(), error.clone(), note])), "2 errors, 1 note");
    assert_eq!(plain(&summary(&[])), "nothing found");
    assert_eq!(plain(&lines(&[error])), "error[SCN0103]: x:1:1: e\n");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let text = "image: \u{1b}]0;owned\u{7}\n";
    let finding =
        Finding::new(codes::references::MALFORMED_REFERENCE, "\u{1b}[2Jbad", place("x", text, "owned"))
            .with_cause("\u{1b}[31mred")
            .with_related(Place::object("\u{1b}[5m"), "\u{9b}31m");
    let texts: Texts<'_> = [("x".to_owned(), text)].into();
    let styled = findings(&[finding], &texts, Screen::default());
    let rest = plain(&styled);
    assert!(!rest.chars().any(|c| c.is_control() && c != '\n'), "{rest:?}");
    assert!(
        !styled.contains("\u{1b}]0;") && !styled.contains("\u{1b}[2J") && !styled.contains("\u{1b}[5m"),
        "{styled:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Places may be of another version of the file, or made up.
    #[test]
    fn any_place_in_any_text_is_shown(
        text in "([a-zé→\t\r]{0,30}\n?){0,6}",
        start in 0usize..200,
        length in 0usize..80,
        line in 0u32..9,
        column in 0u32..40,
        spanned: bool,
        width in 0usize..200,
        label in ".{0,60}",
    ) {
        let span = spanned.then_some((start, start + length));
        let place = |path: &str| Place {
            file: Some(FilePlace { path: path.to_owned(), line, column, span }),
            ..Place::default()
        };
        let finding = Finding::new(codes::references::MALFORMED_REFERENCE, "bad", place("x"))
            .with_related(place("x"), label.clone())
            .with_related(place("y"), label);
        let shown = show(&[finding], &[("x", &text), ("y", "short\n")], width);
        let origin = format!("x:{line}:{column}");
        prop_assert!(shown.contains(&origin), "{}", shown);
    }
}
