//! What a run needs from outside: a cluster, a registry, time, and randomness.

use std::sync::Arc;

use scantling_cluster::{Clock, Cluster, ClusterError};
use scantling_registry::RegistryClient;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::packed::PART_LABEL;
use crate::state::SYSTEM_NAMESPACE;

/// Everything outside that a run touches.
pub struct Environment {
    /// The cluster that is upgraded.
    pub cluster: Cluster,
    /// The way to registries, the cluster's internal one included.
    pub registry: RegistryClient,
    /// The clock that events and the journal are stamped with.
    pub clock: Clock,
    /// Where generated passwords come from.
    pub entropy: Entropy,
    /// Where the registry is asked from, in words: `here`, `a pod in the cluster`. Verdicts name it.
    pub vantage: String,
}

impl Environment {
    /// Every `ConfigMap` of the namespace that the product keeps for itself.
    pub(crate) async fn system_maps(&self) -> Result<Vec<Value>, ClusterError> {
        let served = self.cluster.served().await?;
        match served.by_kind("", "ConfigMap") {
            Some(resource) => self.cluster.list(resource, Some(SYSTEM_NAMESPACE), None).await,
            None => Ok(Vec::new()),
        }
    }

    /// The same with the parts of stored releases, which are Secrets.
    pub(crate) async fn stored(&self) -> Result<Vec<Value>, ClusterError> {
        let served = self.cluster.served().await?;
        let mut stored = Vec::new();
        for (kind, selector) in [("ConfigMap", None), ("Secret", Some(PART_LABEL))] {
            if let Some(resource) = served.by_kind("", kind) {
                stored.extend(self.cluster.list(resource, Some(SYSTEM_NAMESPACE), selector).await?);
            }
        }
        Ok(stored)
    }
}

/// Fills bytes for a purpose.
type Fill = dyn Fn(&str, &mut [u8]) + Send + Sync;

/// A source of bytes for generated secrets.
#[derive(Clone)]
pub struct Entropy(Arc<Fill>);

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entropy").finish_non_exhaustive()
    }
}

impl Entropy {
    /// Bytes from a function. It is given the purpose (`Secret ns/name key`) and the bytes to fill; a rehearsal derives
    /// them from its seed and the purpose, production from the operating system.
    pub fn new(fill: impl Fn(&str, &mut [u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    /// Bytes derived from a seed and the purpose: the same on every replay. Only for rehearsals and tests, since a seed
    /// of 64 bits can be guessed.
    pub fn from_seed(seed: u64) -> Self {
        Self::new(move |purpose, bytes| {
            for (block, chunk) in (0u64..).zip(bytes.chunks_mut(32)) {
                let mut hash = Sha256::new();
                hash.update(seed.to_be_bytes());
                hash.update(block.to_be_bytes());
                hash.update(purpose.as_bytes());
                for (to, from) in chunk.iter_mut().zip(hash.finalize()) {
                    *to = from;
                }
            }
        })
    }

    /// A password of letters and digits, each equally likely.
    pub(crate) fn password(&self, purpose: &str, length: usize) -> String {
        const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        // 248 is the largest multiple of 62 below 256: what is above would make the first letters likelier.
        const FAIR: u8 = 248;
        let mut password = String::with_capacity(length);
        for round in 0u32.. {
            let mut bytes = [0u8; 64];
            (self.0)(&format!("{purpose}#{round}"), &mut bytes);
            for byte in bytes.into_iter().filter(|b| *b < FAIR) {
                if password.len() == length {
                    return password;
                }
                password.extend(ALPHABET.get(usize::from(byte % 62)).copied().map(char::from));
            }
        }
        password
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_their_length_and_follow_seed_and_purpose() {
        let entropy = Entropy::from_seed(1);
        for length in [0, 1, 24, 63, 64, 65, 500] {
            let password = entropy.password("Secret a/b c", length);
            assert_eq!(password.len(), length);
            assert!(password.bytes().all(|b| b.is_ascii_alphanumeric()));
            assert_eq!(password, Entropy::from_seed(1).password("Secret a/b c", length));
        }
        assert_ne!(entropy.password("a", 24), entropy.password("b", 24));
        assert_ne!(entropy.password("a", 24), Entropy::from_seed(2).password("a", 24));
    }
}
