//! Time as the product sees it: a start instant from the caller, moved by tokio's clock.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock that starts at a given instant and advances with tokio's time.
///
/// In production the start is the wall clock's present; in a rehearsal it is the sandbox's, and tokio's time is
/// paused and moved together with the sandbox, so the same code sees the same instants on every replay.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// A clock that reads `start` now. Must be called inside a tokio runtime whose time is the one to follow.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// The present instant.
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.saturating_add(passed).unwrap_or(self.start)
    }

    /// The present instant in Kubernetes' notation: RFC 3339 in UTC with whole seconds.
    pub fn now_rfc3339(&self) -> String {
        let now = self.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
    }
}
