//! Releases come from anywhere: whatever is in the files, reading and checking end, and end the same way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{data, lines, tree};
use proptest::prelude::*;
use scantling_release::{Against, PublishedList, Release, Settings, Tree, check};

fn outcome(tree: &Tree) -> Vec<String> {
    match Release::read(tree, &Settings::default()) {
        Ok(release) => {
            let (list, _) = PublishedList::parse("list", "# complete: a, b\nr.example/x:1\n");
            let against =
                Against { previous: Some((&release, None)), published: Some(&list), ..Against::default() };
            lines(&check(&release, against).findings)
        }
        Err(unreadable) => {
            assert!(!unreadable.findings.is_empty());
            lines(&unreadable.findings)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes of a real release changed, removed or doubled at random.
    #[test]
    fn damaged_releases_are_read_or_refused(
        name in prop::sample::select(vec!["platform", "gpu-1.5", "serving"]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
    ) {
        let mut files = tree(&data(name));
        for (file, at, byte, how) in damage {
            let path = file.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
            let bytes = files.get_mut(&path).unwrap();
            if bytes.is_empty() {
                continue;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                _ => bytes.insert(at, byte),
            }
        }
        prop_assert_eq!(outcome(&files), outcome(&files));
    }

    #[test]
    fn any_text_is_read_or_refused(release in "[ -~\n]{0,200}", manifest in "[ -~\n]{0,200}") {
        let files: Tree = [("release.yaml", &release), ("m/a.yaml", &manifest)]
            .map(|(path, text)| (path.to_owned(), text.clone().into_bytes()))
            .into();
        outcome(&files);
    }

    #[test]
    fn any_list_is_read(text in "\\PC{0,200}") {
        let (list, findings) = PublishedList::parse("list", &text);
        prop_assert!(list.len() + findings.len() <= text.lines().count() + 1);
    }
}
