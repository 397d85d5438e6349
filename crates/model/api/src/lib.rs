//! What Kubernetes' API looks like: kinds and their names, the identity of objects, the types of their fields.
//!
//! The facts about Kubernetes are generated from its own discovery and `OpenAPI` documents (`cargo xtask api`); those
//! about OpenShift are a thin table typed by hand from its API's source. Values stay `serde_json::Value`; `object`
//! reads the parts that every kind has.

mod facts;
mod kind;
mod kinds;
pub mod kserve;
pub mod object;
pub mod schema;
mod wire;

pub use kind::{GroupVersionKind, KeyError, ObjectKey};
pub use kinds::{FactsError, GroupFacts, KindFacts, Kinds, Subresource};
pub use wire::{Wire, WireField, WireMessage};
