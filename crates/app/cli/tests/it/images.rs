//! `scantling sandbox --images`.

use std::collections::BTreeSet;

use crate::command::{STALE, UNPUBLISHED, copy_of, replace, run};
use crate::golden;

#[test]
fn every_image_is_listed_with_its_digest() {
    for (name, example) in [("images-stale", STALE), ("images-unpublished", UNPUBLISHED)] {
        let list = run(&["sandbox", example, "--images"]).report(0);
        golden::compare(name, &list);
        let mut digests = BTreeSet::new();
        for line in list.lines() {
            let (digest, reference) = line.split_once("  ").expect("two columns");
            assert_eq!(digest.len(), "sha256:".len() + 64, "{line}");
            assert!(reference.contains('/'), "{line}");
            digests.insert(digest.to_owned());
        }
        assert!(digests.len() >= 5, "{list}");
    }
}

#[test]
fn a_digest_follows_from_what_is_in_the_layers() {
    let before = run(&["sandbox", UNPUBLISHED, "--images"]).report(0);
    let example = copy_of(UNPUBLISHED);
    let path = example.path().to_str().unwrap();
    assert_eq!(run(&["sandbox", path, "--images"]).report(0), before);
    replace(&example.path().join("images.yaml"), CHANGED.0, CHANGED.1);
    let after = run(&["sandbox", path, "--images"]).report(0);
    let changed: Vec<(&str, &str)> =
        before.lines().zip(after.lines()).filter(|(before, after)| before != after).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    let name = |line: &str| line.split_once("  ").unwrap().1.to_owned();
    assert_eq!(name(changed[0].0), name(changed[0].1));
}

/// One version in one image.
const CHANGED: (&str, &str) = ("{etcd: \"3.5.4\"}", "{etcd: \"3.5.5\"}");
