//! The catalogue of notebook images: what may be selected, and what it is.

use std::collections::BTreeSet;

use scantling_image::{Digest, Reference};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::{View as _, view};

view!(
    /// One selectable `stream:tag`.
    NotebookImage, "scantling.dev", "NotebookImage"
);

/// A package as the catalogue shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PackageVersion {
    /// Its name.
    pub name: String,
    /// Its version, whole.
    pub version: String,
}

/// What can be selected, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(has(self.recommended) && self.recommended && has(self.outdated) && self.outdated)",
    "message": "an outdated image cannot be the recommended one",
}]))]
pub struct NotebookImageSpec {
    /// What spawners write, `stream:tag`.
    #[schemars(length(min = 1, max = 512))]
    pub selection: String,
    /// What screens show.
    #[serde(default)]
    pub title: String,
    /// What it is for, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The image, by digest.
    #[schemars(with = "String", regex(pattern = "^[^@]+@sha(256:[0-9a-f]{64}|512:[0-9a-f]{128})$"))]
    pub image: Reference,
    /// Other written names whose pods count as this image, such as the tag in the cluster's own registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub aliases: Vec<String>,
    /// What the image contains, read from its bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageVersion>,
    /// Every digest by which a node may name this image: index, manifests of platforms, configurations.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "BTreeSet<String>")]
    pub digests: BTreeSet<Digest>,
    /// The release that this comes from.
    #[serde(default)]
    pub release: String,
    /// The one that screens offer first. At most one of a stream is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recommended: bool,
    /// Kept for those who use it; screens offer it to nobody else.
    #[serde(default, skip_serializing_if = "is_false")]
    pub outdated: bool,
    /// The resource that it needs a node to have, such as `nvidia.com/gpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What is known of the use of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotebookImageStatus {
    /// How many notebooks select it or run it, stopped ones included.
    #[serde(default)]
    pub in_use: u32,
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
