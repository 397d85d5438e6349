//! Models on a sandbox: the reconciler on the driver, against an API server, controllers and nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod bad_input;
mod cases;
mod convergence;
mod life;
mod rollouts;
mod stage;
