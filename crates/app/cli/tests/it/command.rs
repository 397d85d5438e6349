//! Running the command.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The command under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_scantling");

/// The example in which notebooks stay old.
pub(crate) const STALE: &str = "examples/stale-notebook-image";

/// The example in which a model's image was never published.
pub(crate) const UNPUBLISHED: &str = "examples/unpublished-runtime-image";

/// What decides how the command looks and whom it asks. Tests say it themselves, whatever their own environment says.
const SETTINGS: [&str; 8] = [
    "SCANTLING_MIRRORS",
    "REGISTRY_AUTH_FILE",
    "KUBECONFIG",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "TERM",
    "NO_COLOR",
];

/// Where a reader of the documentation is.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// The command in the repository, 100 columns wide, with colours left to what it finds.
pub(crate) fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    for setting in SETTINGS {
        command.env_remove(setting);
    }
    command.current_dir(repository()).env("COLUMNS", "100").args(arguments);
    command
}

/// The command without colours, whatever else is asked.
pub(crate) fn scantling(arguments: &[&str]) -> Command {
    let mut command = bare(arguments);
    command.env("NO_COLOR", "1");
    command
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl Ran {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("a text");
        Self {
            out: text(output.stdout),
            err: text(output.stderr),
            code: output.status.code().expect("an end"),
        }
    }

    /// Its standard output, if it ended as it should and had nothing to complain about.
    #[track_caller]
    pub(crate) fn report(self, code: i32) -> String {
        assert_eq!((self.code, self.err.as_str()), (code, ""), "{}", self.out);
        self.out
    }

    /// Its standard error, if it ended as it should and reported nothing.
    #[track_caller]
    pub(crate) fn complaint(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        self.err
    }

    /// Both of its outputs hold these.
    #[track_caller]
    pub(crate) fn says(&self, wanted: &[&str]) {
        for text in wanted {
            assert!(
                self.out.contains(text) || self.err.contains(text),
                "{text:?} is not in\n{}{}",
                self.out,
                self.err
            );
        }
    }
}

/// Runs the command without colours.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    Ran::of(&mut scantling(arguments))
}

/// What it reports as data.
#[track_caller]
pub(crate) fn json(arguments: &[&str], code: i32) -> Value {
    let out = Ran::of(scantling(arguments).args(["--output", "json"])).report(code);
    serde_json::from_str(&out).unwrap()
}

/// An example in a folder of the test's own, to be changed.
pub(crate) fn copy_of(example: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    copy(&repository().join(example), folder.path());
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Replaces a text that must be in a file exactly once.
#[track_caller]
pub(crate) fn replace(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{old:?} in {}", file.display());
    fs::write(file, text.replace(old, new)).unwrap();
}
