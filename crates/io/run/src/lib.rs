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
//! [`rollback`] is the same with an earlier release, whose files the cluster keeps; [`uninstall`] goes the waves backwards
//! over the inventory; [`plan`] ends before the first write.
//!
//! A run holds a lease from its first write on, renewed beside its own future whatever that waits for; one that is gone is
//! continued from its journal by whoever comes next.
//!
//! Invariants: one path for installing and upgrading; every write goes through one function, and the journal is open
//! before the first; every object ends in a typed outcome with its cause; nothing is spawned, every wait is bounded and
//! in tokio's time, every order is fixed.

mod access;
mod adoptable;
mod apply;
mod around;
mod books;
mod build_state;
mod bundle;
mod catalogue;
mod claim;
mod conversion;
mod desired;
mod edited;
mod environment;
mod event;
mod foresee;
mod gate;
mod guarded;
mod health;
mod history;
mod images;
mod journal;
mod lost;
mod meanwhile;
mod offers;
mod options;
mod packed;
mod people;
mod predictors;
mod prepull;
mod promises;
mod read;
mod registry_rules;
mod removal;
mod report;
mod retired;
mod rollback;
mod session;
mod state;
mod status;
mod store;
mod streams;
mod stuck;
mod traffic;
mod uninstall;
mod upgrade;
mod verify;
mod wait;
mod why;
mod wish;

pub use books::Books;
pub use bundle::{Bundle, BundleError};
pub use claim::LEASE_NAME;
pub use edited::Edited;
pub use environment::{Entropy, Environment};
pub use event::{RunEvent, Stage, What};
pub use history::{Ended, HISTORY_NAME, PastRun, history};
pub use journal::{Action, JOURNAL_NAME};
pub use meanwhile::{Doing, Meanwhile};
pub use options::{Options, Waits};
pub use registry_rules::{REGISTRY_RULES, RulesError, read_registry_rules};
pub use report::{
    CatalogueEntry, CheckedClaim, CutOff, GateVerdict, MissingRight, ObjectOutcome, RunError, RunReport,
    Verified,
};
pub use rollback::{namespace_of_earlier, rollback};
pub use state::{
    InventoryEntry, RecordedClaim, RecordedImage, STATE_NAME, SYSTEM_NAMESPACE, State, StateError,
};
pub use status::{Installed, OpenRun, Status, Unhealthy, status};
pub use store::StoredError;
pub use uninstall::uninstall;
pub use upgrade::{plan, upgrade};
