//! Rehearses an upgrade: the product's own code on a sandbox and a virtual clock, people who act on it, and checkers that
//! say which promises were kept.

mod bridge;
mod check;
mod cluster_view;
pub mod compare;
mod images;
mod kubectl;
pub mod people;
mod play;
pub mod promises;
pub mod record;
pub mod scenario;
mod vendor;
