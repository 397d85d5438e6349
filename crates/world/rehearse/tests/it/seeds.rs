//! The same seed gives the same rehearsal, byte for byte.

use scantling_rehearse::Options;

use crate::support::{STALE, UNPUBLISHED, example, play, scantling, shipped};

#[test]
fn same_seed_same_trace() {
    for name in [STALE, UNPUBLISHED] {
        let tree = example(name);
        for options in [shipped(), scantling()] {
            let (one, two) = (play(&tree, &options), play(&tree, &options));
            assert_eq!(one.trace, two.trace, "{name}");
            assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&two).unwrap(), "{name}");
            let other = play(&tree, &Options { seed: 2, ..options });
            assert_ne!(one.trace, other.trace, "{name}: the seed decides something");
        }
    }
}

#[test]
fn promises_hold_whatever_the_seed() {
    for name in [STALE, UNPUBLISHED] {
        let tree = example(name);
        for seed in 2..8 {
            let seen = play(&tree, &Options { seed, ..scantling() });
            assert!(seen.ended_well(), "{name}: scantling rehearse examples/{name} --seed {seed}");
        }
    }
}
