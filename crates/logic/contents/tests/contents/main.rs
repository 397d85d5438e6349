//! Contents of images: read, claimed, built.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod build_and_read;
mod claims;
mod layers;
