//! The command as people run it: what it prints, byte for byte, what it tells the shell, and what real clients make of its
//! sandbox.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod audit;
mod check;
mod cluster;
mod command;
mod golden;
mod helm;
mod images;
mod kubectl;
mod lock;
mod mistakes;
mod output;
mod refs;
mod rehearse;
mod sandbox;
mod snapshot;
