//! Snapshots of clusters: whatever somebody dumped, read into one [`Observed`](scantling_observed::Observed).
//!
//! # Flow
//! ```text
//!  paths ─▶ survey ─▶ split: text ─▶ pieces ─▶ two threads: piece ─▶ record or reduced object ─▶ collect ─▶ Snapshot
//!           files     by objects                                                                  duplicates, what was not read
//! ```
//! [`read`] takes files and folders in any mix: `kubectl get -o json|yaml`, `kubectl cluster-info dump` as a folder or as one stream, must-gather
//! trees, snapshots of our own, single objects. What a file holds is told from its content, not from its name or place.
//!
//! [`take`] makes such a snapshot of a live cluster: page by page into files, values of secrets replaced.
//!
//! # Guarantees
//! - A text is read by pieces of one object and reduced at once to what decisions need; memory does not grow with what is passed over.
//! - What is not read is listed with its place and the reason. One bad object costs itself, one cut file what comes after the cut.
//! - The same files give the same snapshot, however many threads there are.
//! - Nothing outside of the paths that are named is opened.
//!
//! # Assumptions
//! Whoever wrote the files is not trusted to write well, but what they say about the cluster is believed.
//!
//! # Caveats
//! In a stream that holds logs between objects, a log that imitates the marks around it can bring objects of its own in. Dumps in folders
//! do not have that weakness.
//!
//! # Errors
//! [`SnapshotError`]: only when a path that was named cannot be looked at. [`TakeError`]: when the server or the folder cannot be worked with.

mod collect;
mod error;
mod index;
mod json;
mod limits;
mod parse;
mod piece;
mod pipeline;
mod prune;
mod rules;
mod snapshot;
mod sniff;
mod take;
mod yaml;

pub use error::{Skipped, SnapshotError, Why};
pub use index::{Index, IndexedResource};
pub use limits::Limits;
pub use pipeline::{read, read_text};
pub use snapshot::{NotSeen, Progress, Repeated, Snapshot};
pub use take::{TakeError, TakeEvent, TakeSettings, TokenKey, take};
