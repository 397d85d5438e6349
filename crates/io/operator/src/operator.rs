//! Leading, and what is done while leading.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use scantling_cluster::{Clock, Cluster, DriveEvent, DriveSettings, Held, Lease};
use scantling_observed::Observed;
use scantling_reconcile::{Known, LastRun, LastUses, RECONCILERS};
use scantling_registry::RegistryClient;
use scantling_run::{Entropy, SYSTEM_NAMESPACE};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::activity::Ask;
use crate::metrics::Metrics;
use crate::seen::Seen;
use crate::told::{Line, Told};

/// The lease of whoever leads.
pub const LEADER_LEASE: &str = "scantling-operator";
/// How long a leader that is gone keeps others out. It is renewed every third of it: six times a minute.
const LEASE_LASTS: Duration = Duration::from_secs(30);
/// Between two attempts to lead.
const LOOK: Duration = Duration::from_secs(2);
/// How long work may take to stop. Kubernetes kills a pod 30 seconds after it was told to end.
const GRACE: Duration = Duration::from_secs(15);
/// The pause before the driver is started again.
const DRIVER_AGAIN: Duration = Duration::from_secs(5);

/// Makes a way to registries, by the rules and with the credentials that there are at this moment; and says which of these it may not
/// read.
pub type Registries =
    dyn Fn() -> BoxFuture<'static, Result<(RegistryClient, Vec<String>), String>> + Send + Sync;
/// Takes lines.
pub type Lines = dyn Fn(&Line) + Send + Sync;

/// The process, before or while it works.
pub struct Operator {
    pub(crate) parts: Parts,
    /// What is counted.
    pub metrics: Metrics,
    /// The run that was refused last, which no book has.
    pub(crate) refused: Mutex<Option<LastRun>>,
    /// What of the rules about registries may not be read, as it was told.
    unread_rules: Mutex<Vec<String>>,
    /// Told when the books may say something else although nothing was written.
    pub(crate) books_changed: Notify,
}

impl std::ops::Deref for Operator {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

/// What an operator is made from.
pub struct Parts {
    /// The cluster.
    pub cluster: Cluster,
    /// The clock.
    pub clock: Clock,
    /// The way to registries; made anew for each run, since rules and credentials may have changed.
    pub registries: Box<Registries>,
    /// Where generated passwords come from.
    pub entropy: Entropy,
    /// How notebooks are asked.
    pub ask: Box<Ask>,
    /// Who this is, for leases: `operator/POD`. No two may be called the same.
    pub identity: String,
    /// The namespace of the platform, where the catalogue is.
    pub namespace: String,
    /// From where registries are asked, in words.
    pub vantage: String,
    /// Where lines go.
    pub lines: Box<Lines>,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Resolves when it has become true, or nobody is left to say so.
pub(crate) async fn ended(end: &watch::Receiver<bool>) {
    let mut end = end.clone();
    // Nobody is left who could still say that it goes on.
    let _ = end.wait_for(|end| *end).await;
}

impl Operator {
    /// An operator that does nothing yet.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            metrics: Metrics::new(),
            refused: Mutex::default(),
            unread_rules: Mutex::default(),
            books_changed: Notify::new(),
        }
    }

    /// Tells and counts.
    pub(crate) fn tell(&self, told: Told) {
        self.metrics.count(&told);
        let (at, level) = (self.clock.now(), told.level());
        // Whoever tells that something cannot be done does not hang. Before its first beat a process is not ready.
        if self.metrics.last_beat() != 0 || !matches!(told, Told::Leaderless { .. }) {
            self.metrics.beat(at);
        }
        (self.lines)(&Line { at, level, told });
    }

    /// The way to registries as it is now.
    pub(crate) async fn registry(&self) -> Result<RegistryClient, String> {
        let (client, unread) = (self.registries)().await?;
        let mut told = self.unread_rules.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != unread {
            for what in &unread {
                self.tell(Told::RulesUnread { what: what.clone() });
            }
            *told = unread;
        }
        Ok(client)
    }

    /// Waits until it leads, works for as long as it does, and again, until `stop` becomes true: then it stops between two
    /// writes and gives the lease back.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let mut lease =
            self.cluster.lease(SYSTEM_NAMESPACE, LEADER_LEASE, &self.identity, LEASE_LASTS, self.clock);
        loop {
            tokio::select! {
                biased;
                () = ended(&stop) => break,
                () = self.acquire(&mut lease) => {}
            }
            self.tell(Told::Leads);
            let (end, ends) = watch::channel(false);
            // Work has no end of its own.
            let mut work = Box::pin(self.work(ends));
            let lost = tokio::select! {
                biased;
                why = lease.keep() => Some(why),
                () = ended(&stop) => None,
                () = &mut work => return self.tell(Told::Stops),
            };
            end.send_replace(true);
            // What does not stop in time is dropped, as if it had been killed: the next one can continue it.
            let _ = timeout(GRACE, work).await;
            if let Some(why) = lost {
                self.tell(Told::LeadLost { why });
            } else {
                // It ends by itself if it cannot be given back.
                let _ = timeout(LOOK, lease.release()).await;
                break;
            }
        }
        self.tell(Told::Stops);
    }

    async fn acquire(&self, lease: &mut Lease) {
        let mut leader = None;
        loop {
            match lease.try_acquire().await {
                Ok(Held::Mine) => return,
                Ok(Held::By { holder, .. }) => {
                    if leader.as_ref() != Some(&holder) {
                        self.tell(Told::Follows { leader: holder.clone() });
                        leader = Some(holder);
                    }
                    self.metrics.beat(self.clock.now());
                }
                Err(error) => self.tell(Told::Leaderless { why: error.to_string() }),
            }
            sleep(self.cluster.jitter().around(LOOK)).await;
        }
    }

    /// What a leader does, until `end` becomes true.
    pub async fn work(&self, end: watch::Receiver<bool>) {
        let (seen, cluster) = watch::channel(None);
        let (booked, books) = watch::channel(None);
        let (read, contents) = watch::channel(None);
        let (uses, last_uses) = watch::channel(LastUses::new());
        let (informs, known) = watch::channel(None);
        // Each of these is large: together on one stack they are too much for a thread's.
        let drives = Box::pin(self.drive(&seen, known.clone(), &end));
        let performs = Box::pin(self.perform_runs(known.clone(), cluster.clone(), end.clone()));
        let keeps = Box::pin(self.keep_books(&booked));
        let reads = Box::pin(self.read_contents(&read, books.clone(), cluster.clone()));
        let asks = Box::pin(self.watch_activity(&uses, cluster.clone()));
        let tells = Box::pin(self.inform(&informs, books.clone(), contents, last_uses));
        tokio::select! {
            biased;
            _ = async { tokio::join!(drives, performs) } => {}
            () = keeps => {}
            () = reads => {}
            () = asks => {}
            () = tells => {}
        }
    }

    /// Drives the reconcilers until `end` becomes true.
    async fn drive(
        &self,
        seen: &watch::Sender<Option<Seen>>,
        known: watch::Receiver<Option<Arc<Known>>>,
        end: &watch::Receiver<bool>,
    ) {
        let look = |observed: &Observed| {
            let new = Some(Seen::of(observed));
            seen.send_if_modified(|old| {
                let news = *old != new;
                *old = new;
                news
            });
        };
        let settings = DriveSettings {
            reconcilers: RECONCILERS,
            namespace: &self.namespace,
            known,
            look: &look,
            clock: self.clock,
        };
        let mut tell = |event: DriveEvent| self.tell(Told::Driver { what: event.what });
        loop {
            match self.cluster.drive(&settings, &mut tell, ended(end)).await {
                Ok(()) => return,
                Err(error) => self.tell(Told::DriverFailed { why: error.to_string() }),
            }
            tokio::select! {
                biased;
                () = ended(end) => return,
                () = sleep(self.cluster.jitter().around(DRIVER_AGAIN)) => {}
            }
        }
    }
}
