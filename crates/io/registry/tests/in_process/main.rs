//! The client against a registry in the same process, on a paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod contents;
mod copy;
mod probe;
mod resolve;
mod support;
mod waiting;
