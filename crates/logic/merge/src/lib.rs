//! Server-side apply, field ownership and the patch kinds of the Kubernetes API.
//!
//! Everything is a function of JSON values, a [`Schema`](scantling_api::schema::Schema) and a time that the
//! caller gives: [`apply`](apply()) and [`update`](update()) produce the object a server would keep, with its
//! `managedFields`; [`merge_patch`], [`json_patch`] and [`strategic_merge_patch`] produce the object that a
//! patch makes of a live one, which is then given to [`update`](update()). [`field_owners`] and
//! [`owner_of`] answer who owns what.

mod apply;
mod at;
mod compare;
mod error;
mod extract;
mod last_applied;
mod managers;
mod normalize;
mod overlay;
mod owners;
mod ownership;
mod patch;
mod path;
mod quantity;
mod reconcile;
mod remove;
mod request;
mod set;
mod shape;
mod strategic;
mod update;
mod validate;
mod value;

pub use apply::apply;
pub use at::{remove_at, value_at, value_at_mut};
pub use compare::Comparison;
pub use error::{Conflict, MergeError};
pub use managers::Operation;
pub use owners::{Owner, field_owners, leaves_of, owner_of};
pub use patch::{json_patch, merge_patch};
pub use path::{Element, KeyValue, MAX_DEPTH, Path, PathError};
pub use request::{Request, Store};
pub use set::{FieldSet, FieldSetError};
pub use strategic::strategic_merge_patch;
pub use update::update;
pub use validate::Misfit;
