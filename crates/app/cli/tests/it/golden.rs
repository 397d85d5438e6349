//! Outputs that are kept as files and compared byte for byte. `UPDATE_GOLDEN=1` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::command::Ran;

/// One kept output: the name of its file, and the arguments that make it.
pub(crate) struct Golden {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) columns: &'static str,
    pub(crate) code: i32,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden")
}

/// Compares an output with what is kept of it; with `UPDATE_GOLDEN` keeps it.
#[track_caller]
pub(crate) fn compare(name: &str, output: &str) {
    let path = folder().join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::create_dir_all(folder()).unwrap();
        fs::write(path, output).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE_GOLDEN=1 writes it", path.display()));
    assert!(
        kept == output,
        "{}: {}\nUPDATE_GOLDEN=1 keeps what came out:\n{output}",
        path.display(),
        difference(&kept, output)
    );
}

/// Where two texts part.
fn difference(kept: &str, found: &str) -> String {
    let mut lines = kept.lines().zip(found.lines()).enumerate();
    match lines.find(|(_, (kept, found))| kept != found) {
        Some((index, (kept, found))) => format!("line {}: kept {kept:?}, found {found:?}", index + 1),
        None => format!("{} lines kept, {} found", kept.lines().count(), found.lines().count()),
    }
}

impl Golden {
    /// Runs and compares.
    #[track_caller]
    pub(crate) fn hold(&self) {
        let mut command = crate::command::scantling(self.arguments);
        let ran = Ran::of(command.env("COLUMNS", self.columns));
        // Mistakes are told on standard error, everything else on standard output; nothing is told on both.
        let output = if self.code < 2 { ran.report(self.code) } else { ran.complaint(self.code) };
        compare(self.name, &output);
    }
}

/// Every file belongs to a test: one that was renamed leaves nothing behind.
#[test]
fn nothing_is_kept_that_no_test_makes() {
    let wanted: BTreeSet<String> =
        [crate::rehearse::GOLDEN, crate::check::GOLDEN, crate::refs::GOLDEN, crate::mistakes::GOLDEN]
            .into_iter()
            .flatten()
            .map(|golden| golden.name.to_owned())
            .chain(crate::mistakes::BROKEN.iter().map(|broken| broken.name.to_owned()))
            .chain(crate::cluster::KEPT.iter().copied().map(str::to_owned))
            .chain(
                ["images-stale", "images-unpublished", "lock-unpublished", "lock-unpublished-file"]
                    .map(str::to_owned),
            )
            .map(|name| format!("{name}.txt"))
            .collect();
    let found: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn the_line_where_texts_part_is_named() {
    assert_eq!(difference("a\nb\nc\n", "a\nx\nc\n"), "line 2: kept \"b\", found \"x\"");
    assert_eq!(difference("a\n", "a\nb\n"), "1 lines kept, 2 found");
}
