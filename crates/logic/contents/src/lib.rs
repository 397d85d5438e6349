//! `scantling-contents`.
