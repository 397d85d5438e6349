//! Examples, read and changed.

use std::sync::Arc;

use camino::Utf8Path;
use scantling_files::{Limits, read_tree};
use scantling_rehearse::people::{ModelSeen, NotebookSeen};
use scantling_rehearse::promises::{Checked, Promise, Verdict};
use scantling_rehearse::scenario::{Scenario, Tree};
use scantling_rehearse::{Options, Rehearsal, Way, rehearse};

pub(crate) const STALE: &str = "stale-notebook-image";
pub(crate) const UNPUBLISHED: &str = "unpublished-runtime-image";

/// The files of an example.
pub(crate) fn example(name: &str) -> Tree {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
    let mut tree = read_tree(&folder, &Limits::default()).unwrap().tree;
    for outside in Scenario::outside(&tree).unwrap() {
        let files = read_tree(&folder.join(&outside), &Limits::default()).unwrap().tree;
        tree.extend(files.into_iter().map(|(file, bytes)| (format!("{outside}/{file}"), bytes)));
    }
    tree
}

/// Replaces a text in one file; it has to be there.
pub(crate) fn change(tree: &mut Tree, file: &str, from: &str, to: &str) {
    let bytes = tree.get_mut(file).unwrap_or_else(|| panic!("{file} is not in the example"));
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains(from), "{file} has no {from:?}");
    *bytes = text.replace(from, to).into_bytes();
}

pub(crate) fn shipped() -> Options {
    Options { way: Way::AsShipped, fresh: false, variant: None, seed: 1, kill: None }
}

pub(crate) fn scantling() -> Options {
    Options { way: Way::Scantling, ..shipped() }
}

pub(crate) fn play(tree: &Tree, options: &Options) -> Rehearsal {
    let scenario = Scenario::read(tree).unwrap();
    rehearse(&scenario, options, Arc::new(|_| ())).unwrap()
}

pub(crate) fn notebook<'r>(rehearsal: &'r Rehearsal, person: &str) -> &'r NotebookSeen {
    rehearsal.notebooks.iter().find(|it| it.person == person).unwrap()
}

pub(crate) fn model(rehearsal: &Rehearsal) -> &ModelSeen {
    rehearsal.models.first().unwrap()
}

pub(crate) fn promise(rehearsal: &Rehearsal, promise: Promise) -> &Checked {
    rehearsal.promises.iter().find(|it| it.promise == promise).unwrap()
}

/// The promises that were broken.
pub(crate) fn broken(rehearsal: &Rehearsal) -> Vec<Promise> {
    let broken = rehearsal.promises.iter().filter(|it| it.verdict == Verdict::Broken);
    broken.map(|it| it.promise).collect()
}

/// What the running image of a notebook holds for a name on the screen.
pub(crate) fn runs<'r>(notebook: &'r NotebookSeen, name: &str) -> &'r str {
    let claim = notebook.claims.iter().find(|claim| claim.name.eq_ignore_ascii_case(name));
    claim.and_then(|claim| claim.runs.as_deref()).unwrap_or("absent")
}

/// What the screen says for a name.
pub(crate) fn screen<'r>(notebook: &'r NotebookSeen, name: &str) -> &'r str {
    let claim = notebook.claims.iter().find(|claim| claim.name.eq_ignore_ascii_case(name));
    claim.map_or("nothing", |claim| claim.screen.as_str())
}
