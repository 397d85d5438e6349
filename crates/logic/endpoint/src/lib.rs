//! Where a cluster asks for an image, in which order, and with which credential.
//!
//! Nodes do not ask the registry that a reference names: mirror rules send them elsewhere, policies forbid places, and
//! pull secrets are chosen by rules of their own. The gate, the sandbox's nodes and the image importer all take their
//! endpoints from [`attempts`], so that they cannot disagree.

mod attempt;
mod containerd_hosts;
mod credential;
mod docker_config;
mod endpoints_file;
mod glob;
mod keyring;
mod mirrors;
mod openshift;
mod order;
mod registries_conf;
mod scope;
mod toml;

pub use attempt::{Attempt, Selector, attempts, source};
pub use credential::{Credential, CredentialId, Secret};
pub use keyring::{Keyring, KeyringError};
pub use mirrors::{Address, Mirrors, MirrorsError};
pub use toml::TomlError;
