//! What is inside an image.
//!
//! # Flow
//! Reading: a [`ContentsReader`] takes the layers of one platform's manifest in order, as streams, and the configuration; it keeps only
//! package metadata and gives [`Contents`]. [`check_claim`] holds a [`Claim`] ("TensorFlow 2.7") against them. Writing: [`build`] makes
//! the blobs of a small image from an [`ImageDescription`], on a base if there is one; a [`LayerStream`] writes a layer of any size, and
//! [`ImageDocuments`] the manifest and configuration of layers that are kept elsewhere.
//!
//! # Guarantees
//! - A version comes from the bytes of the image: package metadata, files and configuration; never from a tag or an annotation.
//! - Whiteouts hide what lower layers had, as in a container.
//! - What exists but cannot be read (an rpm database, say) is named in [`Contents::notes`]; it is not left out silently.
//! - Building is deterministic: the same description and base give the same bytes, other contents other digests. What was described is
//!   exactly what reading finds.
//! - Memory is bounded by [`Limits`], whatever a layer claims or contains.
//!
//! # Assumptions
//! Layers were checked against their digests by the caller, and are passed from the lowest to the highest.
//!
//! # Caveats
//! Layers compressed with zstd are refused. Vendored copies of libraries without metadata are not seen. Which of several copies of a
//! package an interpreter would import is decided by a rule, not by running it; see [`Contents::find`].
//!
//! # Errors
//! [`LayerError`], [`DescriptionError`] and [`BuildError`] say what, where, why and what to do.

mod build;
mod claim;
mod conda;
mod description;
mod documents;
mod dpkg;
mod layer_reader;
mod layer_stream;
mod layer_writer;
mod limits;
mod os_release;
mod package;
mod python;
mod rpm;
mod runtime;
mod tar_stream;

pub use build::{BuildError, BuiltImage, BuiltPlatform, build};
pub use claim::{Claim, ClaimVerdict, check_claim, shown_version};
pub use description::{DescriptionError, ImageDescription, LayerDescription, MAX_DESCRIBED_BYTES};
pub use documents::{ImageDocuments, ImageSettings};
pub use layer_reader::{ContentsReader, LayerError};
pub use layer_stream::{LayerEntry, LayerEntryKind, LayerStream, WrittenLayer};
pub use limits::Limits;
pub use os_release::OsRelease;
pub use package::{Contents, Ecosystem, Note, Package, normalised};
pub use runtime::Runtime;
