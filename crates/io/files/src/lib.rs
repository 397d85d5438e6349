//! Bounded reading of files and folders from disk.
//!
//! Everything that Scantling reads as a *tree* (a release, a folder of manifests) comes through [`read_tree`], so that
//! the limits, the rule about symbolic links and the list of what was left out hold everywhere. Nothing is left out
//! silently: see [`Reading::skipped`].

mod error;
mod limits;
mod survey;
mod text;
mod walk;
mod write;

pub use error::FilesError;
pub use limits::Limits;
pub use survey::{Found, PassedOver, Survey, open, survey};
pub use walk::{Reading, SkipReason, Skipped, Tree, read_file, read_tree};
pub use write::{is_vacant, make_folder, remove_file, write_file};
