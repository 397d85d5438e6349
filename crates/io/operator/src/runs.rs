//! The runs that are due, performed by the code that the command line performs them with.

use std::sync::PoisonError;
use std::time::Duration;

use scantling_observed::{Platform, View as _};
use scantling_reconcile::{LastRun, Next, Outcome, RunKind, next};
use scantling_run::{Bundle, Environment, Options, RunError, RunEvent, RunReport};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::known::Seen;
use crate::operator::{Operator, ended};
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
        mut known: watch::Receiver<Option<std::sync::Arc<scantling_reconcile::Known>>>,
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
            let wish = match self.read_books(&mut lease).await {
                Ok((facts, _)) => next(platform, &facts, &self.identity),
                Err(why) => {
                    self.tell(Told::BooksUnread { why });
                    Next::Rest
                }
            };
            if told.as_ref() != Some(&wish) {
                self.tell(Told::Decided { next: in_words(&wish) });
                told = Some(wish.clone());
            }
            let generation = platform.map(Platform::generation).unwrap_or_default();
            let mut again = Instant::now() + AT_LEAST;
            if matches!(wish, Next::Run { .. } | Next::Rollback { .. }) {
                if tries.may(&wish, generation) {
                    let performed = self.perform(&wish, &end, &mut tries).await;
                    told = None;
                    if *end.borrow() {
                        return;
                    }
                    if performed {
                        continue;
                    }
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

    /// Performs a run; true if it did what it was to do.
    async fn perform(&self, wish: &Next, end: &watch::Receiver<bool>, tries: &mut Tries) -> bool {
        let (version, continued, back) = match wish {
            Next::Run { version, begun } => (version.clone(), *begun, None),
            Next::Rollback { to, from } => (to.clone(), false, Some(from.clone())),
            _ => return false,
        };
        self.tell(Told::RunBegins { version: version.clone(), continued, back: back.is_some() });
        let ran = self.bring(&version, back.is_some(), end).await;
        let interrupted = *end.borrow();
        let (brought, how) = match &ran {
            Ok(report) => (true, format!("{} writes", report.writes)),
            Err(why) => (false, why.to_string()),
        };
        let mut again_in_seconds = None;
        if brought || interrupted {
            *tries = Tries::default();
        } else {
            tries.failures = tries.failures.saturating_add(1);
            let pause = self.cluster.jitter().backoff(FIRST, LONGEST, tries.failures);
            tries.due = Some(Instant::now() + pause);
            again_in_seconds = Some(pause.as_secs());
        }
        // What was refused before anything was written is in no book.
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = match &ran {
            Err(NotBrought::Refused(why)) if !interrupted => Some(LastRun {
                kind: if back.is_some() { RunKind::Rollback } else { RunKind::Upgrade },
                version: version.clone(),
                from: back,
                outcome: Outcome::Refused { why: why.clone() },
                promises: std::collections::BTreeMap::new(),
            }),
            _ => None,
        };
        self.books_changed.notify_one();
        self.tell(Told::RunEnds { version, brought, how, again_in_seconds });
        brought
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
            registry: (self.registries)().await.map_err(refused)?,
            clock: self.clock,
            entropy: self.entropy.clone(),
            vantage: self.vantage.clone(),
        };
        let mut sink = |event: RunEvent| self.tell(Told::Run { what: event });
        let options =
            Options { holder: self.identity.clone(), stop: Some(end.clone()), ..Options::default() };
        let ran = if back {
            scantling_run::rollback(&env, Some(version), &options, &mut sink).await
        } else {
            let bundle = Bundle::load(&env, version).await.map_err(|error| refused(error.to_string()))?;
            let release = bundle.release().map_err(|error| refused(error.to_string()))?;
            let options = Options { lock: bundle.lock.clone(), bundle: Some(bundle), ..options };
            scantling_run::upgrade(&env, &release, &options, &mut sink).await
        };
        ran.map_err(|error| match error {
            RunError::Refused { why, .. } => NotBrought::Refused(why),
            other => NotBrought::Stopped(other.to_string()),
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
