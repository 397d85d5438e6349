//! `scantling-registry`.
