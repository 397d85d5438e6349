//! Writing the state: parts first, then the head that names them, then away with the parts of before.

use scantling_cluster::{Cluster, ClusterError, Write};
use scantling_reconcile::KnownImages;

use crate::packed::stale_parts;
use crate::report::Stop;
use crate::session::Session;
use crate::state::{STATE_NAME, SYSTEM_NAMESPACE, State, StateError};

/// Why what is stored in a cluster cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The cluster cannot be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// It is there and cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

impl State {
    /// What a cluster remembers of the release last applied. None if Scantling has applied none.
    pub async fn stored_in(cluster: &Cluster) -> Result<Option<Self>, StoredError> {
        let served = cluster.served().await?;
        let Some(resource) = served.by_kind("", "ConfigMap") else { return Ok(None) };
        let maps = cluster.list(resource, Some(SYSTEM_NAMESPACE), None).await?;
        Ok(Self::from_config_maps(&maps)?)
    }

    /// Every image whose contents were read, for the reconcilers.
    pub fn known(&self) -> KnownImages {
        self.known_images.iter().cloned().collect()
    }
}

impl Session<'_> {
    pub(crate) async fn write_state(&mut self, state: &State) -> Result<(), Stop> {
        let maps = state.to_config_maps().map_err(|e| Stop::Halt(e.to_string()))?;
        let head = maps.last().cloned().unwrap_or_default();
        for map in maps {
            self.write(Write::Apply { object: map, force: true }).await?;
        }
        let there = self.list("", "ConfigMap", Some(SYSTEM_NAMESPACE)).await?;
        for old in stale_parts(&there, STATE_NAME, &head) {
            self.write(Write::Delete { object: old.clone(), uid: None, grace_seconds: None }).await?;
        }
        Ok(())
    }
}
