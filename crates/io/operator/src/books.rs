//! What the cluster's bookkeeping says of runs, kept up to date for the reconcilers.

use std::sync::Arc;
use std::time::Duration;

use scantling_api::GroupVersionKind;
use scantling_cluster::{Changes, ClusterError, Lease, Resource};
use scantling_observed::PlatformRun;
use scantling_reconcile::{Known, KnownImages, LastRun, Outcome, PlatformFacts, RunKind};
use scantling_run::{Action, Books, Ended, PastRun, SYSTEM_NAMESPACE};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::known::{PATIENCE, Seen, contents_of};
use crate::operator::Operator;
use crate::told::Told;

/// The bookkeeping is read again after this time even if nothing has told of a change.
const AT_LEAST: Duration = Duration::from_mins(10);
/// Changes come in groups: what follows so soon is read along with the first.
const TOGETHER: Duration = Duration::from_millis(300);
/// How long a lease that is not renewed is looked at for its end.
const LEASE_LOOK: Duration = Duration::from_secs(16);
/// How long the first decisions wait for contents of images.
const FIRST_CONTENTS: Duration = Duration::from_secs(20);
/// The pause after the bookkeeping could not be read.
const AGAIN: Duration = Duration::from_secs(5);

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

    /// Reads the bookkeeping and sends what is known, whenever it changes, for as long as it is polled.
    pub(crate) async fn keep_books(
        &self,
        known: &watch::Sender<Option<Arc<Known>>>,
        mut seen: watch::Receiver<Option<Seen>>,
    ) {
        let mut changes = self.book_changes();
        let mut lease = self.run_lease();
        // What runs must be known before anything is decided about it.
        if seen.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let mut books: Option<(PlatformFacts, KnownImages)> = None;
        let mut first = true;
        loop {
            let mut again = Instant::now() + AT_LEAST;
            match self.read_books(&mut lease).await {
                Ok((facts, images)) => {
                    if facts.holder.is_some() {
                        again = again.min(Instant::now() + LEASE_LOOK);
                    }
                    self.learned.images_of_runs(images.clone());
                    books = Some((facts, images));
                }
                Err(why) => {
                    self.tell(Told::BooksUnread { why });
                    again = Instant::now() + self.cluster.jitter().around(AGAIN);
                }
            }
            if std::mem::take(&mut first) {
                // Images that no run has read: what is said about them first is said again otherwise a little later.
                let _ = timeout(FIRST_CONTENTS, self.learned.nothing_is_read()).await;
            }
            loop {
                if let Some((facts, images)) = &books {
                    let new = Some(Arc::new(self.learned.known(facts.clone(), images)));
                    known.send_if_modified(|old| {
                        let news = *old != new;
                        *old = new;
                        news
                    });
                }
                tokio::select! {
                    biased;
                    () = changes.next() => break,
                    () = self.books_changed.notified() => break,
                    () = self.learned.something() => {}
                    () = sleep_until(again) => break,
                }
            }
            sleep(TOGETHER).await;
        }
    }

    /// Reads the contents of images that run and that no run has read, one after the other, for as long as it is polled. Nobody waits for it:
    /// registries may be slow, or away.
    pub(crate) async fn read_contents(&self, mut seen: watch::Receiver<Option<Seen>>) {
        loop {
            let now = seen.borrow_and_update().clone().unwrap_or_default();
            let Some(image) = self.learned.next_image(&now) else {
                let due = self.learned.next_due().unwrap_or_else(|| Instant::now() + AT_LEAST);
                tokio::select! {
                    biased;
                    open = seen.changed() => if open.is_err() { return },
                    () = self.learned.images_changed() => {}
                    () = sleep_until(due) => {}
                }
                continue;
            };
            let read = async {
                let registry = (self.registries)().await?;
                contents_of(&registry, &image, &now.shown).await
            };
            let silent = || format!("it was not read within {} seconds", PATIENCE.as_secs());
            let read = timeout(PATIENCE, read).await.unwrap_or_else(|_| Err(silent()));
            if let Some(why) = self.learned.took(image.clone(), read) {
                self.tell(Told::ImageUnread { image: image.to_string(), why });
            }
        }
    }

    /// What the bookkeeping says now, and the images that runs have read.
    pub(crate) async fn read_books(&self, lease: &mut Lease) -> Result<(PlatformFacts, KnownImages), String> {
        // Damage is a state of the platform that people must be told of; that the server is away is not.
        let books = match Books::of(&self.cluster).await {
            Ok(books) => books,
            Err(error) => {
                let unread = matches!(lease.peek().await, Err(ClusterError::Unreachable { .. }));
                if unread {
                    return Err(error.to_string());
                }
                let problem = Some(error.to_string());
                return Ok((PlatformFacts { problem, ..PlatformFacts::default() }, KnownImages::new()));
            }
        };
        let holder = lease.peek().await.map_err(|error| error.to_string())?;
        let refused = self.refused.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Ok((facts(&books, holder, refused), books.images))
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
        problem: removing.then(|| {
            "the platform is being taken away and that has not ended; `scantling uninstall` goes on with it".to_owned()
        }),
    }
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
        promises: run.promises.clone(),
    }
}
