//! `scantling-registry-server`.
