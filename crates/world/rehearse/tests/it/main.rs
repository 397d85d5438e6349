//! Rehearsals of the examples: what comes out, and that it comes from what happens.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod audited;
mod changes;
mod crashes;
mod platform;
mod replay;
mod seeds;
mod support;
mod unusable;
