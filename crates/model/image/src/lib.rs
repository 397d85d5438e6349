//! `scantling-image`.
