//! A client for OCI registries: resolve, probe, read contents, copy.
//!
//! # Flow
//! A [`RegistryClient`] speaks through any [`Transport`], a `tower` service of HTTP requests: [`tcp_transport`] in production, a
//! function in tests and rehearsals ([`transport_from_fn`]). Where to ask comes from `scantling_endpoint`: mirrors, policies and
//! credentials in the order of a node. Every request passes the same layers: bounded parallelism per registry, retries with seeded
//! jitter, `Retry-After`, tokens, redirects.
//!
//! # Guarantees
//! - Bytes are checked against their digest before anyone sees them; sizes are bounded before bytes are read.
//! - A verdict says what the registry said: absent only if a registry answered that it does not have it, never for a missing
//!   permission, a rate limit or a failing server.
//! - Credentials go only to the registry they are for (and to the token service it names), never over plain HTTP unless the registry
//!   is configured so, never along a redirect to another host, never into a message.
//! - Nothing is spawned for small content, and time is tokio's, so that a run under a paused clock can be replayed.
//!
//! # Caveats
//! Identity tokens and credential helpers are not used. An index within an index is not followed.
//!
//! # Errors
//! [`RegistryError`]: host, repository, subject, what went wrong, with the status and error code of the registry where there is one.

mod access;
mod answer;
mod challenge;
mod client;
mod contents;
mod copy;
mod document;
mod error;
mod exchange;
mod fetch;
mod hosts;
mod nearby;
mod options;
mod probe;
mod resolve;
mod retry;
mod tcp;
mod transport;
mod upload;
mod verdict;

pub use client::RegistryClient;
pub use copy::{Copied, StoredImage};
pub use error::{Answer, Problem, RegistryError};
pub use options::Options;
pub use probe::{Probe, ProbeAttempt};
pub use resolve::{Layer, PlatformImage, Resolved};
pub use tcp::{TcpError, TcpTransport, tcp_transport};
pub use transport::{Body, BoxError, Transport, full, transport_from_fn};
pub use verdict::Verdict;
