//! `scantling-manifest`.
