//! The words of OCI images: references, digests, platforms, the identity class of an image, pull policies and the
//! image IDs that pods report.
//!
//! Everything here is a value. Nothing reads files, asks registries or fills in what was not written: a reference
//! without a tag says that it has none, and [`Reference::effective_tag`] says what a container runtime would ask for.

mod digest;
mod identity;
mod image_id;
mod platform;
mod pull_policy;
mod reference;
mod serde_text;

pub use digest::{Digest, DigestAlgorithm, DigestError, DigestHasher};
pub use identity::{ImageIdentity, Sameness};
pub use image_id::{ImageId, ImageIdError};
pub use platform::{Platform, PlatformError};
pub use pull_policy::{PullPolicy, PullPolicyError};
pub use reference::{
    DOCKER_HUB, Doubt, NAME_LENGTH_MAX, Part, Reason, Reference, ReferenceError, TAG_LENGTH_MAX,
    WRITTEN_LENGTH_MAX, canonical_registry,
};
