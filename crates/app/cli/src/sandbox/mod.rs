//! A sandbox for clients outside this process: its API server and its registries on two loopback ports.
//!
//! ```text
//!  kubectl ──HTTP──▶ server ──channel──▶ world's thread: handle, run_until, watches
//!  registry clients ─▶ server ─┘                ▲ pacer: virtual time follows real time
//! ```
//!
//! The world is a synchronous value and lives on a thread of its own; connections are tasks that send it requests.

mod server;
mod world_thread;

pub(crate) use server::{Served, serve};
pub(crate) use world_thread::WorldHandle;
