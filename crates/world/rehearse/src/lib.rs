//! Rehearses an upgrade: the product's own code on a sandbox and a virtual clock, people who act on it, and checkers that
//! say which promises were kept.
//!
//! ```text
//!  rehearsal.yaml ─▶ scenario ─▶ play ─▶ stage ── bridge ──▶ sandbox
//!                                 │        │        ▲
//!                                 │        └ vendor (steps), people, Scantling's run and controllers
//!                                 └─▶ check (promises), compare (upgraded ≡ fresh) ─▶ Rehearsal
//! ```
//!
//! The outcome is read from the sandbox: what runs from a pod's `imageID`, versions from the bytes of layers. Nothing here
//! knows an example by name.

mod bridge;
mod check;
mod cluster_view;
pub mod compare;
mod controllers;
mod images;
mod kubectl;
pub mod people;
mod play;
pub mod promises;
pub mod record;
mod rehearsal;
pub mod scenario;
mod stage;
mod vendor;
mod whose;

pub use bridge::{BoxError, Gate, InProcess, Kill, KubernetesService};
pub use images::BuiltImages;
pub use play::{Progress, cluster_of, rehearse};
pub use rehearsal::{Attempt, Options, Rehearsal, RehearseError, ReleaseSeen, VariantSeen, Way};
