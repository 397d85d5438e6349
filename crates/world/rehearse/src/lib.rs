//! `scantling-rehearse`.
