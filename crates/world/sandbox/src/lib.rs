//! A deterministic cluster in the process: a Kubernetes API, controllers, nodes with image caches, a registry.

mod api;
mod store;

pub use api::{Reply, WatchChunk, WatchId};
