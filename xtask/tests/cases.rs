//! The table of bug reports, held against the tests that it names.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A row: the report as `owner/repository#number`, and its tests as `file::function`.
type Row = (String, Vec<(String, String)>);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn rows(table: &str) -> Vec<Row> {
    let row = |line: &str| {
        let (report, rest) = line.strip_prefix("| [")?.split_once(']')?;
        let tests = rest.split('`').filter_map(|part| part.split_once(".rs::"));
        Some((report.to_owned(), tests.map(|(file, name)| (format!("{file}.rs"), name.to_owned())).collect()))
    };
    table.lines().filter_map(row).collect()
}

/// Whether the text has a test function of this name.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let function = [format!("fn {name}("), format!("async fn {name}(")];
    lines.iter().enumerate().any(|(number, line)| {
        let before = lines[..number].iter().rev().take_while(|line| line.starts_with("#["));
        function.iter().any(|start| line.starts_with(start))
            && before.into_iter().any(|line| line.contains("test"))
    })
}

/// What a text names as `owner/repository#number`.
fn reports(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '#');
    let is_report = |word: &str| {
        let (repository, number) = word.split_once('#')?;
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        let (owner, name) = repository.split_once('/')?;
        let named = !owner.is_empty() && !name.is_empty() && !name.contains('/');
        (named && !digits.is_empty()).then(|| format!("{repository}#{digits}"))
    };
    text.split(|c| !is_word(c)).filter_map(is_report).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_test_that_the_table_names_exists_and_names_the_report() {
    let root = root();
    let rows = rows(&std::fs::read_to_string(root.join("docs/cases.md")).unwrap());
    assert!(!rows.is_empty());
    let mut faults = Vec::new();
    for (report, tests) in &rows {
        assert!(!tests.is_empty(), "{report} names no test");
        let number = report.split_once('#').unwrap().1;
        for (file, name) in tests {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            if !has_test(&text, name) {
                faults.push(format!("{report}: {file} has no test {name}"));
            }
            if !text.contains(&format!("#{number}")) {
                faults.push(format!("{report}: {file} does not name it"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_report_that_a_test_names_has_a_row() {
    let root = root();
    let rows: BTreeMap<String, _> =
        rows(&std::fs::read_to_string(root.join("docs/cases.md")).unwrap()).into_iter().collect();
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let mut faults = Vec::new();
    for file in files {
        for report in reports(&std::fs::read_to_string(&file).unwrap()) {
            if !rows.contains_key(&report) {
                faults.push(format!("{} names {report}; add a row to docs/cases.md", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn rows_reports_and_tests_are_read() {
    let row = "| [a/b#1](https://x) | s | `c/d.rs::e`<br>`f.rs::g` |";
    let tests =
        [("c/d.rs", "e"), ("f.rs", "g")].map(|(file, name)| (file.to_owned(), name.to_owned())).to_vec();
    assert_eq!(rows(row), [("a/b#1".to_owned(), tests)]);
    assert_eq!(rows("| report | symptom | tests |\n|---|---|---|\ntext"), []);
    assert_eq!(reports("/// a/b#12: see c#3 and d/e#f"), BTreeSet::from(["a/b#12".to_owned()]));
    assert!(has_test("#[test]\nfn a() {", "a"));
    assert!(has_test("    #[tokio::test(start_paused = true)]\n    async fn a() {", "a"));
    assert!(!has_test("fn a() {", "a"));
    assert!(!has_test("#[test]\nfn ab() {", "a"));
}
