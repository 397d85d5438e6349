//! The commands, one file each.

pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod fetch_model;
pub(crate) mod history;
pub(crate) mod lock;
pub(crate) mod operator;
pub(crate) mod plan;
pub(crate) mod rbac;
pub(crate) mod refs;
pub(crate) mod rehearse;
pub(crate) mod rollback;
pub(crate) mod sandbox;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod uninstall;
pub(crate) mod upgrade;

use clap::ValueEnum;

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// To be read.
    Terminal,
    /// As data.
    Json,
}
