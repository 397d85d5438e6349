//! Tests against a real Kubernetes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "real clusters take real time")]

mod common;
mod disturbed;
mod inference;
mod jupyter;
mod killing;
mod notebooks;
mod platform;
mod small_release;
mod stale_tag;
mod stand_ins;
mod story;
