//! `scantling-reconcile`.
