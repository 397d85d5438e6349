//! `scantling-report`.
