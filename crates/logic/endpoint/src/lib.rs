//! `scantling-endpoint`.
