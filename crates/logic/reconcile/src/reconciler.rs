//! What a driver needs to know of a reconciler.

use std::collections::BTreeSet;

use scantling_api::ObjectKey;
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
    /// Group, version and kind of what it reads by name only: nobody needs to be shown the others.
    pub named: &'static [(&'static str, &'static str, &'static str)],
    /// Which objects of those kinds, as far as is known.
    pub names: fn(&Observed) -> BTreeSet<ObjectKey>,
    /// What to write.
    pub reconcile: fn(&Observed, &Context<'_>) -> Vec<Action>,
}

/// Reads nothing by name.
pub(crate) fn no_names(_: &Observed) -> BTreeSet<ObjectKey> {
    BTreeSet::new()
}

/// Kinds of which only some objects are read: group, kind and a selector of fields. A cluster has far more events than anything else.
pub const FIELD_SELECTORS: &[(&str, &str, &str)] =
    &[("", "Event", "reason=FailedCreate,involvedObject.kind=StatefulSet")];

/// Every reconciler, in the order in which to call them.
pub const RECONCILERS: &[Reconciler] = &[
    crate::notebook::NOTEBOOKS,
    crate::marker::MARKER,
    crate::catalogue_use::CATALOGUE_USE,
    crate::culler::CULLER,
    crate::serving::SERVING,
    crate::platform::PLATFORM,
];
