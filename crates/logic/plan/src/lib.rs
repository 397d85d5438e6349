//! What an upgrade would do, decided without touching anything.
//!
//! ```text
//!  desired ─┐  (the release: images by digest, generated values filled in)
//!  base ────┼─▶ decide ─▶ Step { outcome, changes, kept, conflicts, body, precondition }
//!  live ────┘  (what was last applied; what the cluster has)
//! ```
//!
//! For every field: equal to the base means ours to move; changed by someone else means that a rule of the release
//! decides, and without one the run stops and names field and owner. Installing is the same with an empty base.
//!
//! Invariants: the same sides give the same step; a plan holds no value of a Secret in its text; what Scantling did not
//! create is never pruned.

mod adopt;
mod cause;
mod generated;
mod immutable;
mod node;
mod object;
mod on_offer;
mod own;
mod people;
mod pin;
mod plan;
mod remains;
mod rights;
mod settled;
mod step;
mod trace;
mod value;

pub use adopt::{is_made_by_us, is_only_ours};
pub use generated::{
    Disagreement, GeneratedValues, Origin as ValueOrigin, encode_string_data, without_values,
};
pub use node::NodeFacts;
pub use object::{Frame, MANAGER, Sides, decide, is_applied};
pub use on_offer::{OnOffer, on_offer};
pub use own::own_objects;
pub use people::{Offer, PlannedNotebook, notebooks};
pub use pin::{Adjusted, Pins, pin};
pub use plan::{
    Counts, Desired, Inventory, Origin, Plan, PlanError, PlannedImage, PlannedNode, Previous, holds, pulls,
    steps, still_used,
};
pub use rights::{PolicyRule, rights, roles};
pub use step::{Change, FieldChange, ForeignField, Outcome, Step};
pub use trace::Traces;
