//! A lease: at most one holder at a time, by the rules of client-go's leader election.
//!
//! # Flow
//! Whoever wants the lease calls [`Lease::try_acquire`] every few seconds until it answers [`Held::Mine`], then
//! [`Lease::renew`] in time, or lets [`Lease::keep`] do so beside its work.
//!
//! # Guarantees
//! - Nobody takes a lease from a holder whose renewals arrive: it is taken over only after it has not changed for its
//!   whole duration *as seen from here*.
//! - Every write names the resource version that was read, so of two that take it at the same moment one is refused.
//! - A holder that cannot renew stops believing in its lease before others may take it ([`Lease::trusted_until`]).
//!
//! # Assumptions
//! Clocks of different machines run equally fast. They need not show the same time: times written by others are shown
//! to people and decide nothing.
//!
//! # Caveats
//! A newcomer waits a whole duration for a holder that died, since it cannot know how long it has been dead.
//!
//! # Errors
//! [`ClusterError`] when the API server could not be asked. The lease then belongs to whom it belonged before.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use scantling_api::{GroupVersionKind, object};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::clock::Clock;
use crate::cluster::{Cluster, Write};
use crate::error::ClusterError;
use crate::served::{Resource, Served};

/// What a released lease lasts: nobody holds it, and the field must be positive.
const RELEASED_SECONDS: i64 = 1;
/// The longest duration of another holder that is believed: a record that says more would keep everybody out for good.
const LONGEST: Duration = Duration::from_hours(1);
/// A lease is renewed three times in its duration, so that two renewals may fail.
const RENEWALS: u32 = 3;

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// This holder.
    Mine,
    /// Another one.
    By {
        /// Its name.
        holder: String,
        /// When it may be taken over if it isn't renewed until then, by our clock.
        expires: Timestamp,
    },
}

/// What was last read or written.
#[derive(Debug, Clone)]
struct Record {
    uid: String,
    version: String,
    holder: String,
    duration: Duration,
    transitions: u64,
    acquired: Option<String>,
    renewed: Option<String>,
    /// When this state was seen here for the first time.
    seen: Instant,
}

impl Record {
    fn of(object: &Value, seen: Instant) -> Self {
        let text = |field: &str| object.pointer(field).and_then(Value::as_str).map(ToOwned::to_owned);
        let number = |field: &str| object.pointer(field).and_then(Value::as_u64);
        let seconds = number("/spec/leaseDurationSeconds").unwrap_or_default();
        Self {
            uid: object::uid(object).to_owned(),
            version: object::resource_version(object).to_owned(),
            holder: text("/spec/holderIdentity").unwrap_or_default(),
            duration: Duration::from_secs(seconds).min(LONGEST),
            transitions: number("/spec/leaseTransitions").unwrap_or_default(),
            acquired: text("/spec/acquireTime"),
            renewed: text("/spec/renewTime"),
            seen,
        }
    }

    /// The same claim as another record: labels and the like may have changed in between.
    fn is_same_claim(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.holder == other.holder
            && self.renewed == other.renewed
            && self.transitions == other.transitions
    }
}

/// A lease as one possible holder sees it.
#[derive(Debug)]
pub struct Lease {
    cluster: Cluster,
    resource: Resource,
    served: Served,
    namespace: String,
    name: String,
    holder: String,
    duration: Duration,
    clock: Clock,
    record: Option<Record>,
    /// Until when nobody else may have taken it; none when it is not ours.
    trusted: Option<Instant>,
    /// Why the last attempt to renew it failed; none if it was answered.
    failed: Option<ClusterError>,
}

impl Cluster {
    /// A lease for one possible holder, which must be called differently from every other. Nothing is asked yet; the
    /// namespace must exist before it is acquired. `duration` is counted in whole seconds, at least one.
    pub fn lease(
        &self,
        namespace: &str,
        name: &str,
        holder: &str,
        duration: Duration,
        clock: Clock,
    ) -> Lease {
        // Every server has this kind, so that discovery need not be waited for.
        let resource = Resource {
            gvk: GroupVersionKind::new("coordination.k8s.io", "v1", "Lease"),
            plural: "leases".to_owned(),
            namespaced: true,
            verbs: Vec::new(),
        };
        Lease {
            cluster: self.clone(),
            served: Served::only(resource.clone()),
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            holder: holder.to_owned(),
            duration: Duration::from_secs(duration.as_secs().max(1)),
            clock,
            record: None,
            trusted: None,
            failed: None,
        }
    }
}

impl Lease {
    /// Takes the lease if nobody holds it, if its holder has not renewed it in time, or if it is ours.
    ///
    /// # Errors
    /// When the server cannot be asked. `NotFound` if the namespace does not exist.
    pub async fn try_acquire(&mut self) -> Result<Held, ClusterError> {
        let asked = Instant::now();
        let found = self.cluster.get(&self.resource, Some(&self.namespace), &self.name).await?;
        let Some(found) = found else {
            self.record = None;
            let mut object = self.stub();
            object["spec"] = self.spec(0, None);
            return match self.cluster.write(&self.served, &Write::Create { object }).await {
                Ok(written) => Ok(self.took(&written.object, asked)),
                Err(ClusterError::AlreadyExists { .. }) => self.look().await,
                Err(error) => Err(error),
            };
        };
        self.saw(&found);
        let Some(record) = self.record.clone() else { return Ok(Held::Mine) };
        if let Some(other) = self.held_by_other(&record) {
            return Ok(other);
        }
        self.write_claim(&record, asked).await
    }

    /// Who holds it, without wanting it; none when nobody does, or its holder has not renewed it for its whole duration as
    /// seen from here.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn peek(&mut self) -> Result<Option<String>, ClusterError> {
        match self.cluster.get(&self.resource, Some(&self.namespace), &self.name).await? {
            Some(found) => self.saw(&found),
            None => self.record = None,
        }
        let Some(record) = &self.record else { return Ok(None) };
        if record.holder == self.holder {
            return Ok(Some(record.holder.clone()).filter(|holder| !holder.is_empty()));
        }
        Ok(match self.held_by_other(record) {
            Some(Held::By { holder, .. }) => Some(holder),
            _ => None,
        })
    }

    /// Renews a lease that is ours, with one request as long as nobody else has written to it.
    ///
    /// # Errors
    /// When the server cannot be asked; it may still be ours, see [`Lease::trusted_until`].
    pub async fn renew(&mut self) -> Result<Held, ClusterError> {
        match self.record.clone() {
            Some(record) if record.holder == self.holder => self.write_claim(&record, Instant::now()).await,
            _ => self.try_acquire().await,
        }
    }

    /// Gives the lease back, if it is ours, so that the next one need not wait.
    ///
    /// # Errors
    /// When the server cannot be asked; the lease then ends by itself.
    pub async fn release(&mut self) -> Result<(), ClusterError> {
        self.trusted = None;
        let Some(record) = self.record.take().filter(|record| record.holder == self.holder) else {
            return Ok(());
        };
        let patch = json!({
            "metadata": {"uid": record.uid, "resourceVersion": record.version},
            "spec": {
                "holderIdentity": "", "leaseDurationSeconds": RELEASED_SECONDS, "renewTime": self.now(),
            },
        });
        match self.patch(patch).await {
            // Somebody has it already, or has deleted it.
            Ok(_) | Err(ClusterError::Moved { .. } | ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Until when nobody else can have taken the lease; none when it is not ours. Whoever could not renew it must have
    /// stopped by then.
    pub fn trusted_until(&self) -> Option<Instant> {
        self.trusted
    }

    /// Why it could not be renewed when that was last tried while it was kept; none if the server answered.
    pub fn failed(&self) -> Option<&ClusterError> {
        self.failed.as_ref()
    }

    /// The name under which this one holds it.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Renews the lease in time for as long as it is polled. Ends when it has been lost, saying why; the work that it
    /// protects must then end.
    pub async fn keep(&mut self) -> String {
        let every = self.duration / RENEWALS;
        loop {
            sleep(every).await;
            loop {
                let Some(until) = self.trusted else { return "it is not held".to_owned() };
                // One renewal that hangs must not use up the time of the next.
                let longest = until.saturating_duration_since(Instant::now()).min(every);
                let (why, error) = match timeout(longest, self.renew()).await {
                    Ok(Ok(Held::Mine)) => {
                        self.failed = None;
                        break;
                    }
                    Ok(Ok(Held::By { holder, .. })) => {
                        self.failed = None;
                        return format!("{holder} has taken it");
                    }
                    Ok(Err(error)) => (error.to_string(), error),
                    Err(_) => {
                        let what = format!("renew lease {}/{}", self.namespace, self.name);
                        let message = "it does not come in time".to_owned();
                        let why = "the API server does not answer in time".to_owned();
                        (why, ClusterError::Unreachable { what, message })
                    }
                };
                self.failed = Some(error);
                let pause = self.cluster.jitter().around(every / 5);
                if Instant::now() + pause >= until {
                    self.trusted = None;
                    return format!("it could not be renewed: {why}");
                }
                sleep(pause).await;
            }
        }
    }

    /// Reads it without wanting it.
    async fn look(&mut self) -> Result<Held, ClusterError> {
        let found = self.cluster.get(&self.resource, Some(&self.namespace), &self.name).await?;
        if let Some(found) = found {
            self.saw(&found);
        }
        let record = self.record.clone().ok_or_else(|| ClusterError::Moved {
            what: format!("acquire lease {}/{}", self.namespace, self.name),
            message: "it is created and deleted again and again".to_owned(),
        })?;
        // Whatever it says now, the next attempt decides.
        Ok(self
            .held_by_other(&record)
            .unwrap_or(Held::By { holder: record.holder.clone(), expires: self.clock.now() }))
    }

    fn held_by_other(&self, record: &Record) -> Option<Held> {
        if record.holder.is_empty() || record.holder == self.holder {
            return None;
        }
        let left = (record.seen + record.duration).checked_duration_since(Instant::now())?;
        if left.is_zero() {
            return None;
        }
        let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::ZERO);
        let expires = self.clock.now().saturating_add(left).unwrap_or(Timestamp::MAX);
        Some(Held::By { holder: record.holder.clone(), expires })
    }

    fn saw(&mut self, object: &Value) {
        let mut new = Record::of(object, Instant::now());
        if let Some(known) = self.record.as_ref().filter(|known| known.is_same_claim(&new)) {
            new.seen = known.seen;
        }
        if new.holder != self.holder {
            self.trusted = None;
        }
        self.record = Some(new);
    }

    fn took(&mut self, object: &Value, asked: Instant) -> Held {
        self.record = Some(Record::of(object, Instant::now()));
        // Counted from before the request: others count from when they see its effect, which is later.
        self.trusted = Some(asked + self.duration);
        Held::Mine
    }

    async fn write_claim(&mut self, record: &Record, asked: Instant) -> Result<Held, ClusterError> {
        match self.patch(self.claim(record)).await {
            Ok(object) => Ok(self.took(&object, asked)),
            Err(ClusterError::Moved { .. }) => {
                let held = self.look().await?;
                match self.record.clone().filter(|now| now.holder == self.holder) {
                    // A label or the like has changed: the claim is ours still, and is renewed on what is there now.
                    // Once, not any number of times: somebody who writes to it all the time must not hold us here.
                    Some(now) => {
                        let object = self.patch(self.claim(&now)).await?;
                        Ok(self.took(&object, asked))
                    }
                    None => Ok(held),
                }
            }
            // Deleted, or another one of this name.
            Err(ClusterError::NotFound { .. } | ClusterError::Invalid { .. }) => {
                self.trusted = None;
                self.record = None;
                self.look().await
            }
            Err(error) => Err(error),
        }
    }

    /// The patch that claims the lease on top of what was read.
    fn claim(&self, record: &Record) -> Value {
        let (transitions, acquired) = if record.holder == self.holder {
            (record.transitions, record.acquired.as_deref())
        } else {
            (record.transitions.saturating_add(1), None)
        };
        json!({
            "metadata": {"uid": record.uid, "resourceVersion": record.version},
            "spec": self.spec(transitions, acquired),
        })
    }

    async fn patch(&self, patch: Value) -> Result<Value, ClusterError> {
        let write = Write::MergePatch { object: self.stub(), subresource: None, patch };
        Ok(self.cluster.write(&self.served, &write).await?.object)
    }

    fn spec(&self, transitions: u64, acquired: Option<&str>) -> Value {
        let now = self.now();
        json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration.as_secs(),
            "acquireTime": acquired.unwrap_or(&now),
            "renewTime": now,
            "leaseTransitions": transitions,
        })
    }

    /// `apiVersion`, `kind` and name.
    fn stub(&self) -> Value {
        json!({
            "apiVersion": self.resource.gvk.api_version(), "kind": self.resource.gvk.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
        })
    }

    /// The time as `MicroTime` is written: always six digits.
    fn now(&self) -> String {
        format!("{:.6}", self.clock.now())
    }
}
