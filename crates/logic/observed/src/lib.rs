//! `scantling-observed`.
