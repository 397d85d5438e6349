//! What registries hold, and what a build of a source makes.

use scantling_contents::ImageDescription;
use serde::Deserialize;

/// The file of images of an example.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    /// Parts that are used several times; nothing reads it but YAML's own aliases.
    #[serde(default, rename = ".packages")]
    _packages: serde::de::IgnoredAny,
    /// Images that exist from the start.
    #[serde(default)]
    pub images: Vec<ImageSource>,
    /// What building a source on the cluster makes.
    #[serde(default)]
    pub builds: Vec<BuildDescription>,
}

/// An image and the names that it is published under.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageSource {
    /// A name for it within the example.
    #[serde(default)]
    pub id: Option<String>,
    /// Names with a tag, each in the registry that it begins with.
    pub push: Vec<String>,
    /// What is in it.
    pub image: ImageDescription,
}

/// What building a source makes: the layers that come on top of the base image.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildDescription {
    /// What a `BuildConfig` names.
    pub source: Source,
    /// How long the build takes.
    pub minutes: u32,
    /// What it adds.
    pub image: ImageDescription,
}

/// A source of a build.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// The repository.
    pub uri: String,
    /// Tag, branch or commit.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Folder within it.
    #[serde(default)]
    pub context_dir: Option<String>,
}
