//! Reading the inputs of the tests.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, unreachable_pub, clippy::print_stderr)]

use std::fs;
use std::path::{Path, PathBuf};

use scantling_finding::Finding;
use scantling_release::{Release, Settings, Tree};

/// A folder of `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A folder or file as a tree.
pub fn tree(path: &Path) -> Tree {
    let mut tree = Tree::new();
    if path.is_file() {
        tree.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap());
    } else {
        add(path, "", &mut tree);
    }
    tree
}

fn add(folder: &Path, prefix: &str, tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            add(&entry.path(), &format!("{name}/"), tree);
        } else {
            tree.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// A release of `tests/data`.
pub fn release(name: &str) -> Release {
    Release::read_at(name, &tree(&data(name)), &Settings::default())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A release of one file.
pub fn inline(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// `CODE line:column message` for every finding.
pub fn lines(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| {
            let place = finding.place.file.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
            format!("{} {place} {}", finding.code, finding.message)
        })
        .collect()
}

/// The folder of real inputs, if there is one.
pub fn real_inputs() -> Option<PathBuf> {
    let path = std::env::var_os("SCANTLING_REAL_INPUTS").map(PathBuf::from);
    if path.is_none() {
        eprintln!("skipped: SCANTLING_REAL_INPUTS does not name a folder of published manifests");
    }
    path
}
