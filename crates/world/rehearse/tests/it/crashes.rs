//! Scantling's process is killed at every write of an upgrade, and started again.

use scantling_rehearse::{Kill, Options};

use crate::support::{UNPUBLISHED, broken, example, play, scantling};

/// More writes than an upgrade of the example makes.
const WRITES_MAX: u64 = 500;

#[test]
fn killed_at_any_write_it_continues_and_does_nothing_twice() {
    let tree = example(UNPUBLISHED);
    let whole = play(&tree, &scantling());
    let end = whole.attempts.last().unwrap();
    assert!(end.writes > 0 && end.writes < WRITES_MAX);
    for number in 1..=end.writes {
        for kill in [Kill::Before(number), Kill::After(number)] {
            let seen = play(&tree, &Options { kill: Some(kill), ..scantling() });
            let last = seen.attempts.last().unwrap();
            assert_eq!(last.failure, None, "{kill:?}");
            assert_eq!(last.restarts, 1, "{kill:?}");
            assert_eq!(broken(&seen), [], "{kill:?}");
            let state = |rehearsal: &scantling_rehearse::Rehearsal| {
                scantling_rehearse::compare::compare(
                    &whole.objects,
                    &rehearsal.objects,
                    &std::collections::BTreeSet::new(),
                    |_, _| (String::new(), false),
                )
                .differences
            };
            let differences: Vec<_> = state(&seen)
                .into_iter()
                // How often it was begun, and when, is what the journal is for.
                .filter(|it| !it.object.contains("scantling-system/"))
                .collect();
            assert!(differences.is_empty(), "{kill:?}: {differences:#?}");
        }
    }
}
