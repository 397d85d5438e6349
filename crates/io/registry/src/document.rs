//! Indexes, manifests and configurations, read from bytes that were checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use scantling_image::{Digest, Platform};
use serde::Deserialize;

/// Media types that are asked for, indexes first.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";
/// Largest manifest, in bytes: the limit that the distribution specification sets.
pub(crate) const MANIFEST_MAX: usize = 4 * 1024 * 1024;
/// Largest configuration, in bytes; those of large images with long histories have some tens of KiB.
pub(crate) const CONFIG_MAX: usize = 8 * 1024 * 1024;
/// Most entries of an index; the largest in use have some tens, attestations included.
const ENTRIES_MAX: usize = 512;
/// Most layers; container runtimes stop at 127.
const LAYERS_MAX: usize = 256;
/// Most bytes of documents that are remembered.
const REMEMBERED_MAX: usize = 64 * 1024 * 1024;

/// A manifest or index: digest, media type, bytes, and what they say.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) digest: Digest,
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
    pub(crate) content: Content,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Index(Vec<Entry>),
    Manifest(Manifest),
}

/// One entry of an index. The platform is missing for what is no image (attestations).
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) descriptor: Descriptor,
    pub(crate) platform: Option<Platform>,
}

#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// What a document says of a piece of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

impl Descriptor {
    /// Layers that registries need not have (`nondistributable`, `foreign`).
    pub(crate) fn is_foreign(&self) -> bool {
        self.media_type.contains("nondistributable") || self.media_type.contains(".foreign.")
    }
}

#[derive(Deserialize)]
struct RawDocument {
    #[serde(rename = "schemaVersion")]
    schema_version: Option<u32>,
    #[serde(rename = "mediaType")]
    media_type: Option<String>,
    manifests: Option<Vec<RawDescriptor>>,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    #[serde(rename = "fsLayers")]
    fs_layers: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct RawDescriptor {
    #[serde(rename = "mediaType", default)]
    media_type: String,
    digest: String,
    size: i64,
    platform: Option<RawPlatform>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct RawPlatform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    variant: Option<String>,
}

impl RawPlatform {
    fn read(&self) -> Option<Platform> {
        if self.os == "unknown" || self.architecture == "unknown" {
            return None;
        }
        Platform::new(&self.os, &self.architecture, self.variant.as_deref()).ok()
    }
}

impl RawDescriptor {
    fn read(&self) -> Result<Descriptor, String> {
        let digest = Digest::parse(&self.digest).map_err(|error| error.to_string())?;
        let size = u64::try_from(self.size).map_err(|_| format!("{digest} has the size {}", self.size))?;
        Ok(Descriptor { media_type: self.media_type.clone(), digest, size })
    }
}

/// Reads a manifest or index. The media type of the document itself counts before the one of the answer.
pub(crate) fn read(digest: Digest, answered_type: Option<&str>, bytes: Bytes) -> Result<Document, String> {
    let raw: RawDocument = serde_json::from_slice(&bytes).map_err(|error| format!("no manifest: {error}"))?;
    if raw.schema_version == Some(1) || raw.fs_layers.is_some() {
        return Err("a manifest of schema 1, which runtimes no longer read; push the image again".to_owned());
    }
    let answered_type = answered_type.map(|text| text.split(';').next().unwrap_or(text).trim());
    if let (Some(own), Some(answered)) = (&raw.media_type, answered_type)
        && own != answered
        && is_known(answered)
    {
        return Err(format!("the registry calls it {answered}, the document calls itself {own}"));
    }
    let media_type = raw.media_type.as_deref().or(answered_type.filter(|text| is_known(text)));
    // A document that is both could be read as either.
    let content = match (raw.manifests, raw.config, raw.layers) {
        (Some(entries), None, None) => Content::Index(index(&entries)?),
        (None, Some(config), layers) => Content::Manifest(manifest(&config, &layers.unwrap_or_default())?),
        (Some(_), _, _) => return Err("index and manifest in one document".to_owned()),
        (None, None, _) => return Err("neither an index nor a manifest".to_owned()),
    };
    let fallback = match content {
        Content::Index(_) => "application/vnd.oci.image.index.v1+json",
        Content::Manifest(_) => "application/vnd.oci.image.manifest.v1+json",
    };
    let media_type = media_type.unwrap_or(fallback).to_owned();
    if is_index(&media_type) != matches!(content, Content::Index(_)) && is_known(&media_type) {
        return Err(format!("the content is not what its media type {media_type} says"));
    }
    Ok(Document { digest, media_type, bytes, content })
}

fn index(entries: &[RawDescriptor]) -> Result<Vec<Entry>, String> {
    if entries.len() > ENTRIES_MAX {
        return Err(format!("an index of {} entries, at most {ENTRIES_MAX} are read", entries.len()));
    }
    entries
        .iter()
        .map(|entry| {
            let attests = entry
                .annotations
                .as_ref()
                .is_some_and(|annotations| annotations.contains_key("vnd.docker.reference.type"));
            let platform = entry.platform.as_ref().filter(|_| !attests).and_then(RawPlatform::read);
            Ok(Entry { descriptor: entry.read()?, platform })
        })
        .collect()
}

fn manifest(config: &RawDescriptor, layers: &[RawDescriptor]) -> Result<Manifest, String> {
    if layers.len() > LAYERS_MAX {
        return Err(format!("{} layers, at most {LAYERS_MAX} are read", layers.len()));
    }
    let layers = layers.iter().map(RawDescriptor::read).collect::<Result<_, _>>()?;
    Ok(Manifest { config: config.read()?, layers })
}

fn is_index(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/vnd.oci.image.index.v1+json"
            | "application/vnd.docker.distribution.manifest.list.v2+json"
    )
}

fn is_known(media_type: &str) -> bool {
    is_index(media_type)
        || matches!(
            media_type,
            "application/vnd.oci.image.manifest.v1+json"
                | "application/vnd.docker.distribution.manifest.v2+json"
        )
}

/// The platform that a configuration is for; `None` if it is no image's.
pub(crate) fn config_platform(bytes: &[u8]) -> Result<Option<Platform>, String> {
    let raw: RawPlatform =
        serde_json::from_slice(bytes).map_err(|error| format!("no configuration: {error}"))?;
    Ok(raw.read())
}

/// Documents seen before, by digest. Their content cannot change; that a registry still has them is asked each time.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    known: BTreeMap<Digest, Arc<Document>>,
    bytes: usize,
}

impl Documents {
    pub(crate) fn get(&self, digest: &Digest) -> Option<Arc<Document>> {
        self.known.get(digest).cloned()
    }

    pub(crate) fn put(&mut self, document: &Arc<Document>) {
        if self.bytes + document.bytes.len() > REMEMBERED_MAX {
            self.known.clear();
            self.bytes = 0;
        }
        if self.known.insert(document.digest.clone(), Arc::clone(document)).is_none() {
            self.bytes += document.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn descriptor() -> serde_json::Value {
        json!({"mediaType": "application/vnd.oci.image.config.v1+json", "digest": Digest::of(b"x"), "size": 1})
    }

    #[test]
    fn what_is_no_manifest_says_why() {
        let check = |value: serde_json::Value, answered: Option<&str>, part: &str| {
            let error = read(Digest::of(b""), answered, Bytes::from(value.to_string())).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
        };
        let oci = "application/vnd.oci.image.manifest.v1+json";
        let list = "application/vnd.oci.image.index.v1+json";
        check(json!([]), None, "no manifest");
        check(json!({"schemaVersion": 1, "fsLayers": []}), None, "schema 1");
        check(json!({"schemaVersion": 2}), None, "neither");
        check(json!({"manifests": [], "config": descriptor(), "layers": []}), None, "in one document");
        check(json!({"manifests": [], "layers": []}), None, "in one document");
        check(json!({"mediaType": oci, "config": descriptor()}), Some(list), "calls itself");
        check(json!({"config": descriptor()}), Some(list), "not what its media type");
        check(json!({"config": {"digest": "sha256:1", "size": 1}}), None, "64 hexadecimal");
        check(json!({"config": {"digest": Digest::of(b""), "size": -1}}), None, "the size -1");
        check(json!({"config": descriptor(), "layers": vec![descriptor(); 257]}), None, "257 layers");
        check(json!({"manifests": vec![descriptor(); 513]}), None, "513 entries");
    }

    #[test]
    fn attestations_have_no_platform() {
        let mut attestation = descriptor();
        attestation["platform"] = json!({"os": "unknown", "architecture": "unknown"});
        let mut annotated = descriptor();
        annotated["platform"] = json!({"os": "linux", "architecture": "amd64"});
        annotated["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
        let mut image = descriptor();
        image["platform"] = json!({"os": "linux", "architecture": "arm64", "variant": "v8"});
        let value = json!({"manifests": [attestation, annotated, image]});
        let document = read(Digest::of(b""), None, Bytes::from(value.to_string())).unwrap();
        let Content::Index(entries) = document.content else { unreachable!("an index was written") };
        let platforms: Vec<_> =
            entries.iter().map(|entry| entry.platform.as_ref().map(ToString::to_string)).collect();
        assert_eq!(platforms, [None, None, Some("linux/arm64".to_owned())]);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,60}") {
            let _ = read(Digest::of(b""), None, Bytes::from(text.clone()));
            let _ = config_platform(text.as_bytes());
        }
    }
}
