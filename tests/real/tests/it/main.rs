//! Tests against a real Kubernetes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;
mod notebooks;
mod small_release;
mod stale_tag;
