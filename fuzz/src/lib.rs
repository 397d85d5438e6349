//! Fuzz targets: one function for each way in which bytes from outside get into the program.
//!
//! A target fails by panicking: because the code under it does, or because something that must always hold does not.
//! `cargo xtask fuzz NAME --seconds N` looks for such bytes; the tests of this package try the seeds and whatever was found.
#![allow(clippy::missing_panics_doc, reason = "panicking is how a target says that it found something")]

pub mod targets;

/// A target: its name and what it does with some bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by name.
pub const TARGETS: [Target; 9] = [
    ("endpoints", targets::endpoints::run),
    ("fields", targets::fields::run),
    ("layers", targets::layers::run),
    ("manifest", targets::manifest::run),
    ("reference", targets::reference::run),
    ("release", targets::release::run),
    ("sandbox", targets::sandbox::run),
    ("snapshot", targets::snapshot::run),
    ("yaml", targets::yaml::run),
];

/// The variable that tells the fuzzing program which target it is.
pub const TARGET_VARIABLE: &str = "SCANTLING_FUZZ_TARGET";

/// Finds a target.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}
