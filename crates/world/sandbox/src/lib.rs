//! A deterministic cluster in the process: a Kubernetes API, controllers, nodes with image caches, a registry.
//!
//! A discrete-event simulation: [`World::handle`] answers a request at once, [`World::run_until`] moves the virtual
//! clock and does what is due. No threads, no wall clock, no sockets; everything random comes from the seed, so the
//! same seed and the same requests give the same bytes of [`trace`](World::trace).
//!
//! | part | modelled | not modelled |
//! |---|---|---|
//! | nodes | pull policies, tags and digests, `imageID`, credentials of cached images, mirrors, platforms, failures and waits with the runtimes' words, disk and its collection, probes by time, init containers, sidecars, restarts, grace periods | what programs do (see `node/process.rs`), `preStop` hooks, image volumes, eviction for lack of memory |
//! | workloads | Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet`, Job, disruption budgets, claims, endpoint slices, garbage collection, namespaces, nodes that go silent | autoscaling, `CronJob`, adoption of bare pods, preemption, pod affinity, preferred affinity |
//! | image streams | import with both modes, history, tags of tags, failures, schedules, the registry in the cluster, short names | signatures, pruning, pull-through later than the import |
//! | builds | chains by image changes, run policies, histories, failures | builder pods, webhooks, inline sources |
//!
//! The pull rules are those that a kubelet 1.35 with containerd 1.6 showed; its transcript is a test
//! (`tests/stale_tag.rs`).

mod access;
mod api;
mod bootstrap;
mod controllers;
mod distribution;
mod faults;
mod ids;
mod node;
mod openshift;
mod queue;
mod store;
#[cfg(test)]
mod tests;
mod time;
pub mod trace;
mod value;
mod world;

pub use api::{Reply, WatchChunk, WatchId};
pub use faults::{ApiFaults, Faults, Lost};
pub use node::admin::NodeError;
pub use node::{CachedImage, NodeConfig};
pub use time::Time;
pub use trace::{TraceEvent, What};
pub use world::{BuildRecipe, Flavour, World, WorldConfig};
