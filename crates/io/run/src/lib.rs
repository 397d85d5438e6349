//! `scantling-run`.
