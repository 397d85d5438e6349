//! What the cluster's bookkeeping says of runs, kept up to date for the reconcilers.

use std::sync::Arc;
use std::time::Duration;

use scantling_api::GroupVersionKind;
use scantling_cluster::{Changes, ClusterError, Lease, Resource};
use scantling_observed::PlatformRun;
use scantling_reconcile::{Known, KnownImages, LastRun, Outcome, PlatformFacts, RunKind};
use scantling_run::{Action, Books, Ended, OpenRun, PastRun, SYSTEM_NAMESPACE};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::known::{Contents, Seen, contents_of};
use crate::operator::Operator;
use crate::told::Told;

/// The bookkeeping is read again after this time even if nothing has told of a change.
const AT_LEAST: Duration = Duration::from_mins(10);
/// Changes come in groups: what follows so soon is read along with the first.
const TOGETHER: Duration = Duration::from_millis(300);
/// How long a lease that is not renewed is looked at for its end.
const LEASE_LOOK: Duration = Duration::from_secs(16);
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

    /// Reads the bookkeeping and sends what it says, whenever it changes, for as long as it is polled.
    pub(crate) async fn keep_books(
        &self,
        known: &watch::Sender<Option<Arc<Known>>>,
        mut seen: watch::Receiver<Option<Seen>>,
    ) {
        let mut changes = self.book_changes();
        let mut lease = self.run_lease();
        let mut contents = Contents::default();
        // What runs must be known before anything is decided about it.
        if seen.wait_for(Option::is_some).await.is_err() {
            return;
        }
        loop {
            let now = seen.borrow_and_update().clone().unwrap_or_default();
            let mut again = Instant::now() + AT_LEAST;
            match self.read_books(&mut lease).await {
                Ok((facts, images)) => {
                    let images = self.with_contents(&mut contents, &now, &images).await;
                    again = again.min(contents.next_due().unwrap_or(again));
                    if facts.holder.is_some() {
                        again = again.min(Instant::now() + LEASE_LOOK);
                    }
                    let new = Some(Arc::new(Known { images, platform: Some(facts) }));
                    known.send_if_modified(|old| {
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
                open = seen.changed() => if open.is_err() { return },
                () = sleep_until(again) => {}
            }
            sleep(TOGETHER).await;
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

    async fn with_contents(&self, contents: &mut Contents, seen: &Seen, images: &KnownImages) -> KnownImages {
        let missing = contents.missing(seen, images);
        if !missing.is_empty() {
            match (self.registries)().await {
                Ok(registry) => {
                    for image in missing {
                        let read = contents_of(&registry, &image, &seen.shown).await;
                        if let Some(why) = contents.took(image.clone(), read) {
                            self.tell(Told::ImageUnread { image: image.to_string(), why });
                        }
                    }
                }
                Err(why) => self.tell(Told::ImageUnread { image: "any".to_owned(), why }),
            }
        }
        contents.with(images)
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
        promises: run.promises.clone(),
    }
}
