//! The runs that are due, performed by the code that the command line performs them with.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use scantling_cluster::Lease;
use scantling_observed::{Platform, View as _};
use scantling_reconcile::{Known, LastRun, Next, Outcome, PlatformFacts, RunKind, next};
use scantling_run::{Bundle, Environment, Options, RunError, RunEvent, RunReport};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::books::Booked;
use crate::operator::{Operator, ended};
use crate::seen::Seen;
use crate::told::Told;

/// The pause after a run failed for the first time, doubled each time.
const FIRST: Duration = Duration::from_mins(1);
/// The longest pause: what was mended in the meantime, an image that was published, is found within this time.
const LONGEST: Duration = Duration::from_mins(30);
/// It is looked whether something is due after this time even if nothing has told of a change.
const AT_LEAST: Duration = Duration::from_mins(5);

/// Failures of the same wish, and when it is tried again.
#[derive(Debug, Default)]
struct Tries {
    wish: Option<(Next, i64)>,
    failures: u32,
    due: Option<Instant>,
}

impl Tries {
    /// Another wish, or the same one of a spec that was changed, is tried at once.
    fn may(&mut self, wish: &Next, generation: i64) -> bool {
        // Whether it has begun is no other wish.
        let wish = match wish {
            Next::Run { version, .. } => Next::Run { version: version.clone(), begun: true },
            other => other.clone(),
        };
        if self.wish.as_ref() != Some(&(wish.clone(), generation)) {
            *self = Self { wish: Some((wish, generation)), ..Self::default() };
        }
        self.due.is_none_or(|due| due <= Instant::now())
    }
}

impl Operator {
    /// Performs what is due, until `end` becomes true. A run is then stopped between two writes, and can be continued.
    pub(crate) async fn perform_runs(
        &self,
        mut known: watch::Receiver<Option<Arc<Known>>>,
        mut seen: watch::Receiver<Option<Seen>>,
        end: watch::Receiver<bool>,
    ) {
        let mut lease = self.run_lease();
        let mut tries = Tries::default();
        let mut told: Option<Next> = None;
        loop {
            tokio::select! {
                biased;
                () = ended(&end) => return,
                known = known.wait_for(Option::is_some) => if known.is_err() { return },
            }
            known.mark_unchanged();
            let platform = seen.borrow_and_update().as_ref().and_then(|seen| seen.platform.clone());
            let platform = platform.as_ref().map(Platform::of);
            let facts = match self.read_books(&mut lease).await {
                Ok(booked) => booked.facts,
                Err(why) => {
                    self.tell(Told::BooksUnread { why });
                    PlatformFacts {
                        problem: Some("the bookkeeping cannot be read".to_owned()),
                        ..PlatformFacts::default()
                    }
                }
            };
            let wish = next(platform, &facts, &self.identity);
            if told.as_ref() != Some(&wish) {
                self.tell(Told::Decided { next: in_words(&wish) });
                told = Some(wish.clone());
            }
            let generation = platform.map(Platform::generation).unwrap_or_default();
            let mut again = Instant::now() + AT_LEAST;
            if !matches!(wish, Next::Run { .. } | Next::Rollback { .. } | Next::Watch { .. }) {
                tries = Tries::default();
                *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = None;
            } else if !matches!(wish, Next::Watch { .. }) {
                if tries.may(&wish, generation) {
                    let refused = self.perform(&wish, &end, &mut tries).await;
                    if *end.borrow() {
                        return;
                    }
                    told = None;
                    self.note_refusal(refused, &facts, &mut lease).await;
                    // What it has changed is news of its own; a wish that comes back all the same waits for its time.
                    continue;
                }
                again = again.min(tries.due.unwrap_or(again));
            }
            tokio::select! {
                biased;
                () = ended(&end) => return,
                changed = known.changed() => if changed.is_err() { return },
                changed = seen.changed() => if changed.is_err() { return },
                () = sleep_until(again) => {}
            }
        }
    }

    /// Performs a run; gives the run if it was refused.
    async fn perform(&self, wish: &Next, end: &watch::Receiver<bool>, tries: &mut Tries) -> Option<LastRun> {
        let (version, continued, back) = match wish {
            Next::Run { version, begun } => (version.clone(), *begun, None),
            Next::Rollback { to, from } => (to.clone(), false, Some(from.clone())),
            _ => return None,
        };
        self.tell(Told::RunBegins { version: version.clone(), continued, back: back.is_some() });
        let ran = self.bring(&version, back.is_some(), end).await;
        let (brought, how) = match &ran {
            Ok(report) => (true, format!("{} writes", report.writes)),
            Err(why) => (false, why.to_string()),
        };
        // Also after a success: the same wish right afterwards means that it did not help.
        tries.failures = tries.failures.saturating_add(1);
        let pause = self.cluster.jitter().backoff(FIRST, LONGEST, tries.failures);
        tries.due = Some(Instant::now() + pause);
        let again_in_seconds = (!brought && !*end.borrow()).then_some(pause.as_secs());
        self.tell(Told::RunEnds { version: version.clone(), brought, how, again_in_seconds });
        match ran {
            Err(NotBrought::Refused(why)) => Some(LastRun {
                kind: if back.is_some() { RunKind::Rollback } else { RunKind::Upgrade },
                version,
                from: back,
                outcome: Outcome::Refused { why },
                ended: String::new(),
                promises: BTreeMap::new(),
            }),
            _ => None,
        }
    }

    /// Notes a run that was refused before anything was written, since no book has it. One that gave way to another run is
    /// none.
    async fn note_refusal(&self, refused: Option<LastRun>, before: &PlatformFacts, lease: &mut Lease) {
        let now = self.read_books(lease).await;
        let gave_way = now.is_ok_and(|Booked { facts: now, .. }| {
            now.holder.is_some() || (&now.installed, &now.run) != (&before.installed, &before.run)
        });
        let noted = refused.filter(|_| !gave_way);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        self.books_changed.notify_one();
    }

    async fn bring(
        &self,
        version: &str,
        back: bool,
        end: &watch::Receiver<bool>,
    ) -> Result<RunReport, NotBrought> {
        let refused = |why: String| NotBrought::Refused(why);
        let env = Environment {
            cluster: self.cluster.clone(),
            registry: self.registry().await.map_err(refused)?,
            clock: self.clock,
            entropy: self.entropy.clone(),
            vantage: self.vantage.clone(),
        };
        let mut sink = |event: RunEvent| self.tell(Told::Run { what: event });
        let options = Options {
            holder: self.identity.clone(),
            stop: Some(end.clone()),
            announce: false,
            ..Options::default()
        };
        let ran = if back {
            Box::pin(scantling_run::rollback(&env, Some(version), &options, &mut sink)).await
        } else {
            let bundle = Bundle::load(&env, version).await.map_err(|error| refused(error.to_string()))?;
            let release = bundle.release().map_err(|error| refused(error.to_string()))?;
            let options = Options { lock: bundle.lock.clone(), bundle: Some(bundle), ..options };
            Box::pin(scantling_run::upgrade(&env, &release, &options, &mut sink)).await
        };
        ran.map_err(|error| match error {
            RunError::Refused { why, .. } => NotBrought::Refused(why),
            stopped @ RunError::Stopped { .. } => NotBrought::Stopped(stopped.to_string()),
        })
    }
}

/// Why a release was not brought.
#[derive(Debug, thiserror::Error)]
enum NotBrought {
    #[error("refused before anything was written: {0}")]
    Refused(String),
    #[error("{0}")]
    Stopped(String),
}

fn in_words(next: &Next) -> String {
    match next {
        Next::Rest => "nothing".to_owned(),
        Next::Watch { holder } => format!("{holder} does a run"),
        Next::Approve { version } => format!("{version} waits for approval"),
        Next::NotStored { version } => format!("the files of {version} are not stored"),
        Next::WasRolledBack { version } => format!("{version} was rolled back and is not tried again"),
        Next::Blocked { why } => format!("nothing can be done: {why}"),
        Next::Run { version, begun: true } => format!("continue the run of {version}"),
        Next::Run { version, begun: false } => format!("bring {version}"),
        Next::Rollback { to, from } => format!("bring {to} back, since {from} stopped"),
    }
}
