//! Images made from recipes, without a container engine.
//!
//! # Flow
//! A recipe (`NAME/VERSION/recipe.yaml`) names Debian and Python packages, files, and how the image is run; `recipe.lock` beside it pins
//! every package with its hash. [`Images::update`] writes the lock: apt and pip say what the packages depend on. [`Images::build`]
//! brings the pinned packages into a cache, makes one layer of them on the layers of the image below, and writes an OCI layout.
//! [`push_all`] sends images to a registry, [`Image::contents`] reads what is in it.
//!
//! # Guarantees
//! - The same recipe and lock give the same digest, on every machine: packages are the pinned bytes or they are refused, entries are
//!   sorted, there are no times, and nothing of the machine (its user, its interpreter, bytecode) goes in.
//! - No script of a package runs; no rights beyond a user's own are needed.
//! - What is installed is listed in the image as its own tools list it, from the packages' own metadata.
//! - No layer is in memory as a whole; files on disk are a few times the layer's size while it is made.
//! - A recipe that is built already, with all that it stands on, is not built again.
//!
//! # Assumptions
//! `apt-get`, `apt-cache`, `dpkg-deb` and `python3` with pip are there, and set up for the sources that have the packages.
//!
//! # Caveats
//! Images are for linux/amd64. What maintainer scripts would have done (users, alternatives, the bundle of CA certificates) is written
//! in the recipe. Where two packages bring the same file with other content, the one that sorts later stays; it is said.
//!
//! # Errors
//! [`ImagesError`]; [`ImagesError::is_unavailable`] tells what this machine cannot have at the moment from what is wrong.

mod apt;
mod build;
mod cache;
mod deb;
mod error;
mod images;
mod layout;
mod lock;
mod name;
mod operator;
mod pip;
mod program;
mod push;
mod recipe;
mod tree;
mod wheel;

pub use error::ImagesError;
pub use images::{Images, Say};
pub use layout::Image;
pub use name::{ImageName, ImageNameError};
pub use operator::{OPERATOR, OPERATOR_PROGRAM, operator_program};
pub use push::{Pushed, plain_http, push_all};

/// The value of a file that is one YAML document.
fn one_document<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let documents = scantling_yaml::parse(bytes).map_err(|error| error.to_string())?;
    let [document] = documents.as_slice() else {
        return Err(format!("one document is needed, there are {}", documents.len()));
    };
    scantling_yaml::decode(&document.root).map_err(|error| {
        let text = scantling_yaml::text(bytes).unwrap_or_default();
        let (line, column) = scantling_yaml::LineIndex::new(&text).position(error.span.start);
        format!("line {line}, column {column}: {error}")
    })
}
