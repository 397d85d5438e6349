//! How often a write has been tried, and when it may be tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_api::ObjectKey;
use scantling_reconcile::Action;
use tokio::time::Instant;

use crate::stack::Jitter;

/// The pause after a first failure, doubled each time.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause: an object that cannot be written is looked at every few minutes.
const LONGEST: Duration = Duration::from_mins(5);
/// How often the very same write may succeed without a pause while [`LONGEST`] does not pass in between. Twice can
/// happen (the change has not been seen yet); more means that somebody undoes it.
const SAME_IN_A_ROW: u32 = 3;

/// One write among those of a reconciler: to which object, and what is done to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) reconciler: &'static str,
    pub(crate) key: ObjectKey,
    pub(crate) verb: &'static str,
}

impl Attempt {
    /// None for an action on no object of the API.
    pub(crate) fn of(reconciler: &'static str, action: &Action) -> Option<Self> {
        Some(Self { reconciler, key: action.key()?, verb: action.verb() })
    }
}

/// What the server said when it refused a write, and for whose sake that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) subject: ObjectKey,
    pub(crate) why: String,
}

#[derive(Debug, Default)]
struct Record {
    failures: u32,
    due: Option<Instant>,
    refused: Option<Refused>,
    last: Option<(Action, Instant)>,
    same: u32,
}

/// The attempts of one driver.
#[derive(Debug)]
pub(crate) struct Attempts {
    records: BTreeMap<Attempt, Record>,
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

    pub(crate) fn may_try(&self, attempt: &Attempt) -> bool {
        self.records.get(attempt).and_then(|record| record.due).is_none_or(|due| due <= Instant::now())
    }

    /// Writes that a reconciler no longer wants wait for nothing. What was written lately is remembered all the same, so that a fight is
    /// seen.
    pub(crate) fn keep_only(&mut self, reconciler: &'static str, wanted: &BTreeSet<Attempt>) {
        let now = Instant::now();
        self.records.retain(|attempt, record| {
            if attempt.reconciler != reconciler || wanted.contains(attempt) {
                return true;
            }
            record.due = None;
            record.failures = 0;
            record.refused = None;
            record.last.as_ref().is_some_and(|(_, at)| now - *at < LONGEST)
        });
    }

    /// What the server refuses, by the object for whose sake it was written.
    pub(crate) fn refused(&self) -> BTreeMap<ObjectKey, String> {
        let refused = self.records.values().filter_map(|record| record.refused.as_ref());
        refused.map(|refused| (refused.subject.clone(), refused.why.clone())).collect()
    }

    /// A write succeeded. If it is one of too many that are the same, the pause before the next.
    pub(crate) fn succeeded(&mut self, attempt: &Attempt, action: &Action) -> Option<Duration> {
        let record = self.records.entry(attempt.clone()).or_default();
        record.failures = 0;
        record.due = None;
        record.refused = None;
        let now = Instant::now();
        match &record.last {
            Some((last, at)) if last.is_same(action) && now - *at < LONGEST * 2 => record.same += 1,
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

    /// A write failed. The pause before the next attempt, and whether the server says something new by refusing it.
    pub(crate) fn failed(&mut self, attempt: &Attempt, refused: Option<Refused>) -> (Duration, bool) {
        let record = self.records.entry(attempt.clone()).or_default();
        record.failures += 1;
        let pause = self.jitter.backoff(FIRST, LONGEST, record.failures);
        record.due = Some(Instant::now() + pause);
        // Nobody is told of what did not even reach the server; what it said before still stands.
        let is_news = refused.is_some() && refused != record.refused;
        if is_news {
            record.refused = refused;
        }
        (pause, is_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attempt(name: &str, verb: &'static str) -> Attempt {
        Attempt { reconciler: "r", key: ObjectKey::namespaced("", "ConfigMap", "n", name), verb }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_write_waits_longer_each_time_and_holds_up_no_other() {
        let mut attempts = Attempts::new(Jitter::new(1));
        let (a, status) = (attempt("a", "apply"), attempt("a", "status"));
        let mut pauses = Vec::new();
        for _ in 0..4 {
            pauses.push(attempts.failed(&a, None).0);
            assert!(
                !attempts.may_try(&a)
                    && attempts.may_try(&status)
                    && attempts.may_try(&attempt("b", "apply"))
            );
            tokio::time::sleep_until(attempts.next_due().unwrap_or_else(Instant::now)).await;
            assert!(attempts.may_try(&a));
        }
        for (n, pause) in pauses.iter().enumerate() {
            let full = FIRST * 2u32.pow(u32::try_from(n).unwrap_or(0));
            assert!(*pause >= full / 2 && *pause <= full, "{pauses:?}");
        }
        attempts.keep_only("r", &BTreeSet::new());
        assert_eq!(attempts.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_server_refuses_is_known_until_it_takes_it_or_nobody_wants_it() {
        let mut attempts = Attempts::new(Jitter::new(1));
        let a = attempt("a", "apply");
        let subject = ObjectKey::namespaced("g", "K", "n", "a");
        let refused = || Some(Refused { subject: subject.clone(), why: "no".to_owned() });
        assert!(attempts.failed(&a, refused()).1);
        assert!(!attempts.failed(&a, refused()).1, "nothing new");
        assert!(!attempts.failed(&a, None).1);
        assert_eq!(attempts.refused(), BTreeMap::from([(subject.clone(), "no".to_owned())]));
        attempts.succeeded(&a, &Action::Create { object: json!({}), of: subject.clone() });
        assert!(attempts.refused().is_empty());
        attempts.failed(&a, refused());
        attempts.keep_only("r", &BTreeSet::new());
        assert!(attempts.refused().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_write_over_and_over_is_a_fight() {
        let mut attempts = Attempts::new(Jitter::new(1));
        let a = attempt("a", "create");
        let action = |n: u32| Action::Create { object: json!({ "n": n }), of: a.key.clone() };
        assert_eq!(attempts.succeeded(&a, &action(1)), None);
        assert_eq!(attempts.succeeded(&a, &action(1)), None);
        assert!(attempts.succeeded(&a, &action(1)).is_some());
        assert!(!attempts.may_try(&a));
        assert_eq!(attempts.succeeded(&a, &action(2)), None);
        assert!(attempts.may_try(&a));
    }
}
