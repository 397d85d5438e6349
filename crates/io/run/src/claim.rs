//! The lease of the run: who writes, at most one at a time.
//!
//! A run asks for the lease just before its first write, so that a run with nothing to do writes nothing. From then on
//! the lease is renewed beside the run's own future, whatever that waits for, without a task of its own.

use std::time::Duration;

use jiff::SignedDuration;
use scantling_cluster::{ClusterError, Held, Lease};
use tokio::sync::oneshot;

use crate::report::Stop;
use crate::session::Session;
use crate::state::SYSTEM_NAMESPACE;

/// The lease that every run holds while it writes.
pub const LEASE_NAME: &str = "scantling-run";
/// How long the lease of a run that is gone keeps others out.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Between two looks at a lease that somebody else has.
const LOOK: Duration = Duration::from_secs(1);
/// By how much a renewal moves the end of a lease at least; less is the inaccuracy of reading two clocks.
const RENEWED: SignedDuration = SignedDuration::from_millis(500);
/// How long a lease that is handed over at this moment is tried for, beyond its own duration.
const SLACK: Duration = Duration::from_secs(5);

/// What a run knows of its claim to the lease.
#[derive(Debug)]
pub(crate) enum Claim {
    /// Nothing has been written, so that it has not been asked for.
    Free { ask: oneshot::Sender<()>, answer: oneshot::Receiver<Result<(), Stop>> },
    /// It is held.
    Held,
    /// It was refused, or there is no one to ask.
    Refused,
}

/// The keeper's end of a claim.
pub(crate) struct Keeper {
    asked: oneshot::Receiver<()>,
    tell: oneshot::Sender<Result<(), Stop>>,
}

/// A claim and who answers it.
pub(crate) fn claim() -> (Claim, Keeper) {
    let (ask, asked) = oneshot::channel();
    let (tell, answer) = oneshot::channel();
    (Claim::Free { ask, answer }, Keeper { asked, tell })
}

impl Keeper {
    /// Waits until it is asked, acquires the lease, and keeps it. Ends only when the lease is lost, with the reason.
    pub(crate) async fn keep(self, lease: &mut Lease) -> String {
        if self.asked.await.is_err() {
            // The run ended without a write.
            return std::future::pending().await;
        }
        let acquired = acquire(lease).await;
        let held = acquired.is_ok();
        if self.tell.send(acquired).is_err() || !held {
            return std::future::pending().await;
        }
        lease.keep().await
    }
}

/// Takes the lease, or says who has it. Of a holder that does not renew any more it is taken over after its time.
async fn acquire(lease: &mut Lease) -> Result<(), Stop> {
    let started = tokio::time::Instant::now();
    // The first claim that was seen, as far as it shows: who, and until when.
    let mut first = None;
    loop {
        match lease.try_acquire().await {
            // A request whose answer was lost may have taken it; that shows when it is tried again.
            Err(ClusterError::Status { .. } | ClusterError::Unreachable { .. })
                if started.elapsed() < LEASE_DURATION => {}
            Err(error) => return Err(error.into()),
            Ok(Held::Mine) => return Ok(()),
            Ok(Held::By { holder, expires }) => {
                let (known, until) = first.get_or_insert((holder.clone(), expires));
                // Renewed since we looked first, or somebody else's by now: its holder is alive.
                let alive = *known != holder || expires.duration_since(*until) > RENEWED;
                if alive || started.elapsed() > LEASE_DURATION + SLACK {
                    return Err(Stop::Held { holder });
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl Session<'_> {
    /// Holds the lease from here on.
    pub(crate) async fn hold(&mut self) -> Result<(), Stop> {
        match std::mem::replace(&mut self.claim, Claim::Refused) {
            Claim::Held => {}
            Claim::Refused => {
                return Err(Stop::Halt("the run has no claim to the lease any more".to_owned()));
            }
            Claim::Free { ask, answer } => {
                let gone = || Stop::Halt("nobody keeps the lease of this run".to_owned());
                ask.send(()).map_err(|()| gone())?;
                answer.await.map_err(|_| gone())??;
                self.check_still().await?;
            }
        }
        self.claim = Claim::Held;
        Ok(())
    }

    /// Whether another run has ended or begun since this one has read the cluster: what it decided would then rest on
    /// what is no longer so.
    async fn check_still(&self) -> Result<(), Stop> {
        let version = |maps: &[serde_json::Value], name: &str| {
            maps.iter()
                .find(|m| scantling_api::object::name(m) == name)
                .map(|m| scantling_api::object::resource_version(m).to_owned())
        };
        let now = self.list("", "ConfigMap", Some(SYSTEM_NAMESPACE)).await?;
        for name in [crate::state::STATE_NAME, crate::journal::JOURNAL_NAME] {
            if version(&now, name) != version(&self.system_maps, name) {
                return Err(Stop::Stale);
            }
        }
        Ok(())
    }
}
