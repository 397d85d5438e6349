//! Waiting with an end, telling what is missing when that changes.

use std::time::Duration;

use tokio::time::Instant;

use crate::event::What;
use crate::session::Session;

/// The first look comes this soon, and each next one later by half, up to the wait's own pause: most things that are waited
/// for are done at once, and a definition that is established in a tenth of a second must not cost two.
const FIRST: Duration = Duration::from_millis(100);
/// The same news is told again after this time, so that a long wait stays visible and short in the log.
const TOLD_AGAIN: Duration = Duration::from_mins(30);

/// One wait.
#[derive(Debug)]
pub(crate) struct Wait {
    on: String,
    deadline: Instant,
    pause: Duration,
    longest: Duration,
    told: Option<(String, Instant)>,
}

impl Wait {
    /// A wait for `on`, of at most `limit`, looking at least every `pause`.
    pub(crate) fn new(on: String, limit: Duration, pause: Duration) -> Self {
        Self { on, deadline: Instant::now() + limit, pause: FIRST.min(pause), longest: pause, told: None }
    }

    /// Whether the time is up.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Whether it is looked as seldom as it ever will be: what is to come soon has come by then.
    pub(crate) fn is_long(&self) -> bool {
        self.pause >= self.longest
    }

    /// Whether it had to be waited at all.
    pub(crate) fn has_waited(&self) -> bool {
        self.told.is_some()
    }

    /// Starts the time anew.
    pub(crate) fn extend(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
    }
}

impl Session<'_> {
    /// Waits until the next look.
    pub(crate) async fn pause(&mut self, wait: &mut Wait, until: String) {
        let now = Instant::now();
        let known = wait.told.as_ref().is_some_and(|(told, at)| *told == until && now - *at < TOLD_AGAIN);
        if !known {
            self.tell(What::Waiting { on: wait.on.clone(), until: until.clone() });
            wait.told = Some((until, now));
        }
        tokio::time::sleep(wait.pause).await;
        wait.pause = (wait.pause * 3 / 2).min(wait.longest);
    }
}
