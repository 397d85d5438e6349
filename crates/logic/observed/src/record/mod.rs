//! Pods and nodes in few bytes.
//!
//! A big cluster has 150,000 pods, and a tree of JSON values costs ten kilobytes for each of them, even when most of its fields are gone.
//! A record holds what decisions about images need, and texts that come again and again are held once ([`Names`]).
//!
//! Wire forms ([`PodWire`], [`NodeWire`]) read exactly these fields and step over all others, whatever they are read from.

mod names;
mod node;
mod pod;
mod store;
mod wire;

pub use names::{Names, Text};
pub use node::{NodeImageRecord, NodeRecord, NodeWire};
pub use pod::{ContainerRecord, ImageVolume, OwnerRecord, PodRecord, PodWire, RunState};
pub use store::RecordError;
