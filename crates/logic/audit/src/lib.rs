//! What runs, what would start next, and what does not agree: verdicts on a cluster, each with evidence and a remedy.
//!
//! # Flow
//! ```text
//!  Observed ─▶ seen (pods, nodes, pulls) ─┐
//!           ─▶ uses (templates) ──────────┼─▶ facts: one table of (written reference, node) ─▶ meaning: what a node has under a name
//!  Knowledge (locks, registries) ─▶ images, wanted ┘                                         ─▶ verdict ─▶ a module for each section
//! ```
//! First everything that is known goes into one table of facts; then each question has one pure, total function over that table; then
//! the sections make rows of what those answer.
//!
//! # Guarantees
//! - *same*, *fresh*, *different* and *stale* are said only where the facts prove them; everything else is *unknown*, with what is missing.
//! - A remedy never leaves the next start stale: it writes a digest, or has the registry asked again.
//! - The same input gives the same rows with the same ids in the same order.
//!
//! # Caveats
//! A cluster shows what its kubelets last said. A list of images is up to a minute older than it says, events are gone after an hour, and a
//! pod that is gone takes what it knew with it; the rules for that are in `meaning`.
//!
//! # Errors
//! None of its own: what cannot be read is listed as unseen.

mod audit;
mod builder;
mod configuration;
mod differences;
mod evidence;
mod facts;
mod group;
mod images;
mod knowledge;
mod meaning;
mod next_start;
mod part;
mod remedy;
mod replicas;
mod row;
mod running;
mod screen;
mod secrets;
mod seen;
mod unowned;
mod uses;
mod verdict;
mod wanted;

pub use audit::{Audit, Looked, audit};
pub use group::Group;
pub use knowledge::{
    AnswersError, Knowledge, KnownRelease, MAX_ANSWERS, Options, RegistryAnswer, RegistryAnswers,
};
pub use row::{Evidence, MAX_EVIDENCE, Remedy, Row, Section, Subject, Verdict, Wanted};
