//! Scantling's process is killed at every write of an upgrade, and started again.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::ObjectKey;
use scantling_rehearse::compare::{Generated, compare};
use scantling_rehearse::{Kill, Options, Rehearsal};

use crate::support::{UNPUBLISHED, broken, example, play, scantling};

/// More writes than an upgrade of the example makes.
const WRITES_MAX: u64 = 500;

/// Writes that a second process makes over those of one that isn't killed: it takes over the lease and the journal, makes pods
/// that carry images again, and asks again for what the first may not have learned of. That nothing is created twice is
/// looked at by itself.
const EXTRA_WRITES: u64 = 12;

#[test]
fn killed_at_any_write_it_continues_and_does_nothing_twice() {
    let tree = example(UNPUBLISHED);
    for fresh in [false, true] {
        let options = Options { fresh, ..scantling() };
        let whole = play(&tree, &options);
        let end = whole.attempts.last().unwrap();
        assert!(end.writes > 0 && end.writes < WRITES_MAX);
        for number in 1..=end.writes {
            for kill in [Kill::Before(number), Kill::After(number)] {
                let seen = play(&tree, &Options { kill: Some(kill), ..options.clone() });
                same_end(&whole, &seen, &format!("fresh: {fresh}, {kill:?}"));
            }
        }
    }
}

fn same_end(whole: &Rehearsal, seen: &Rehearsal, how: &str) {
    let (end, last) = (whole.attempts.last().unwrap(), seen.attempts.last().unwrap());
    assert_eq!(last.failure, None, "{how}");
    assert_eq!(last.restarts, 1, "{how}");
    assert_eq!(broken(seen), [], "{how}");
    assert!(last.writes <= end.writes + EXTRA_WRITES, "{how}: {} writes, not {}", last.writes, end.writes);
    assert_eq!(made(seen), made(whole), "{how}: objects that were created, and how often");
    // Another process draws other passwords; that the two Secrets agree is part of *nothing lost*.
    let drawn = [("etcd-passwords", "root"), ("model-serving-etcd", "etcd_connection")].map(|(name, key)| {
        Generated {
            key: ObjectKey::namespaced("", "Secret", "redhat-ods-applications", name),
            data_key: key.to_owned(),
        }
    });
    let drawn = if whole.fresh { BTreeSet::from(drawn) } else { BTreeSet::new() };
    let comparison = compare(&whole.objects, &seen.objects, &drawn, |_, _, _| (String::new(), false));
    assert!(comparison.differences.is_empty(), "{how}: {:#?}", comparison.differences);
}

/// How often each object was created, by the sandbox' trace. Pods that carry images to nodes may be made again: what they bring
/// is there once all the same.
fn made(rehearsal: &Rehearsal) -> BTreeMap<String, usize> {
    let mut made = BTreeMap::new();
    for line in &rehearsal.trace {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, "create", kind, name, ..] = words.as_slice()
            && !matches!(*kind, "Pod" | "Event" | "ReplicaSet")
        {
            *made.entry(format!("{kind} {name}")).or_default() += 1;
        }
    }
    assert!(made.len() > 10, "the trace tells what is created");
    made
}
