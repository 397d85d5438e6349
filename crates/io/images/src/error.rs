//! What can go wrong, said with its place and what to do.

use camino::{Utf8Path, Utf8PathBuf};
use scantling_contents::{BuildError, LayerError};
use scantling_files::FilesError;
use scantling_image::Digest;
use scantling_registry::RegistryError;

use crate::name::ImageName;

/// Why an image was not made or not pushed.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// There is no such recipe.
    #[error("there is no recipe for {wanted}; there are {known}")]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// The recipes that there are.
        known: String,
    },
    /// A recipe or its lock does not say what it must.
    #[error("{path}: {problem}")]
    Recipe {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The lock does not belong to the recipe.
    #[error("{path}: {problem}; `cargo xtask images --update {image}` resolves it anew")]
    Lock {
        /// The file.
        path: Utf8PathBuf,
        /// The image.
        image: ImageName,
        /// What is wrong.
        problem: String,
    },
    /// A package that the lock pins cannot be had.
    #[error(
        "{image}: {package} cannot be had: {problem}; if the archive has moved on, `cargo xtask images --update {image}` \
         pins what it has now"
    )]
    Gone {
        /// The image.
        image: ImageName,
        /// The package, with its version.
        package: String,
        /// What the tool that fetches said.
        problem: String,
    },
    /// What came is not what the lock pins.
    #[error("{package} has the digest {found}, the lock pins {wanted}: it is not used")]
    Mismatch {
        /// The image, and the package with its version.
        package: String,
        /// What is pinned.
        wanted: Digest,
        /// What came.
        found: Digest,
    },
    /// A package holds something that cannot go into an image.
    #[error("{package}: {path:?} {problem}")]
    Entry {
        /// The package.
        package: String,
        /// The path in it.
        path: String,
        /// Why not.
        problem: String,
    },
    /// A program that is needed is not installed.
    #[error("{program} is not installed: images are made of packages that it reads ({how})")]
    Missing {
        /// The program.
        program: &'static str,
        /// How it is installed.
        how: &'static str,
    },
    /// A program failed.
    #[error("{command} failed: {problem}")]
    Program {
        /// What was run.
        command: String,
        /// What it said.
        problem: String,
    },
    /// A file that is made before the image was not handed over.
    #[error("{image}: /{path} is made before the image and was not handed over; {how}")]
    NotGiven {
        /// The image.
        image: ImageName,
        /// Where it belongs.
        path: String,
        /// What makes it.
        how: &'static str,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A recipe could not be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A document of an image could not be written.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A layer could not be read.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The registry refused.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl ImagesError {
    /// True if this machine, at this moment, cannot make the image, whatever the recipe says: a program is not installed, or a
    /// package cannot be fetched. Tests that need the image are skipped then.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Gone { .. } | Self::Missing { .. })
    }

    pub(crate) fn file(path: &Utf8Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}
