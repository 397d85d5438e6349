//! Screen: is what screens say so?

use scantling_observed::Observed;

use crate::builder::Builder;
use crate::facts::Facts;
use crate::row::Row;

/// The rows of this section.
pub(crate) fn rows(_facts: &Facts<'_>, _builder: &Builder<'_>, _observed: &Observed) -> Vec<Row> {
    Vec::new()
}
