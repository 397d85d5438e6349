//! The reconcilers on a cluster of a few lines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod compatibility;
mod idle;
mod life;
mod marks;
mod notebooks;
mod platform;
mod pods;
mod recorded;
mod reported;
mod small_cluster;
