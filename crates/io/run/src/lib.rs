//! One run: a release is brought to a cluster, the same way on a real one and in a rehearsal.
//!
//! ```text
//!  read ─▶ gate ─▶ plan ─▶ waves: definitions, namespaces, access, configuration
//!   │       │       │        └▶ imports and builds ─▶ prepull ─▶ workloads, webhooks, resources
//!   │       └───────┴ refuse: nothing written            └▶ claims against contents ─▶ prepull ─▶ catalogue
//!   │                                                         └▶ verify ─▶ prune ─▶ store
//!   └ stored state, journal
//! ```
//!
//! Invariants: one path for installing and upgrading; every write goes through one function, and the journal is open
//! before the first; every object ends in a typed outcome with its cause; nothing is spawned, every wait is bounded and
//! in tokio's time, every order is fixed.

mod apply;
mod build_state;
mod catalogue;
mod desired;
mod environment;
mod event;
mod gate;
mod health;
mod images;
mod journal;
mod options;
mod prepull;
mod read;
mod registry_rules;
mod report;
mod session;
mod state;
mod store;
mod upgrade;
mod verify;
mod wait;

pub use environment::{Entropy, Environment};
pub use event::{RunEvent, Stage, What};
pub use journal::JOURNAL_NAME;
pub use options::{Options, Waits};
pub use registry_rules::{RulesError, read_registry_rules};
pub use report::{CatalogueEntry, CheckedClaim, GateVerdict, ObjectOutcome, RunError, RunReport, Verified};
pub use state::{
    InventoryEntry, RecordedClaim, RecordedImage, STATE_NAME, SYSTEM_NAMESPACE, State, StateError,
};
pub use store::StoredError;
pub use upgrade::upgrade;
