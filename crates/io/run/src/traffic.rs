//! What a run writes: how many requests have changed the cluster, how many are under way, and that none begins when the
//! run is to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use scantling_cluster::{ClusterError, Written};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long writes that are under way are waited for when the run is to stop. A server that is alive answers sooner.
const GRACE: Duration = Duration::from_secs(10);
/// Between two looks whether they have ended.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    done: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
}

/// A write that is under way, for as long as it lives.
struct UnderWay<'t>(&'t AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Traffic {
    /// Makes a write. When the run is to stop it never begins: whoever waits for it is ended.
    pub(crate) async fn write(
        &self,
        stop: Option<&watch::Receiver<bool>>,
        write: impl Future<Output = Result<Written, ClusterError>>,
    ) -> Result<Written, ClusterError> {
        if stop.is_some_and(|stop| *stop.borrow()) {
            std::future::pending::<()>().await;
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let under_way = UnderWay(&self.under_way);
        let written = write.await?;
        drop(under_way);
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(written)
    }

    /// Requests that changed the cluster.
    pub(crate) fn writes(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends when the run is to stop and what it was writing has been written; never, if nobody can ask.
    pub(crate) async fn stopped(&self, stop: Option<watch::Receiver<bool>>) {
        let Some(mut stop) = stop else { return std::future::pending().await };
        if stop.wait_for(|asked| *asked).await.is_err() {
            return std::future::pending().await;
        }
        let deadline = Instant::now() + GRACE;
        while self.under_way.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            tokio::time::sleep(LOOK).await;
        }
    }
}
