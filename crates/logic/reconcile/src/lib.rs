//! Pure reconcilers: what a cluster holds in, what to write out.
//!
//! # Flow
//! A driver watches the kinds that a [`Reconciler`] names, keeps them as [`scantling_observed::Observed`], and calls
//! [`Reconciler::reconcile`] after changes. What comes back are [`Action`]s: data, in the order in which to write them.
//!
//! # Guarantees
//! - The same cluster and context give the same actions.
//! - When every action has been written and every other controller has come to rest, reconciling gives no more actions.
//! - Actions can be written any number of times, and a driver may be killed between any two of them.
//! - No reconciler changes the pod template of a notebook that has started; see [`notebook`](NOTEBOOKS).
//!
//! # Assumptions
//! The driver writes the actions of one call in their order. After one that fails it leaves out those that come later for the sake of
//! the same object ([`Action::subject`]), and calls again with what the server said ([`Met`]). An event that fails holds up nothing.
//!
//! # Caveats
//! An action was decided on a picture; it names the uid it saw, so that a new object of the same name is not written to.
//!
//! # Errors
//! There are none: what is wrong with an object becomes a condition on it and an event.

mod action;
mod applied;
mod catalogue;
mod catalogue_use;
mod condition;
mod context;
mod crds;
mod culler;
mod difference;
mod hardware_profile;
mod interest;
mod isolation;
mod marker;
mod notebook;
mod platform;
mod reconciler;
pub mod serving;
mod status_patch;

pub use action::{Action, EventKind, MANAGER, Target};
pub use catalogue::{Catalogue, Entry};
pub use catalogue_use::{CATALOGUE_USE, catalogue_users};
pub use context::{Context, Known, KnownImage, KnownImages, LastUses, Met};
pub use crds::{Column, DEFINITIONS, Definition, Rule, SchemaOf, Scope, problems, schema_of};
pub use culler::CULLER;
pub use difference::difference;
pub use interest::Interest;
pub use isolation::{
    ALLOW_FROM, GATEWAY_LABEL, MAX_ALLOWED, SYSTEM_NAMESPACE, allowed_namespaces, network_policy,
};
pub use marker::MARKER;
pub use notebook::{
    Claimed, DesiredImage, MAX_NAME, NOTEBOOKS, NotebookCondition, NotebookSpec, NotebookStatus,
    NotebookTemplate, RunningImage,
};
pub use platform::{Evidence, LastRun, Next, Outcome, PLATFORM, PlatformFacts, Promise, RunKind, next};
pub use reconciler::{FIELD_SELECTORS, RECONCILERS, Reconciler};
pub use serving::{Forecast, MAX_SERVICE_NAME, Roll, SERVING, rollout};
