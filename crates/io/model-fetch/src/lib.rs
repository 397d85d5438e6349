//! Fetches a model into a folder.
//!
//! # Flow
//! A URI (`file://`, `http(s)://`, `s3://`) → what is there (paths, sizes, entity tags) → each file into a part beside its place, hashed on the
//! way, then put into place → an archive that is all there is gets unpacked → a manifest of what was fetched.
//!
//! # Guarantees
//! - Whoever is killed continues: what is whole is not fetched again, a part goes on where it ended if the server says that it is the same file.
//! - A file is in its place only when it is whole: its length is what the server said, its SHA-256 what was asked for.
//! - Nothing is written outside the folder, whatever names a server or an archive has.
//! - Sizes, counts and waits are bounded; see [`Limits`].
//! - Credentials and queries of URLs are in no error, progress or manifest.
//!
//! # Assumptions
//! Nobody else writes to the folder at the same time.
//!
//! # Caveats
//! Without an entity tag a part cannot be told from another version of the file; it is fetched anew.
//!
//! # Errors
//! [`FetchError`] says what, where, why and what to do.

mod archive;
mod client;
mod error;
mod fetch;
mod hash;
mod limits;
mod manifest;
mod place;
mod source;

pub use error::FetchError;
pub use fetch::{Fetched, Progress, check, fetch};
pub use limits::Limits;
pub use manifest::{FileRecord, MANIFEST, Manifest};
pub use source::{Access, AccessError, Uri};
