//! A deterministic cluster in the process: a Kubernetes API, controllers, nodes with image caches, a registry.
//!
//! A discrete-event simulation: [`World::handle`] answers a request at once, [`World::run_until`] moves the virtual
//! clock and does what is due. No threads, no wall clock, no sockets; everything random comes from the seed, so the
//! same seed and the same requests give the same bytes of [`trace`](World::trace).

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
