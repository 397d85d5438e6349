//! Every command that the documentation shows is run as it stands there, and what it shows of the output must come out.
//!
//! A block marked `sh` is a script, run in a copy of the examples. A block marked `text` behind it is output of it, words in
//! their order, `…` for what is left out. In a block marked `console`, commands stand behind `$ ` and output below them. Blocks
//! marked `no-test` are left alone. `scantling audit`, `check` and `rehearse` may find faults (exit code 1), which is what the
//! examples are for; everything else must succeed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tempfile::TempDir;

/// Where a person is when they read the documentation: in the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// What stands for the programs that scripts name. `cargo run --release -- X` is `scantling X`; other uses of cargo (tests,
/// benches) are not for a test to run.
const SCANTLING: &str = r#"#!/bin/sh
case "$1" in audit | check | rehearse) ;; *) exec "$SCANTLING_BINARY" "$@" ;; esac
"$SCANTLING_BINARY" "$@"
code=$?
[ $code = 1 ] || exit $code
"#;
const CARGO: &str = r#"#!/bin/sh
case "$1 $2 $3" in "run --release --") shift 3; exec scantling "$@" ;; esac
"#;

/// A script and what the documentation shows of its output.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    line: usize,
    script: String,
    shown: Option<(usize, String)>,
}

/// The scripts of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = (1..).zip(page.lines());
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```").filter(|kind| !kind.is_empty()) else { continue };
        let inner: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        let text =
            |lines: &[(usize, &str)]| lines.iter().flat_map(|(_, line)| [*line, "\n"]).collect::<String>();
        match kind {
            "sh" => blocks.push(Block { line: number, script: text(&inner), shown: None }),
            "text" => {
                if let Some(block) = blocks.last_mut().filter(|block| block.shown.is_none()) {
                    block.shown = Some((number, text(&inner)));
                }
            }
            "console" => {
                for said in inner.chunk_by(|_, (_, line)| !line.starts_with("$ ")) {
                    let (line, command) = said[0];
                    let script = format!("{}\n", command.strip_prefix("$ ").unwrap());
                    blocks.push(Block { line, script, shown: Some((line, text(&said[1..]))) });
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

/// The first shown part that does not come out, parts in their order. Where lines are broken is up to the terminal.
fn missing(shown: &str, output: &str) -> Option<String> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let output = words(output);
    let mut rest = output.as_str();
    for part in shown.split('…').map(words) {
        match rest.split_once(part.as_str()) {
            Some((_, after)) => rest = after,
            None => return Some(part),
        }
    }
    None
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
    let outputs = Outputs { path, known: Mutex::default() };
    let pages = pages(&root);
    let faults = Mutex::new(Vec::new());
    let skipped = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = page.strip_prefix(&root).unwrap().display().to_string();
            let home = TempDir::new().unwrap();
            copy(&root.join("examples"), &home.path().join("examples"));
            copy(&root.join("releases"), &home.path().join("releases"));
            for block in blocks(&fs::read_to_string(page).unwrap()) {
                if block.script.contains("kubectl") && kubectl.is_none() {
                    skipped.fetch_add(1, Ordering::Relaxed);
                } else {
                    let output = outputs.of(&block.script, home.path());
                    faults.lock().unwrap().extend(fault(&name, &block, &output));
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

/// What scripts print.
struct Outputs {
    path: String,
    /// Of rehearsals, which write nothing and say the same every time.
    known: Mutex<BTreeMap<String, Arc<OnceLock<Output>>>>,
}

impl Outputs {
    fn of(&self, script: &str, home: &Path) -> Output {
        let script = script.replace("cargo run --release -- ", "scantling ");
        let mut lines = script.lines();
        let is_rehearsal = lines.next().is_some_and(|line| line.starts_with("scantling rehearse "))
            && lines.next().is_none()
            && !script.contains(" --trace ");
        if !is_rehearsal {
            return self.run(&script, home);
        }
        let command = script.split('#').next().unwrap_or_default().trim().to_owned();
        let slot = Arc::clone(self.known.lock().unwrap().entry(command).or_default());
        slot.get_or_init(|| self.run(&script, home)).clone()
    }

    fn run(&self, script: &str, home: &Path) -> Output {
        Command::new("/bin/sh")
            .args(["-e", "-c", script])
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", home)
            .env("COLUMNS", "100")
            .env("SCANTLING_BINARY", env!("CARGO_BIN_EXE_scantling"))
            .current_dir(home)
            .output()
            .unwrap()
    }
}

/// What is wrong with a script, or with what is shown of its output.
fn fault(page: &str, block: &Block, output: &Output) -> Option<String> {
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
    let page = "a\n```sh\none\ntwo\n```\n\nb\n\n```text\nout\n```\n```text\nother\n```\n```sh no-test\nthree\n```\n```yaml\na: 1\n```\n\
        ```console\n$ four\nout\n$ five\n```\n";
    let blocks = blocks(page);
    let block = |line, script: &str, shown: Option<(usize, &str)>| Block {
        line,
        script: script.to_owned(),
        shown: shown.map(|(line, text)| (line, text.to_owned())),
    };
    let expected = [
        block(2, "one\ntwo\n", Some((9, "out\n"))),
        block(22, "four\n", Some((22, "out\n"))),
        block(24, "five\n", Some((24, ""))),
    ];
    assert_eq!(blocks, expected);
    assert_eq!(missing("b\n…\nd\n", "a\nb  \nc\nd\n"), None);
    assert_eq!(missing("b\nc d\n", "a b c\n  d\n"), None);
    assert_eq!(missing("b (…)\n", "a\nb (1, 2)\n"), None);
    assert_eq!(missing("d\n…\nb\n", "a\nb\nc\nd\n"), Some("b".to_owned()));
}
