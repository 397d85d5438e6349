//! `scantling-yaml`.
