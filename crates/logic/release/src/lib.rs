//! `scantling-release`.
