//! The documents of an image: configuration, manifest, and what describes them.

use std::collections::BTreeMap;

use oci_spec::image::{
    ConfigBuilder, Descriptor, HistoryBuilder, ImageConfigurationBuilder, ImageManifest,
    ImageManifestBuilder, MediaType, RootFsBuilder, SCHEMA_VERSION,
};
use scantling_image::{Digest, Platform};
use serde::Serialize;
use serde_json::Value;

use crate::build::BuildError;
use crate::layer_stream::WrittenLayer;

/// When every image was made: the same bytes must have the same digest tomorrow.
pub(crate) const CREATED: &str = "1970-01-01T00:00:00Z";

/// How an image is run, as its configuration says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageSettings {
    /// `UID` or `UID:GID`; empty: 0.
    pub user: String,
    /// The folder in which it starts; empty: the root.
    pub working_dir: String,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// What follows the entrypoint if nothing else is given.
    pub cmd: Vec<String>,
    /// The ports that it listens on, such as `8888/tcp`.
    pub ports: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// The documents of an image for one platform, whose layers are kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageDocuments {
    /// The manifest (`application/vnd.oci.image.manifest.v1+json`).
    pub manifest: Vec<u8>,
    /// The configuration (`application/vnd.oci.image.config.v1+json`).
    pub config: Vec<u8>,
}

impl ImageDocuments {
    /// Writes the documents of an image with these layers, from the bottom, each with what made it. The same input gives the same
    /// bytes.
    pub fn new(
        platform: &Platform,
        settings: &ImageSettings,
        layers: &[(WrittenLayer, String)],
    ) -> Result<Self, BuildError> {
        let mut config = ConfigBuilder::default().build()?;
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let list = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
        config.set_user(some(&settings.user));
        config.set_working_dir(some(&settings.working_dir));
        config.set_entrypoint(list(&settings.entrypoint));
        config.set_cmd(list(&settings.cmd));
        config.set_exposed_ports(list(&settings.ports));
        config.set_env(list(&settings.env.iter().map(|(name, value)| format!("{name}={value}")).collect()));
        if !settings.labels.is_empty() {
            config.set_labels(Some(settings.labels.clone().into_iter().collect()));
        }
        let mut history = Vec::new();
        let mut descriptors = Vec::new();
        for (layer, made_by) in layers {
            history.push(HistoryBuilder::default().created(CREATED).created_by(made_by.as_str()).build()?);
            descriptors.push(descriptor(&MediaType::ImageLayerGzip, &layer.digest, layer.size)?);
        }
        let diff_ids: Vec<String> = layers.iter().map(|(layer, _)| layer.diff_id.to_string()).collect();
        let mut configuration = ImageConfigurationBuilder::default()
            .created(CREATED)
            .os(platform.os())
            .architecture(platform.architecture())
            .config(config)
            .rootfs(RootFsBuilder::default().typ("layers").diff_ids(diff_ids).build()?)
            .history(history)
            .build()?;
        configuration.set_variant(platform.variant().map(str::to_owned));
        let config = canonical(&configuration)?;
        let manifest = canonical(&manifest(&config, descriptors)?)?;
        Ok(Self { manifest, config })
    }
}

/// The manifest of a configuration and layers.
pub(crate) fn manifest(config: &[u8], layers: Vec<Descriptor>) -> Result<ImageManifest, BuildError> {
    let config = descriptor(&MediaType::ImageConfig, &Digest::of(config), config.len() as u64)?;
    Ok(ImageManifestBuilder::default()
        .schema_version(SCHEMA_VERSION)
        .media_type(MediaType::ImageManifest)
        .config(config)
        .layers(layers)
        .build()?)
}

pub(crate) fn descriptor(
    media_type: &MediaType,
    digest: &Digest,
    size: u64,
) -> Result<Descriptor, BuildError> {
    let digest: oci_spec::image::Digest = digest.to_string().parse()?;
    Ok(Descriptor::new(media_type.clone(), size, digest))
}

/// JSON with sorted keys: the library's types hold labels in hash maps.
pub(crate) fn canonical(document: &impl Serialize) -> Result<Vec<u8>, BuildError> {
    Ok(serde_json::to_vec(&sorted(serde_json::to_value(document)?))?)
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries: BTreeMap<String, Value> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        value => value,
    }
}
