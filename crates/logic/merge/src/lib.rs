//! `scantling-merge`.
