//! `scantling-plan`.
