//! What the client remembers of each registry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use scantling_endpoint::CredentialId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::challenge::Challenge;

/// Most hosts and tokens that are remembered; beyond that they are forgotten and learned again.
const REMEMBERED_MAX: usize = 10_000;

/// One registry.
pub(crate) struct Host {
    /// Bounds the requests that run at the same time.
    pub(crate) permits: Semaphore,
    /// Before this time the registry wants no request.
    not_before: Mutex<Option<Instant>>,
    /// By repository: parts of one registry may be open and others not.
    challenges: Mutex<BTreeMap<String, Challenge>>,
}

impl Host {
    /// Waits until the registry wants requests again.
    pub(crate) async fn open(&self) {
        let until = *lock(&self.not_before);
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Keeps every request back for a while.
    pub(crate) fn close(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut known = lock(&self.not_before);
        *known = Some(known.map_or(until, |known| known.max(until)));
    }

    pub(crate) fn challenge(&self, repository: &str) -> Option<Challenge> {
        lock(&self.challenges).get(repository).cloned()
    }

    pub(crate) fn learn(&self, repository: &str, challenge: &Challenge) {
        let mut challenges = lock(&self.challenges);
        if challenges.len() >= REMEMBERED_MAX {
            challenges.clear();
        }
        challenges.insert(repository.to_owned(), challenge.clone());
    }
}

/// A token is for one registry, one scope and one credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenKey {
    pub(crate) host: String,
    pub(crate) scope: String,
    pub(crate) credential: Option<CredentialId>,
}

/// A slot for one token; whoever holds the lock fetches it, the others wait and use it.
pub(crate) type TokenSlot = Arc<tokio::sync::Mutex<Option<String>>>;

/// All registries.
#[derive(Default)]
pub(crate) struct Hosts {
    hosts: Mutex<BTreeMap<String, Arc<Host>>>,
    tokens: Mutex<BTreeMap<TokenKey, TokenSlot>>,
}

impl Hosts {
    pub(crate) fn host(&self, name: &str, parallel: usize) -> Arc<Host> {
        let mut hosts = lock(&self.hosts);
        if hosts.len() >= REMEMBERED_MAX && !hosts.contains_key(name) {
            hosts.clear();
        }
        let new = || {
            Arc::new(Host {
                permits: Semaphore::new(parallel.clamp(1, Semaphore::MAX_PERMITS)),
                not_before: Mutex::new(None),
                challenges: Mutex::default(),
            })
        };
        Arc::clone(hosts.entry(name.to_owned()).or_insert_with(new))
    }

    pub(crate) fn token(&self, key: &TokenKey) -> TokenSlot {
        let mut tokens = lock(&self.tokens);
        if tokens.len() >= REMEMBERED_MAX && !tokens.contains_key(key) {
            tokens.clear();
        }
        Arc::clone(tokens.entry(key.clone()).or_default())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
