//! The process in the cluster: one of several pods leads, keeps the cluster as the reconcilers want it, does the runs that are due,
//! and tells how the platform is.
//!
//! ```text
//!  lease ─▶ lead ─┬▶ drive      reconcilers on the driver                 ──look──▶ what is there (Seen)
//!                 ├▶ books      bookkeeping of runs                        ─┐
//!                 ├▶ contents   images that notebooks run, from registries ─┼─▶ inform: what is known (Known) ─▶ drive
//!                 ├▶ activity   when running notebooks were used last      ─┘
//!                 └▶ runs       next() → upgrade or rollback, from the bundle stored in the cluster
//! ```
//!
//! # Guarantees
//! - At most one leads ([`scantling_cluster::Lease`]); one that cannot renew stops before another one starts.
//! - A settled platform is not written to, but for the renewal of the lease: six times a minute.
//! - It can be killed at any moment. A run that it did is continued by the next one, or by the command line.
//! - Told to stop, it stops between two writes, leaves the run to be continued, and gives its leases back.
//!
//! # Assumptions
//! The namespace `scantling-system` is there; whoever deploys this deploys it into it.
//!
//! # Caveats
//! Everything is one task: nothing is spawned but connections of the server for probes and metrics.
//!
//! # Errors
//! What cannot be done is told, counted, and tried again after growing pauses. Nothing ends the process but being told to.

mod activity;
mod answers;
mod books;
mod contents;
mod metrics;
mod operator;
mod rights;
mod runs;
mod seen;
mod told;

pub use activity::{Ask, ask_over_http};
pub use answers::Answered;
pub use contents::contents_of;
pub use metrics::Metrics;
pub use operator::{LEADER_LEASE, Lines, Operator, Parts, Registries};
pub use rights::rights;
pub use seen::Seen;
pub use told::{Level, Line, Told};
