//! The reconcilers on a cluster of a few lines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod life;
mod marks;
mod notebooks;
mod small_cluster;
