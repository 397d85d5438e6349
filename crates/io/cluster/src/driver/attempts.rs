//! How often a write has been tried, and when it may be tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_api::ObjectKey;
use scantling_reconcile::Action;
use tokio::time::Instant;

use super::AttemptKey;
use crate::stack::Jitter;

/// The pause after a first failure, doubled each time.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause: an object that cannot be written is looked at every few minutes.
const LONGEST: Duration = Duration::from_mins(5);
/// How often the very same write may succeed without a pause while [`LONGEST`] does not pass in between. Twice can
/// happen (the change has not been seen yet); more means that somebody undoes it.
const SAME_IN_A_ROW: u32 = 3;

#[derive(Debug, Default)]
struct Record {
    failures: u32,
    due: Option<Instant>,
    last: Option<(Action, Instant)>,
    same: u32,
}

/// The attempts of one driver.
#[derive(Debug)]
pub(crate) struct Attempts {
    records: BTreeMap<AttemptKey, Record>,
    jitter: Jitter,
    woken: bool,
}

impl Attempts {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self { records: BTreeMap::new(), jitter, woken: false }
    }

    /// When the next waiting object may be tried.
    pub(crate) fn next_due(&mut self) -> Option<Instant> {
        if std::mem::take(&mut self.woken) {
            return Some(Instant::now());
        }
        let now = Instant::now();
        self.records.values().filter_map(|r| r.due).filter(|due| *due > now).min()
    }

    /// Makes something due at once.
    pub(crate) fn wake(&mut self) {
        self.woken = true;
    }

    pub(crate) fn may_try(&self, reconciler: &'static str, key: &ObjectKey) -> bool {
        let record = self.records.get(&(reconciler, key.clone()));
        record.and_then(|r| r.due).is_none_or(|due| due <= Instant::now())
    }

    /// Objects that a reconciler no longer wants to write wait for nothing. What was written lately is remembered
    /// all the same, so that a fight is seen.
    pub(crate) fn keep_only(&mut self, reconciler: &'static str, wanted: impl Iterator<Item = ObjectKey>) {
        let wanted: BTreeSet<ObjectKey> = wanted.collect();
        let now = Instant::now();
        self.records.retain(|(name, key), record| {
            if *name != reconciler || wanted.contains(key) {
                return true;
            }
            record.due = None;
            record.failures = 0;
            record.last.as_ref().is_some_and(|(_, at)| now - *at < LONGEST)
        });
    }

    /// A write succeeded. A pause if it is the same one over and over.
    pub(crate) fn succeeded(
        &mut self,
        reconciler: &'static str,
        key: &ObjectKey,
        action: &Action,
    ) -> Option<Duration> {
        let record = self.records.entry((reconciler, key.clone())).or_default();
        record.failures = 0;
        record.due = None;
        let now = Instant::now();
        match &record.last {
            Some((last, at)) if last == action && now - *at < LONGEST * 2 => record.same += 1,
            _ => record.same = 1,
        }
        record.last = Some((action.clone(), now));
        if record.same < SAME_IN_A_ROW {
            return None;
        }
        let pause = self.jitter.backoff(FIRST, LONGEST, record.same - SAME_IN_A_ROW + 1);
        record.due = Some(Instant::now() + pause);
        Some(pause)
    }

    /// A write failed. The pause before the next attempt.
    pub(crate) fn failed(&mut self, reconciler: &'static str, key: &ObjectKey) -> Duration {
        let record = self.records.entry((reconciler, key.clone())).or_default();
        record.failures += 1;
        let pause = self.jitter.backoff(FIRST, LONGEST, record.failures);
        record.due = Some(Instant::now() + pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const R: &str = "r";

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("", "ConfigMap", "n", name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_object_waits_longer_each_time_and_holds_up_no_other() {
        let mut attempts = Attempts::new(Jitter::new(1));
        let mut pauses = Vec::new();
        for _ in 0..4 {
            pauses.push(attempts.failed(R, &key("a")));
            assert!(!attempts.may_try(R, &key("a")) && attempts.may_try(R, &key("b")));
            tokio::time::sleep_until(attempts.next_due().unwrap_or_else(Instant::now)).await;
            assert!(attempts.may_try(R, &key("a")));
        }
        for (n, pause) in pauses.iter().enumerate() {
            let full = FIRST * 2u32.pow(u32::try_from(n).unwrap_or(0));
            assert!(*pause >= full / 2 && *pause <= full, "{pauses:?}");
        }
        attempts.keep_only(R, std::iter::empty());
        assert_eq!(attempts.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_write_over_and_over_is_a_fight() {
        let mut attempts = Attempts::new(Jitter::new(1));
        let action = |n: u32| Action::Create { object: json!({ "n": n }) };
        assert_eq!(attempts.succeeded(R, &key("a"), &action(1)), None);
        assert_eq!(attempts.succeeded(R, &key("a"), &action(1)), None);
        assert!(attempts.succeeded(R, &key("a"), &action(1)).is_some());
        assert!(!attempts.may_try(R, &key("a")));
        assert_eq!(attempts.succeeded(R, &key("a"), &action(2)), None);
        assert!(attempts.may_try(R, &key("a")));
    }
}
