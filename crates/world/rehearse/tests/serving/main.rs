//! Models on a sandbox: the reconciler on the driver, against an API server, controllers and nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
// Tests are stories: what is at hand is passed on, and a table of mistakes is as long as it is.
#![allow(clippy::large_futures, clippy::needless_pass_by_value, clippy::too_many_lines, clippy::unused_self)]

mod bad_input;
mod broken_watches;
mod cases;
mod convergence;
mod life;
mod rollouts;
mod stage;
