//! Releases: what a platform's version consists of, what its references lead to, and what is wrong with it.
//!
//! # Flow
//! [`Release::read`] makes a [`Release`] of a [`Tree`] of files: objects, references with the way each becomes live, image
//! streams, builds, and the rules of `release.yaml`. A [`Lock`] holds what the references lead to. [`diff`] compares two
//! releases name by name, [`check()`] gathers everything that is wrong as findings.
//!
//! # Guarantees
//! - Pure: no files, no network, no clock; the same input gives the same findings in the same order.
//! - Every finding has a place; nothing that looks like a reference is dropped without one.
//! - A lock is complete, or it is none.
//!
//! # Caveats
//! Manifests are applied as they are written: kustomizations and charts are built by their own tools before.

mod acceptable;
mod annotate;
mod build;
mod change;
mod check;
mod claim;
mod content;
mod faults;
mod format;
mod generated;
mod leftover;
mod lock;
mod name;
mod object;
mod offer;
mod ownership;
mod path;
mod published;
mod read;
mod references;
mod release;
mod requirement;
mod settings;
mod source;
mod stream;
mod substitution;
mod version;
mod wave;

pub use build::{Build, BuildSource, Written};
pub use change::{Change, Changed, change_findings, diff};
pub use check::{Against, Answer, Checked, answer_findings, check};
pub use claim::{CLAIM_ANNOTATIONS, PlacedClaim};
pub use content::Aspect;
pub use format::{
    API_VERSION, Catalogue, CatalogueImage, CatalogueTag, Component, Environment, Fallback, Generated,
    LiveWhen, OwnershipRule, RELEASE_FILE, Rule, Substitution,
};
pub use generated::{MAX_LENGTH as MAX_GENERATED_LENGTH, MIN_LENGTH as MIN_GENERATED_LENGTH};
pub use lock::{LOCK_FILE, Lock, LockError, LockedBuild, LockedImage, LockedPlatform, LockedRelease};
pub use name::ImageName;
pub use object::ReleaseObject;
pub use offer::OfferedImage;
pub use ownership::Ownership;
pub use path::PathError;
pub use published::{Listed, PublishedList};
pub use read::{Tree, Unreadable, shown as shown_path};
pub use references::{Condition, Reach, UsedReference};
pub use release::Release;
pub use requirement::{Requirement, RequirementError};
pub use settings::Settings;
pub use stream::StreamTag;
pub use version::{Version, VersionError};
pub use wave::Wave;
