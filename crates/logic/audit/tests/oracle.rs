//! A model of nodes as oracle: it knows what really happened, the audit sees only what the API would show of it.
//!
//! The model shares no code with the audit or with the sandbox. It lets tags move (to and fro, and to other manifests of the same content),
//! nodes pull, containers start, restart and go; then it writes objects as kubelets do: image IDs in several dialects, lists that lag and
//! are cut, events. What the audit says is held against what the model knows:
//!
//! - *different*, *stale* and *restart changes* are so;
//! - where it is so, the audit says that, or that it does not know;
//! - it never says that it does not know where everything is shown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;
mod model;

use std::collections::BTreeSet;

use model::{Outcome, World};
use scantling_audit::{Audit, Section, Verdict};

/// What must hold of one world; says how many (node, workload) pairs were compared and how many were not decided.
fn compare(seed: u64, world: &World, audit: &Audit) -> (usize, usize) {
    let rows = |section: Section, verdict: Verdict| {
        // That a name has moved says nothing of the bytes.
        let has = move |found: Verdict| {
            found == verdict || (found == Verdict::Moved && verdict == Verdict::Unknown)
        };
        audit.rows.iter().filter(move |row| row.section == section && has(row.verdict))
    };
    let named = |section: Section, verdict: Verdict| -> BTreeSet<(String, String)> {
        rows(section, verdict)
            .flat_map(|row| {
                row.subjects.iter().map(|subject| {
                    let name = subject.pod.clone().unwrap_or_else(|| subject.object.clone());
                    (name.rsplit('/').next().unwrap().to_owned(), subject.node.clone().unwrap_or_default())
                })
            })
            .collect()
    };
    let fail = |what: &str, pair: &(String, String)| -> ! {
        panic!("seed {seed}: {what} {pair:?}\n{}\n{:#?}", world.story(), audit.rows)
    };
    let (stale, unknown) =
        (named(Section::NextStart, Verdict::Stale), named(Section::NextStart, Verdict::Unknown));
    let cannot = named(Section::NextStart, Verdict::CannotPull);
    let mut pairs = 0;
    let mut open = 0;
    // Next start: every workload on every node that it may land on.
    for (name, node, outcome) in world.next_starts() {
        pairs += 1;
        let pair = (name.clone(), node);
        // One row speaks of all nodes that show nothing, and lists them beside the workloads.
        let is_open = unknown.contains(&pair)
            || rows(Section::NextStart, Verdict::Unknown).any(|row| {
                let has = |object: &str, node: Option<&str>| {
                    row.subjects.iter().any(|it| it.object == object && it.node.as_deref() == node)
                };
                has(&format!("Deployment d/{name}"), None) && has(&format!("Node {}", pair.1), Some(&pair.1))
            });
        open += usize::from(is_open);
        match outcome {
            Outcome::Wanted if stale.contains(&pair) => fail("false stale", &pair),
            Outcome::Wanted if cannot.contains(&pair) => fail("false cannot pull", &pair),
            Outcome::Other if !stale.contains(&pair) && !is_open => fail("missed stale", &pair),
            Outcome::Nothing if stale.contains(&pair) => fail("false stale, it cannot be pulled", &pair),
            _ => {}
        }
    }
    // Running.
    let (different, undecided) =
        (named(Section::Running, Verdict::Different), named(Section::Running, Verdict::Unknown));
    let mentioned = |set: &BTreeSet<(String, String)>, name: &str| set.iter().any(|(other, _)| other == name);
    for (name, node, is_wanted) in world.running() {
        pairs += 1;
        let pair = (name, node);
        match is_wanted {
            Some(true) if mentioned(&different, &pair.0) => fail("false different", &pair),
            Some(false) if !mentioned(&different, &pair.0) && !mentioned(&undecided, &pair.0) => {
                fail("missed different", &pair);
            }
            None if mentioned(&different, &pair.0) => fail("different from nothing", &pair),
            _ => {}
        }
    }
    // Restarts.
    for pair in named(Section::NextStart, Verdict::Changes) {
        if !world.restart_changes(&pair.0) {
            fail("a restart would change nothing", &pair);
        }
    }
    // One name, two images.
    let apart: BTreeSet<&str> =
        rows(Section::Replicas, Verdict::Different).filter_map(|row| row.reference.as_deref()).collect();
    let doubted: BTreeSet<&str> =
        rows(Section::Replicas, Verdict::Unknown).filter_map(|row| row.reference.as_deref()).collect();
    for (reference, is_apart) in world.names() {
        if !is_apart && apart.contains(reference.as_str()) {
            fail("one name, one image after all", &(reference, String::new()));
        }
    }
    for (reference, is_apart) in world.running_names() {
        if is_apart && !apart.contains(reference.as_str()) && !doubted.contains(reference.as_str()) {
            fail("two images under one name are not seen", &(reference, String::new()));
        }
    }
    (pairs, open)
}

#[test]
fn never_a_false_same_never_a_false_alarm() {
    let (mut pairs, mut open, mut said) = (0, 0, 0);
    let mut seed = 0;
    while pairs < 100_000 {
        seed += 1;
        let world = World::play(seed);
        let audit = world.audit();
        let (compared, undecided) = compare(seed, &world, &audit);
        pairs += compared;
        open += undecided;
        said += audit.rows.len();
        if world.shows_everything() {
            let unknown: Vec<_> = audit
                .rows
                .iter()
                .filter(|row| matches!(row.verdict, Verdict::Unknown | Verdict::Moved))
                .collect();
            assert!(unknown.is_empty(), "seed {seed}: everything is shown\n{}\n{unknown:#?}", world.story());
        }
    }
    println!("{seed} worlds, {pairs} pairs, {open} not decided, {said} rows");
    assert!(said > 1000, "the worlds hold no faults");
    assert!(open * 2 < pairs, "half of all is not decided: {open} of {pairs}");
}
