//! The driver: watch → cache → ordered queue → reconcile → write.
//!
//! A reconciler is a pure function from everything that is known to the writes that are missing. The driver keeps the
//! known up to date, calls the reconcilers in their order, and makes their writes one after the other. It is the same
//! for a rehearsal and for a real cluster: one future, polled by whoever awaits it, no task of its own, every order
//! fixed, every wait drawn from a seed.

mod attempts;
mod cache;
mod changes;
mod kind_watch;
mod named;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::stream::StreamExt as _;
use jiff::Timestamp;
use scantling_api::{GroupVersionKind, ObjectKey};
use scantling_observed::Observed;
use scantling_reconcile::{Action, Context, FIELD_SELECTORS, Interest, Known, Met, Reconciler};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;
use crate::cluster::{Cluster, Write};
use crate::error::ClusterError;
use crate::served::Served;

use attempts::{Attempt, Attempts, Refused};
use cache::Cache;
pub use changes::Changes;
use kind_watch::KindWatch;
use named::Named;

/// Reconcilers are asked again after this time even if nothing has changed: what they decide may depend on the time,
/// and a kind that was not served may be by now.
const RESYNC: Duration = Duration::from_mins(1);
/// Every kind is listed anew after at most this time, at a moment of its own: what a watch should have told and did not is known then.
const LIST_AGAIN: Duration = Duration::from_mins(30);
/// Objects that are read by name at the same time.
const NAMED_AT_A_TIME: usize = 8;
/// Writes of one pass. What is beyond is asked for again in the next pass; a pass that long would hide changes.
const WRITES_PER_PASS: usize = 1000;

/// What a driver is told.
#[derive(Clone)]
pub struct DriveSettings<'a> {
    /// The reconcilers, in the order in which they are called.
    pub reconcilers: &'a [Reconciler],
    /// The namespace of the platform.
    pub namespace: &'a str,
    /// What is known besides the cluster. Nothing is decided before there is something; whenever something else is sent, the
    /// reconcilers are asked again.
    pub known: watch::Receiver<Option<Arc<Known>>>,
    /// Is shown the cluster whenever it is known whole and has changed, before anything is decided.
    pub look: &'a dyn Fn(&Observed),
    /// The clock whose time reconcilers are told.
    pub clock: Clock,
}

impl std::fmt::Debug for DriveSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.reconcilers.iter().map(|reconciler| reconciler.name).collect();
        f.debug_struct("DriveSettings").field("reconcilers", &names).finish_non_exhaustive()
    }
}

/// Something that the driver did or met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: Driven,
}

/// What the driver did or met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Driven {
    /// Every kind that is served has been listed.
    Synced {
        /// Objects known.
        objects: usize,
    },
    /// A write was made.
    Wrote {
        /// Verb and object.
        write: String,
    },
    /// A write failed and is tried again later, if it is still wanted then.
    Failed {
        /// Verb and object.
        write: String,
        /// Why.
        why: String,
        /// Seconds until it is tried again.
        again_in_seconds: u64,
    },
    /// The same write was asked for again and again although it succeeded: somebody else undoes it.
    Fought {
        /// Verb and object.
        write: String,
        /// Seconds until it is tried again.
        again_in_seconds: u64,
    },
    /// A watch broke and is opened again.
    WatchBroken {
        /// The kind.
        watched: GroupVersionKind,
        /// Why.
        why: String,
    },
    /// The server did not say which kinds it serves; those that were known are kept, and it is asked again later.
    KindsUnknown {
        /// Why.
        why: String,
    },
    /// An object that is read by name could not be read; it is tried again.
    Unread {
        /// The object.
        object: String,
        /// Why.
        why: String,
    },
    /// A reconciler was asked.
    Reconciled {
        /// Its name.
        reconciler: &'static str,
        /// How many writes it wants.
        wants: usize,
    },
    /// More writes were asked for than one pass makes.
    Postponed {
        /// How many wait for the next pass.
        writes: usize,
    },
}

impl Cluster {
    /// Keeps a cluster as the reconcilers want it, until `until` ends.
    ///
    /// # Flow
    /// 1. watch every kind that a reconciler reads and the server serves;
    /// 2. take in all changes that have arrived; 3. when every kind has been listed once, ask the reconcilers in
    ///    their order; 4. make the writes in the order given, leaving out objects that wait after a failure;
    ///    5. the answers of writes count as seen at once; 6. go on with 2 when something has changed or is due.
    ///
    /// # Guarantees
    /// Writes are made one at a time. A write that failed waits, with a growing and seeded pause, and so do those that come after it for the
    /// sake of the same object, and no others; what the server said is told to the reconcilers. Nothing is decided before every kind has
    /// been listed. What is not known is asked for before it is made. Of kinds that are read by name, nothing but what is named is read.
    ///
    /// # Errors
    /// When the server cannot even be asked which kinds it serves. Everything later is an event, not an end.
    pub async fn drive(
        &self,
        settings: &DriveSettings<'_>,
        tell: &mut dyn FnMut(DriveEvent),
        until: impl Future<Output = ()>,
    ) -> Result<(), ClusterError> {
        let mut until = pin!(until);
        let mut driver = Driver {
            cluster: self,
            settings,
            tell,
            served: self.served().await?,
            watches: Vec::new(),
            cache: Cache::default(),
            interest: Interest::default(),
            chosen: false,
            choose: false,
            attempts: Attempts::new(self.jitter().clone()),
            named: Named::default(),
            synced: false,
            known: settings.known.clone(),
        };
        driver.watch_served();
        let mut resync = Instant::now() + RESYNC;
        loop {
            let due = driver.attempts.next_due().map_or(resync, |due| due.min(resync));
            tokio::select! {
                biased;
                () = &mut until => return Ok(()),
                () = driver.take_in() => {}
                () = sleep_until(due) => {
                    if Instant::now() >= resync {
                        resync = Instant::now() + RESYNC;
                        driver.refresh_served().await;
                        driver.list_again();
                    }
                }
            }
            if driver.is_synced() && driver.pass().await {
                // The answers of the writes have changed what is known: look again at once, but let changes that have
                // arrived in the meantime, and the end, come first.
                driver.attempts.wake();
            }
        }
    }
}

struct Driver<'a> {
    cluster: &'a Cluster,
    settings: &'a DriveSettings<'a>,
    tell: &'a mut dyn FnMut(DriveEvent),
    served: Served,
    watches: Vec<KindWatch>,
    cache: Cache,
    interest: Interest,
    /// Whether the watches of kinds of which only some objects are looked at have been opened.
    chosen: bool,
    /// Whether what they look at may have changed.
    choose: bool,
    attempts: Attempts,
    named: Named,
    synced: bool,
    known: watch::Receiver<Option<Arc<Known>>>,
}

impl Driver<'_> {
    fn tell(&mut self, what: Driven) {
        (self.tell)(DriveEvent { at: self.settings.clock.now(), what });
    }

    /// Opens a watch for every kind that is read, is served and is not watched yet, of those of which all objects are read.
    fn watch_served(&mut self) {
        for gvk in self.read(false) {
            self.watch(&gvk);
        }
    }

    /// Opens the watches of kinds of which only some objects are looked at. The others say which, so they must be known
    /// first; when they say something new, all objects are looked through anew.
    fn watch_chosen(&mut self) {
        if !self.watches.iter().filter(|w| !is_chosen_from(w.gvk())).all(KindWatch::is_listed) {
            return;
        }
        self.choose = false;
        let interest = Interest::of(self.cache.observed());
        let again = !self.chosen || !self.interest.covers(&interest);
        self.interest = interest;
        if again {
            self.watches.retain(|w| !is_chosen_from(w.gvk()));
        }
        for gvk in self.read(true) {
            self.watch(&gvk);
        }
        self.chosen = true;
    }

    /// The kinds that reconcilers read.
    fn read(&self, chosen_from: bool) -> BTreeSet<GroupVersionKind> {
        let watched = self.settings.reconcilers.iter().flat_map(|reconciler| reconciler.watches);
        watched
            .map(|(group, version, kind)| GroupVersionKind::new(*group, *version, *kind))
            .filter(|gvk| is_chosen_from(gvk) == chosen_from)
            .collect()
    }

    fn watch(&mut self, gvk: &GroupVersionKind) {
        if self.watches.iter().any(|w| w.gvk() == gvk) {
            return;
        }
        let Some(watch) = self.open(gvk) else { return };
        self.watches.push(watch);
        self.synced = false;
    }

    fn open(&self, gvk: &GroupVersionKind) -> Option<KindWatch> {
        let resource = self.served.by_gvk(gvk)?;
        let narrowed =
            FIELD_SELECTORS.iter().find(|(group, kind, _)| *group == gvk.group && *kind == gvk.kind);
        let fields = narrowed.map(|(.., fields)| *fields);
        let (client, jitter) = (self.cluster.client().clone(), self.cluster.jitter().clone());
        let mut watch = KindWatch::open(client, resource, None, fields, jitter);
        watch.list_again_after(self.cluster.jitter().around(LIST_AGAIN));
        Some(watch)
    }

    /// Lists kinds anew whose time has come. What is known stays known meanwhile.
    fn list_again(&mut self) {
        let due: Vec<GroupVersionKind> =
            self.watches.iter().filter(|w| w.is_due()).map(|w| w.gvk().clone()).collect();
        for gvk in due {
            let Some(mut anew) = self.open(&gvk) else { continue };
            if let Some(watch) = self.watches.iter_mut().find(|w| *w.gvk() == gvk) {
                anew.continues(watch);
                *watch = anew;
            }
        }
    }

    async fn refresh_served(&mut self) {
        match self.cluster.served().await {
            Ok(served) => {
                self.served = served;
                self.watch_served();
            }
            Err(error) => self.tell(Driven::KindsUnknown { why: error.to_string() }),
        }
    }

    /// Waits until something is known that was not, then takes in all that has arrived.
    async fn take_in(&mut self) {
        let mut taken = false;
        let mut known = self.known.clone();
        let mut learned = pin!(async {
            // Nobody is left who could learn something.
            if known.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        std::future::poll_fn(|cx| {
            taken |= learned.as_mut().poll(cx).is_ready();
            let mut broken = Vec::new();
            for watch in &mut self.watches {
                while let Poll::Ready(change) = watch.poll_change(cx) {
                    match change {
                        Ok(change) => {
                            let gvk = watch.gvk();
                            let news = self.cache.take(gvk, change, &self.interest);
                            taken |= news;
                            self.choose |= news && Interest::depends_on(&gvk.group, &gvk.kind);
                        }
                        Err(why) => broken.push(Driven::WatchBroken { watched: watch.gvk().clone(), why }),
                    }
                }
            }
            for what in broken {
                (self.tell)(DriveEvent { at: self.settings.clock.now(), what });
            }
            if taken { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.known.mark_unchanged();
    }

    /// Whether everything that is read is known.
    fn is_synced(&mut self) -> bool {
        if !self.chosen || self.choose {
            self.watch_chosen();
        }
        if !self.synced && self.chosen && self.watches.iter().all(KindWatch::is_listed) {
            self.synced = true;
            let objects = self.cache.observed().len();
            self.tell(Driven::Synced { objects });
        }
        self.synced
    }

    /// Asks all reconcilers and makes their writes. True if they are to be asked again at once.
    async fn pass(&mut self) -> bool {
        (self.settings.look)(self.cache.observed());
        let Some(known) = self.known.borrow_and_update().clone() else { return false };
        self.read_named().await;
        let now = self.settings.clock.now_rfc3339();
        let met = Met { refused: self.attempts.refused(), unread: self.named.unread() };
        let context = Context {
            now: &now,
            namespace: self.settings.namespace,
            images: &known.images,
            platform: known.platform.as_ref(),
            last_uses: &known.last_uses,
            met: &met,
        };
        let reconcilers = self.settings.reconcilers;
        let mut again = false;
        for reconciler in reconcilers {
            let actions = (reconciler.reconcile)(self.cache.observed(), &context);
            self.tell(Driven::Reconciled { reconciler: reconciler.name, wants: actions.len() });
            let wanted = actions.iter().filter_map(|action| Attempt::of(reconciler.name, action)).collect();
            self.attempts.keep_only(reconciler.name, &wanted);
            let postponed = actions.len().saturating_sub(WRITES_PER_PASS);
            if postponed > 0 {
                self.tell(Driven::Postponed { writes: postponed });
            }
            // A reconciler's actions for one object build on each other.
            let mut held_up = BTreeSet::new();
            for action in actions.iter().take(WRITES_PER_PASS) {
                let Some(subject) = action.subject() else { continue };
                if held_up.contains(&subject) {
                    continue;
                }
                match self.act(reconciler.name, action, &subject, &now).await {
                    Acted::Changed => again = true,
                    Acted::Nothing => {}
                    Acted::Waits { news } => {
                        again |= news;
                        // An event may be lost.
                        if !matches!(action, Action::Event { .. }) {
                            held_up.insert(subject);
                        }
                    }
                }
            }
        }
        again
    }

    /// Makes one write, unless it waits.
    async fn act(
        &mut self,
        reconciler: &'static str,
        action: &Action,
        subject: &ObjectKey,
        now: &str,
    ) -> Acted {
        let (Some(attempt), Some(write)) = (Attempt::of(reconciler, action), write_of(action, now)) else {
            return Acted::Nothing;
        };
        if !self.attempts.may_try(&attempt) {
            return Acted::Waits { news: false };
        }
        let told = write.describe();
        let written = match self.look_first(action, &attempt.key).await {
            Ok(true) => return Acted::Changed,
            Ok(false) => self.cluster.write(&self.served, &write).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(written) => {
                let deleted = matches!(action, Action::Delete { .. });
                let changed =
                    self.is_read(&attempt.key) && self.cache.wrote(&attempt.key, written.object, deleted);
                if let Some(again) = self.attempts.succeeded(&attempt, action) {
                    self.tell(Driven::Fought { write: told, again_in_seconds: again.as_secs() });
                } else {
                    self.tell(Driven::Wrote { write: told });
                }
                if changed { Acted::Changed } else { Acted::Nothing }
            }
            // The event has been told before.
            Err(ClusterError::AlreadyExists { .. }) if matches!(action, Action::Event { .. }) => {
                self.attempts.succeeded(&attempt, action);
                Acted::Nothing
            }
            Err(error) => {
                let why = error.to_string();
                let refused =
                    error.is_refusal().then(|| Refused { subject: subject.clone(), why: why.clone() });
                let (again, news) = self.attempts.failed(&attempt, refused);
                self.tell(Driven::Failed { write: told, why, again_in_seconds: again.as_secs() });
                Acted::Waits { news }
            }
        }
    }

    /// Asks for an object that is to be made before it is made: a list may have been older than it, or a change may have got lost, and what
    /// is there is not written to unseen. True if it is there.
    async fn look_first(&mut self, action: &Action, key: &ObjectKey) -> Result<bool, ClusterError> {
        let makes = matches!(action, Action::Apply { .. } | Action::Create { .. });
        if !makes || !self.is_read(key) || self.cache.observed().contains(key) {
            return Ok(false);
        }
        let Some(object) = self.cluster.get_by_key(&self.served, key).await? else { return Ok(false) };
        Ok(self.cache.wrote(key, object, false))
    }

    /// Is a kind kept? What nobody reads is not.
    fn is_read(&self, key: &ObjectKey) -> bool {
        self.watches.iter().any(|w| w.gvk().group == key.group && w.gvk().kind == key.kind)
    }

    /// Reads what reconcilers read by name: what they have not asked for before, and what was read a while ago.
    async fn read_named(&mut self) {
        let reconcilers = self.settings.reconcilers.iter();
        let wanted: BTreeSet<ObjectKey> =
            reconcilers.flat_map(|reconciler| (reconciler.names)(self.cache.observed())).collect();
        for key in self.named.forget_others(&wanted) {
            self.cache.forget(&key);
        }
        let due = self.named.due(&wanted);
        let (cluster, served) = (self.cluster, &self.served);
        let answers: Vec<_> = futures::stream::iter(due)
            .map(|key| async move { (cluster.get_by_key(served, &key).await, key) })
            .buffered(NAMED_AT_A_TIME)
            .collect()
            .await;
        for (answer, key) in answers {
            match answer {
                Ok(Some(object)) => {
                    self.named.was_read(key.clone());
                    self.cache.read(&key, object);
                }
                Ok(None) => {
                    self.named.was_read(key.clone());
                    self.cache.forget(&key);
                }
                Err(error) => {
                    let why = error.to_string();
                    // What is known stays.
                    self.named.was_not_read(key.clone(), &why, self.cache.observed().contains(&key));
                    self.tell(Driven::Unread { object: key.to_string(), why });
                }
            }
        }
    }
}

fn is_chosen_from(gvk: &GroupVersionKind) -> bool {
    Interest::chooses(&gvk.group, &gvk.kind)
}

/// What became of an action.
enum Acted {
    /// What is known has changed.
    Changed,
    Nothing,
    /// What builds on it waits; whether the server has said something new.
    Waits {
        news: bool,
    },
}

/// The request that an action amounts to.
fn write_of(action: &Action, now: &str) -> Option<Write> {
    Some(match action {
        Action::Apply { object, force, .. } => Write::Apply { object: object.clone(), force: *force },
        Action::Create { object, .. } => Write::Create { object: object.clone() },
        Action::Delete { target, .. } => {
            Write::Delete { object: target.stub(), uid: target.uid.clone(), grace_seconds: None }
        }
        Action::PatchStatus { target, .. } => Write::MergePatch {
            object: target.stub(),
            subresource: Some("status".to_owned()),
            patch: action.merge_patch()?,
        },
        Action::Annotate { target, .. } => {
            Write::MergePatch { object: target.stub(), subresource: None, patch: action.merge_patch()? }
        }
        Action::Event { .. } => Write::Create { object: action.event(now)? },
    })
}
