//! The targets, and how one stretch of bytes becomes several inputs.

pub mod endpoints;
pub mod fields;
pub mod layers;
pub mod manifest;
pub mod reference;
pub mod release;
pub mod sandbox;
pub mod snapshot;
pub mod yaml;

/// Stands between the parts of an input that has several. A line of its own, so that seeds can be read and written.
pub const SEPARATOR: &str = "\n====\n";

/// The parts of an input.
pub fn parts(data: &[u8]) -> Vec<&[u8]> {
    let separator = SEPARATOR.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(window) = data.get(at..at + separator.len()) {
        if window == separator {
            parts.push(&data[start..at]);
            at += separator.len();
            start = at;
        } else {
            at += 1;
        }
    }
    parts.push(&data[start..]);
    parts
}

/// A part that may not be there.
pub(crate) fn part<'p>(parts: &[&'p [u8]], index: usize) -> &'p [u8] {
    parts.get(index).copied().unwrap_or_default()
}
