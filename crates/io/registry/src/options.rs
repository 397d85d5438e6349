//! How the client behaves.

use std::time::Duration;

/// How the client behaves. The defaults suit public registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Seed of the jitter between retries.
    pub seed: u64,
    /// Requests at the same time to one registry. Public registries begin to refuse at some tens.
    pub parallel: usize,
    /// How often a request is repeated after a rate limit, a failing server or a broken connection.
    pub retries: u32,
    /// The pause before the first repetition, doubled each time.
    pub first_delay: Duration,
    /// The longest pause that the client chooses itself.
    pub longest_delay: Duration,
    /// The longest `Retry-After` that is waited for; a longer one is an answer, not a pause. Docker Hub asks for minutes.
    pub longest_retry_after: Duration,
    /// How long to wait for the head of an answer, and for each further piece of its body.
    pub timeout: Duration,
    /// The name that registries see.
    pub user_agent: String,
    /// Layers up to this size, in bytes, are read in memory; larger ones go through a thread, piece by piece.
    pub in_memory: usize,
    /// Piece size of uploads; what is not larger goes in one request.
    pub chunk: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            parallel: 8,
            retries: 4,
            first_delay: Duration::from_millis(250),
            longest_delay: Duration::from_secs(15),
            longest_retry_after: Duration::from_mins(5),
            timeout: Duration::from_secs(30),
            user_agent: concat!("scantling/", env!("CARGO_PKG_VERSION")).to_owned(),
            in_memory: 32 * 1024 * 1024,
            chunk: 16 * 1024 * 1024,
        }
    }
}
