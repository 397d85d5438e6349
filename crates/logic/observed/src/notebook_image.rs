//! The catalogue of notebook images: what may be selected, and what it is.

use std::collections::BTreeSet;

use scantling_image::{Digest, Reference};
use serde::{Deserialize, Serialize};

use crate::view::{View as _, view};

view!(
    /// One selectable `stream:tag`.
    NotebookImage, "scantling.dev", "NotebookImage"
);

/// A package as the catalogue shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PackageVersion {
    /// Its name.
    pub name: String,
    /// Its version, whole.
    pub version: String,
}

/// The spec of a [`NotebookImage`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotebookImageSpec {
    /// What spawners write: `stream:tag`.
    pub selection: String,
    /// What screens show.
    #[serde(default)]
    pub title: String,
    /// The image, by digest.
    pub image: Reference,
    /// Other written names whose pods count as this image, such as the tag in the cluster's own registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What the image contains, read from its bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageVersion>,
    /// The identity class: every digest by which a node may name this image.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub digests: BTreeSet<Digest>,
    /// The release that this comes from.
    #[serde(default)]
    pub release: String,
}

/// Why a catalogue entry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// It does not parse.
    #[error("the spec does not parse: {0}")]
    Parse(#[from] serde_json::Error),
    /// The image can change under its name.
    #[error("the image {0} has no digest; an entry of the catalogue names what it means")]
    NotPinned(String),
}

impl NotebookImage<'_> {
    /// Its spec, read and checked.
    pub fn spec(self) -> Result<NotebookImageSpec, SpecError> {
        let spec = self.object().get("spec").unwrap_or(&serde_json::Value::Null);
        let spec = NotebookImageSpec::deserialize(spec)?;
        if spec.image.is_pinned() {
            Ok(spec)
        } else {
            Err(SpecError::NotPinned(spec.image.written().to_owned()))
        }
    }
}

impl NotebookImageSpec {
    /// Every digest of the image, the written one included.
    pub fn identity(&self) -> BTreeSet<&Digest> {
        self.digests.iter().chain(self.image.digest()).collect()
    }

    /// Does a pod with this written image count as this image?
    pub fn is_named(&self, written: &Reference) -> bool {
        let same = |other: &Reference| other.canonical() == written.canonical();
        same(&self.image)
            || self.aliases.iter().any(|alias| Reference::parse(alias).is_ok_and(|alias| same(&alias)))
    }
}
