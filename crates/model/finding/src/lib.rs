//! `scantling-finding`.
