//! What the cluster's bookkeeping says of runs, kept up to date for the reconcilers.

use std::sync::Arc;
use std::time::Duration;

use scantling_api::GroupVersionKind;
use scantling_cluster::{Changes, ClusterError, Lease, Resource};
use scantling_observed::PlatformRun;
use scantling_reconcile::{
    Known, KnownImage, KnownImages, LastRun, LastUses, Outcome, PlatformFacts, RunKind,
};
use scantling_run::{Action, Books, Ended, OpenRun, PastRun, SYSTEM_NAMESPACE};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::operator::Operator;
use crate::told::Told;

/// The bookkeeping is read again after this time even if nothing has told of a change.
const AT_LEAST: Duration = Duration::from_mins(10);
/// Changes come in groups: what follows so soon is read along with the first.
const TOGETHER: Duration = Duration::from_millis(300);
/// How long a lease that is not renewed is looked at for its end.
const LEASE_LOOK: Duration = Duration::from_secs(16);
/// How long the first decisions wait for the contents of images that notebooks run. Those that a run has read are in the bookkeeping;
/// for the others a registry may be slow or silent, and nobody's notebook is to wait for it.
const CONTENTS_FIRST: Duration = Duration::from_secs(10);
/// The pause after the bookkeeping could not be read.
const AGAIN: Duration = Duration::from_secs(5);

/// What the bookkeeping says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Booked {
    /// Of runs and releases.
    pub(crate) facts: PlatformFacts,
    /// Images whose contents a run has read.
    pub(crate) images: KnownImages,
}

fn resource(group: &str, kind: &str, plural: &str) -> Resource {
    Resource {
        gvk: GroupVersionKind::new(group, "v1", kind),
        plural: plural.to_owned(),
        namespaced: true,
        verbs: Vec::new(),
    }
}

impl Operator {
    /// The lease of runs, to look at.
    pub(crate) fn run_lease(&self) -> Lease {
        let lasts = Duration::from_secs(15);
        self.cluster.lease(SYSTEM_NAMESPACE, scantling_run::LEASE_NAME, &self.identity, lasts, self.clock)
    }

    fn book_changes(&self) -> Changes {
        let only = format!("metadata.name={}", scantling_run::LEASE_NAME);
        let maps = (resource("", "ConfigMap", "configmaps"), None);
        let lease = (resource("coordination.k8s.io", "Lease", "leases"), Some(only.as_str()));
        self.cluster.changes(SYSTEM_NAMESPACE, &[maps, lease])
    }

    /// Reads the bookkeeping and sends what it says, whenever it changes, for as long as it is polled.
    pub(crate) async fn keep_books(&self, booked: &watch::Sender<Option<Booked>>) {
        let mut changes = self.book_changes();
        let mut lease = self.run_lease();
        loop {
            let mut again = Instant::now() + AT_LEAST;
            match self.read_books(&mut lease).await {
                Ok(new) => {
                    if new.facts.holder.is_some() {
                        again = again.min(Instant::now() + LEASE_LOOK);
                    }
                    let new = Some(new);
                    booked.send_if_modified(|old| {
                        let news = *old != new;
                        *old = new;
                        news
                    });
                }
                Err(why) => {
                    self.tell(Told::BooksUnread { why });
                    again = Instant::now() + self.cluster.jitter().around(AGAIN);
                }
            }
            tokio::select! {
                biased;
                () = changes.next() => {}
                () = self.books_changed.notified() => {}
                () = sleep_until(again) => {}
            }
            sleep(TOGETHER).await;
        }
    }

    /// Puts together what reconcilers are told, whenever a part of it changes, for as long as it is polled.
    pub(crate) async fn inform(
        &self,
        known: &watch::Sender<Option<Arc<Known>>>,
        mut booked: watch::Receiver<Option<Booked>>,
        mut contents: watch::Receiver<Option<Vec<KnownImage>>>,
        mut last_uses: watch::Receiver<LastUses>,
    ) {
        if booked.wait_for(Option::is_some).await.is_err() {
            return;
        }
        // A screen that said "another image" now and "pandas 2.3 → 3.0" a moment later would have been written twice.
        let _ = timeout(CONTENTS_FIRST, contents.wait_for(Option::is_some)).await;
        loop {
            let Some(Booked { facts, mut images }) = booked.borrow_and_update().clone() else { return };
            contents.borrow_and_update().iter().flatten().cloned().for_each(|image| images.insert(image));
            let last_uses_now = last_uses.borrow_and_update().clone();
            let new = Some(Arc::new(Known { images, platform: Some(facts), last_uses: last_uses_now }));
            known.send_if_modified(|old| {
                let news = *old != new;
                *old = new;
                news
            });
            let open = tokio::select! {
                biased;
                open = booked.changed() => open,
                open = contents.changed() => open,
                open = last_uses.changed() => open,
            };
            if open.is_err() {
                return;
            }
        }
    }

    /// What the bookkeeping says now, and the images that runs have read.
    pub(crate) async fn read_books(&self, lease: &mut Lease) -> Result<Booked, String> {
        // Damage is a state of the platform that people must be told of; that the server is away is not.
        let books = match Books::of(&self.cluster).await {
            Ok(books) => books,
            Err(error) => {
                let unread = matches!(lease.peek().await, Err(ClusterError::Unreachable { .. }));
                if unread {
                    return Err(error.to_string());
                }
                let problem = Some(error.to_string());
                let facts = PlatformFacts { problem, ..PlatformFacts::default() };
                return Ok(Booked { facts, images: KnownImages::new() });
            }
        };
        let holder = lease.peek().await.map_err(|error| error.to_string())?;
        let refused = self.refused.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Ok(Booked { facts: facts(&books, holder, refused), images: books.images })
    }
}

/// The facts that the bookkeeping gives.
fn facts(books: &Books, holder: Option<String>, refused: Option<LastRun>) -> PlatformFacts {
    let run = books.open.as_ref().map(|open| PlatformRun {
        version: open.version.clone(),
        stage: open.reached.clone(),
        started: open.started.clone(),
        holder: holder.clone().unwrap_or_default(),
    });
    let held = holder.is_some();
    let removing = books.open.as_ref().is_some_and(|open| open.action == Action::Uninstall);
    let past = books.past.first();
    let before = books.past.get(1);
    let went_back = past.is_some_and(|run| run.action == Action::Rollback && run.outcome == Ended::Finished);
    PlatformFacts {
        installed: books.installed.clone(),
        run,
        goes_back: books.open.as_ref().is_some_and(|open| open.action == Action::Rollback),
        holder,
        last: refused.or_else(|| past.filter(|run| run.action != Action::Uninstall).map(last)),
        rolled_back_because: before
            .filter(|run| went_back && run.outcome == Ended::Stopped)
            .and_then(|run| run.why.clone()),
        stored: books.kept.iter().cloned().collect(),
        components: books.components.clone(),
        problem: if removing {
            Some(
                "the platform is being taken away and that has not ended; `scantling uninstall` goes on with it"
                    .to_owned(),
            )
        } else {
            // Whoever continues it holds the lease before the note is gone.
            books.open.as_ref().filter(|open| open.paused && !held).map(paused)
        },
    }
}

/// Why nobody but a person goes on with a run.
fn paused(open: &OpenRun) -> String {
    let what = match open.action {
        Action::Upgrade => "`scantling upgrade` goes on with it, `scantling rollback` goes back",
        Action::Rollback => "`scantling rollback` goes on with it",
        Action::Uninstall => "`scantling uninstall` goes on with it",
    };
    format!("{} has stopped the {} of {}; {what}", open.holder, open.action, open.version)
}

fn last(run: &PastRun) -> LastRun {
    LastRun {
        kind: if run.action == Action::Rollback { RunKind::Rollback } else { RunKind::Upgrade },
        version: run.version.clone(),
        from: run.from.clone(),
        outcome: match run.outcome {
            Ended::Finished => Outcome::Succeeded,
            Ended::Stopped => {
                Outcome::Stopped { stage: String::new(), why: run.why.clone().unwrap_or_default() }
            }
        },
        ended: run.ended.clone(),
        promises: run.promises.clone(),
    }
}
