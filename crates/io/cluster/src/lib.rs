//! `scantling-cluster`.
