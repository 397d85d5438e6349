//! Every command that the documentation shows is run as it stands there, and what it shows of the output must come out.
//!
//! A block marked `sh` is a script, run in a copy of the examples. A block marked `text` behind it is output of it: lines in
//! their order, `…` for what is left out. Blocks marked `no-test` are left alone. `scantling check` and `scantling rehearse`
//! may find faults (exit code 1), which is what the examples are for; everything else must succeed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

/// Where a person is when they read the documentation: in the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// What stands for the programs that scripts name. `cargo run --release -- X` is `scantling X`; other uses of cargo (tests,
/// benches) are not for a test to run.
const SCANTLING: &str = r#"#!/bin/sh
"$SCANTLING_BINARY" "$@"
code=$?
case "$1:$code" in check:1 | rehearse:1) exit 0 ;; esac
exit $code
"#;
const CARGO: &str = r#"#!/bin/sh
case "$1 $2 $3" in "run --release --") shift 3; exec scantling "$@" ;; esac
"#;

/// A script and what the documentation shows of its output.
struct Block {
    line: usize,
    script: String,
    shown: Option<(usize, String)>,
}

/// The scripts of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```").filter(|kind| !kind.is_empty()) else { continue };
        let mut text = String::new();
        for (_, line) in lines.by_ref().take_while(|(_, line)| *line != "```") {
            text.push_str(line);
            text.push('\n');
        }
        match kind {
            "sh" => blocks.push(Block { line: number + 1, script: text, shown: None }),
            "text" => {
                if let Some(block) = blocks.last_mut().filter(|block| block.shown.is_none()) {
                    block.shown = Some((number + 1, text));
                }
            }
            _ => {}
        }
    }
    blocks
}

/// The pages that show commands.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let markdown = |folder: &Path, pages: &mut Vec<PathBuf>| {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    };
    markdown(root, &mut pages);
    markdown(&root.join("docs"), &mut pages);
    markdown(&root.join("docs/how-to"), &mut pages);
    for example in fs::read_dir(root.join("examples")).unwrap() {
        markdown(&example.unwrap().path(), &mut pages);
    }
    pages.sort();
    pages
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

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The first shown line that does not come out, lines in their order.
fn missing<'s>(shown: &'s str, output: &str) -> Option<&'s str> {
    let mut rest = output.lines().map(str::trim_end);
    shown
        .lines()
        .filter(|line| line.trim() != "…")
        .find(|line| !rest.by_ref().any(|found| found == line.trim_end()))
}

#[test]
fn what_the_documentation_shows_is_what_happens() {
    let root = root();
    let programs = TempDir::new().unwrap();
    program(&programs.path().join("scantling"), SCANTLING);
    program(&programs.path().join("cargo"), CARGO);
    let kubectl = std::env::var_os("SCANTLING_TEST_KUBECTL");
    if let Some(kubectl) = &kubectl {
        symlink(kubectl, programs.path().join("kubectl")).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let pages = pages(&root);
    let faults = Mutex::new(Vec::new());
    let skipped = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = page.strip_prefix(&root).unwrap().display().to_string();
            let home = TempDir::new().unwrap();
            copy(&root.join("examples"), &home.path().join("examples"));
            for block in blocks(&fs::read_to_string(page).unwrap()) {
                if block.script.contains("kubectl") && kubectl.is_none() {
                    skipped.fetch_add(1, Ordering::Relaxed);
                } else {
                    faults.lock().unwrap().extend(fault(&name, &block, home.path(), &path));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let skipped = skipped.into_inner();
    if skipped > 0 {
        println!("skipped: {skipped} scripts of the documentation: kubectl is not installed");
    }
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Runs a script; what is wrong with it or with what is shown of its output.
fn fault(page: &str, block: &Block, home: &Path, path: &str) -> Option<String> {
    let output = Command::new("/bin/sh")
        .args(["-e", "-c", &block.script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("COLUMNS", "100")
        .env("SCANTLING_BINARY", env!("CARGO_BIN_EXE_scantling"))
        .current_dir(home)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Some(format!(
            "{page}:{}: the script fails ({}):\n{}\n{out}\n{err}",
            block.line, output.status, block.script
        ));
    }
    let (line, shown) = block.shown.as_ref()?;
    let lost = missing(shown, &out)?;
    Some(format!("{page}:{line}: this is not, or not there, in the output: {lost:?}\n{out}"))
}

#[test]
fn scripts_and_their_output_are_read_from_pages() {
    let page = "a\n```sh\none\ntwo\n```\n\nb\n\n```text\nout\n```\n```text\nother\n```\n```sh no-test\nthree\n```\n```yaml\na: 1\n```\n";
    let blocks = blocks(page);
    assert_eq!(blocks.len(), 1);
    assert_eq!((blocks[0].line, blocks[0].script.as_str()), (2, "one\ntwo\n"));
    assert_eq!(blocks[0].shown, Some((9, "out\n".to_owned())));
    assert_eq!(missing("b\n…\nd\n", "a\nb  \nc\nd\n"), None);
    assert_eq!(missing("d\nb\n", "a\nb\nc\nd\n"), Some("b"));
}
