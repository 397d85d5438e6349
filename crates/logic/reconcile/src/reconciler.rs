//! What a driver needs to know of a reconciler.

use scantling_observed::Observed;

use crate::action::Action;
use crate::context::Context;

/// A reconciler: a name, what it reads, and a pure function.
#[derive(Debug, Clone, Copy)]
pub struct Reconciler {
    /// For logs and metrics.
    pub name: &'static str,
    /// Group, version and kind of everything that it reads or writes.
    pub watches: &'static [(&'static str, &'static str, &'static str)],
    /// What to write.
    pub reconcile: fn(&Observed, &Context<'_>) -> Vec<Action>,
}

/// Every reconciler, in the order in which to call them.
pub const RECONCILERS: &[Reconciler] =
    &[crate::notebook::NOTEBOOKS, crate::marker::MARKER, crate::serving::SERVING, crate::platform::PLATFORM];
