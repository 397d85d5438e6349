//! A release: its own file, its manifests, code beside them, its lock, a list of published images.

use std::collections::BTreeMap;

use scantling_finding::Finding;
use scantling_release::{Against, Change, Lock, PublishedList, Release, Settings, check, diff};

use super::{part, parts};

/// Files by the parts of an input, in this order.
const NAMES: [&str; 4] = ["release.yaml", "manifests/a.yaml", "manifests/b.yaml", "code/const.ts"];

/// What must hold of all releases.
pub fn run(data: &[u8]) {
    let parts = parts(data);
    let mut tree: BTreeMap<String, Vec<u8>> =
        NAMES.iter().zip(&parts).map(|(name, part)| ((*name).to_owned(), part.to_vec())).collect();
    let lock = Lock::parse("release.lock", part(&parts, 4)).ok();
    if let Some(lock) = &lock {
        let again = Lock::parse("release.lock", lock.to_text().as_bytes());
        assert_eq!(again.as_ref(), Ok(lock), "a lock is readable as written");
    }
    let (published, findings) = PublishedList::parse("list.txt", &String::from_utf8_lossy(part(&parts, 5)));
    speaks(&findings);
    match Release::read(&tree, &Settings::default()) {
        Ok(release) => {
            let against = Against {
                lock: lock.as_ref(),
                previous: Some((&release, lock.as_ref())),
                published: Some(&published),
                answers: None,
            };
            speaks(&check(&release, against).findings);
            let sides = (&release, lock.as_ref());
            for change in diff(sides, sides) {
                assert!(matches!(change, Change::Kept { .. }), "a release differs from itself: {change:?}");
            }
        }
        Err(unreadable) => {
            assert!(!unreadable.findings.is_empty(), "a refusal has a reason");
            speaks(&unreadable.findings);
        }
    }
    // The same files without the release's own: a plain folder.
    tree.remove(NAMES[0]);
    if let Ok(release) = Release::read(&tree, &Settings::default()) {
        speaks(&release.findings);
    }
}

fn speaks(findings: &[Finding]) {
    for finding in findings {
        assert!(!finding.message.is_empty() && !finding.cause.is_empty() && !finding.remedy.is_empty());
    }
}
