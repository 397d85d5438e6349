//! `scantling-sandbox`.
