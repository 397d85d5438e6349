//! The registry, asked as clients ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod client;
mod faults;
mod protocol;
