//! `scantling-api`.
