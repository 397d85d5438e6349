//! Every way in which Scantling shows what it knows: in a terminal and as JSON.
//!
//! Renderers are pure: values in, text out. They colour their text always; the command takes the colours out where
//! the output is no terminal or nobody wants them.

pub mod audit;
pub mod findings;
pub mod json;
pub mod lock;
mod nodes;
pub mod objects;
mod page;
mod people;
pub mod progress;
pub mod rbac;
pub mod references;
pub mod rehearsal;
pub mod run;
pub mod snapshot;
pub mod status;
pub mod style;
