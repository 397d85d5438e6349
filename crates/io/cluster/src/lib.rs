//! A Kubernetes cluster, real or in process: one client, whole objects, typed errors.
//!
//! ```text
//!  kube::Client over any tower service (stack: retries with seeded jitter)
//!        │
//!     Cluster ── served()  which kinds there are
//!        │    ── get, list reads of whole objects
//!        ├────── write()   every change, one request each
//!        ├────── drive()   watch → cache → reconcile → write, for as long as somebody wants
//!        └────── lease()   at most one of several processes does the work
//! ```
//!
//! Nothing here knows what a release is, and nothing asks whether the cluster is a real one.

mod call;
mod clock;
mod cluster;
mod connect;
mod driver;
mod error;
mod lease;
mod page;
mod served;
mod stack;

pub use clock::Clock;
pub use cluster::{Cluster, MANAGER, Write, Written};
pub use connect::{Origin, Place};
pub use driver::{Changes, DriveEvent, DriveSettings, Driven};
pub use error::{ClusterError, FieldConflict};
pub use lease::{Held, Lease};
pub use page::{About, Page};
pub use served::{Resource, Served, Undescribed};
pub use stack::{Jitter, stack};
