//! An OCI registry as a value.
//!
//! # Flow
//! [`RegistryServer`] holds any number of *hosts* (`registry.example:5000`), each with its repositories. Content comes in by
//! [`RegistryServer::push`] or through the protocol; [`RegistryServer::handle`] takes one HTTP request and gives one response. Before a
//! request is served, the [`Faults`] are asked whether this one is to fail, then the [`Access`] rule of its repository.
//!
//! # Guarantees
//! - The answer depends on the requests so far and on nothing else: no clock, no randomness, no files, no threads. The same requests in
//!   the same order give the same bytes, tokens and upload identifiers included.
//! - Everything stored under a digest has that digest; a manifest that came in through the protocol had all its blobs when it came.
//! - Every collection and every body that a client can grow is bounded (see the constants of each module).
//!
//! # Assumptions
//! The host passed to `handle` is the one that the client wanted to reach (the `Host` header, port included). TLS is somebody else's.
//!
//! # Caveats
//! Tokens are protected against mistakes, not against attackers: the key is a constant. Do not put this server before real content.
//! A refused connection cannot be said in HTTP; see [`Unreachable`].
//!
//! # Errors
//! Clients get the error bodies of the OCI distribution specification 1.1; callers of the Rust interface get [`PushError`].

mod access;
mod blobs;
mod faults;
mod listing;
mod manifests;
mod reply;
mod repository;
mod route;
mod server;
mod token;
mod uploads;

pub use access::{Access, Account, Accounts, Rights};
pub use faults::{Effect, Fault, FaultId, Faults, Requests, Subject, Unreachable};
pub use repository::{MAX_BLOB_BYTES, MAX_MANIFEST_BYTES, MAX_TAGS, PushError, Pushed};
pub use server::RegistryServer;
