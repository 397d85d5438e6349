//! OCI layouts: an image as a folder.

use std::io::{BufReader, Read};

use camino::{Utf8Path, Utf8PathBuf};
use scantling_contents::{Contents, ContentsReader, ImageDocuments, Limits, WrittenLayer};
use scantling_image::{Digest, Reference};
use scantling_registry::{Copied, RegistryClient, StoredImage};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::ImagesError;
use crate::name::ImageName;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What was built, kept beside the layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Built {
    /// What it was built from: recipe, lock, and all of the image below.
    pub(crate) key: Digest,
    /// The image's digest.
    pub(crate) digest: Digest,
    /// Its configuration.
    pub(crate) config: Digest,
    /// The layers, from the bottom.
    pub(crate) layers: Vec<BuiltLayer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BuiltLayer {
    pub(crate) digest: Digest,
    pub(crate) diff_id: Digest,
    pub(crate) size: u64,
    pub(crate) archive_size: u64,
    pub(crate) made_by: String,
}

impl BuiltLayer {
    pub(crate) fn new(layer: WrittenLayer, made_by: String) -> Self {
        let WrittenLayer { digest, diff_id, size, archive_size } = layer;
        Self { digest, diff_id, size, archive_size, made_by }
    }

    pub(crate) fn written(&self) -> (WrittenLayer, String) {
        let Self { digest, diff_id, size, archive_size, made_by } = self.clone();
        (WrittenLayer { digest, diff_id, size, archive_size }, made_by)
    }
}

/// An image that was made: an OCI layout on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its name and version.
    pub name: ImageName,
    /// The digest of its manifest.
    pub digest: Digest,
    /// The OCI layout.
    pub folder: Utf8PathBuf,
    /// The layers from the bottom: digest, compressed and unpacked size in bytes.
    pub layers: Vec<(Digest, u64, u64)>,
    /// The image that it stands on.
    pub below: Option<ImageName>,
    /// True if it was there already.
    pub reused: bool,
}

impl Image {
    /// The compressed size of all layers in bytes.
    pub fn size(&self) -> u64 {
        self.layers.iter().map(|(_, size, _)| size).sum()
    }

    /// Pushes it, piece by piece. Layers that the image below brought to the same registry are taken from there; `below` is its
    /// repository. What is there already is not sent again.
    pub async fn push(
        &self,
        client: &RegistryClient,
        below: Option<&str>,
        to: &Reference,
    ) -> Result<Copied, ImagesError> {
        let path = self.blob(&self.digest);
        let manifest = std::fs::read(&path).map_err(ImagesError::file(&path))?;
        let config = self.config(&manifest)?;
        let mut blobs: Vec<(Digest, u64)> =
            self.layers.iter().map(|(digest, size, _)| (digest.clone(), *size)).collect();
        blobs.push(config);
        let image = StoredImage { media_type: MANIFEST, manifest: &manifest, blobs: &blobs };
        let open = |digest: &Digest| std::fs::File::open(self.blob(digest));
        Ok(client.push_stored(&image, open, below, to).await?)
    }

    /// What is in it, read from its layers.
    pub fn contents(&self) -> Result<Contents, ImagesError> {
        let mut reader = ContentsReader::new(Limits::default());
        let path = self.blob(&self.digest);
        let manifest = std::fs::read(&path).map_err(ImagesError::file(&path))?;
        let config = self.blob(&self.config(&manifest)?.0);
        reader.config(&std::fs::read(&config).map_err(ImagesError::file(&config))?)?;
        for (layer, _, _) in &self.layers {
            let path = self.blob(layer);
            let file = std::fs::File::open(&path).map_err(ImagesError::file(&path))?;
            reader.layer(LAYER, BufReader::with_capacity(1 << 16, file))?;
        }
        Ok(reader.finish())
    }

    /// The configuration's digest and size, from the manifest.
    fn config(&self, manifest: &[u8]) -> Result<(Digest, u64), ImagesError> {
        #[derive(Deserialize)]
        struct Manifest {
            config: Config,
        }
        #[derive(Deserialize)]
        struct Config {
            digest: Digest,
            size: u64,
        }
        let manifest: Manifest = serde_json::from_slice(manifest).map_err(|error| ImagesError::Recipe {
            path: self.blob(&self.digest),
            problem: error.to_string(),
        })?;
        Ok((manifest.config.digest, manifest.config.size))
    }

    fn blob(&self, digest: &Digest) -> Utf8PathBuf {
        blob(&self.folder, digest)
    }
}

pub(crate) fn blob(folder: &Utf8Path, digest: &Digest) -> Utf8PathBuf {
    folder.join("blobs").join("sha256").join(digest.hex())
}

/// Writes what a layout has besides layers.
pub(crate) fn write(
    folder: &Utf8Path,
    name: &ImageName,
    documents: &ImageDocuments,
) -> Result<(), ImagesError> {
    let write =
        |path: Utf8PathBuf, bytes: &[u8]| std::fs::write(&path, bytes).map_err(ImagesError::file(&path));
    for document in [&documents.manifest, &documents.config] {
        write(blob(folder, &Digest::of(document)), document)?;
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": MANIFEST,
            "digest": Digest::of(&documents.manifest),
            "size": documents.manifest.len(),
            "platform": {"os": "linux", "architecture": "amd64"},
            "annotations": {"org.opencontainers.image.ref.name": name.version()},
        }],
    });
    write(folder.join("index.json"), index.to_string().as_bytes())?;
    write(folder.join("oci-layout"), b"{\"imageLayoutVersion\":\"1.0.0\"}")
}

/// Has a layer of another layout in this one: the same file where the file system can, else a copy.
pub(crate) fn share(from: &Utf8Path, to: &Utf8Path, digest: &Digest) -> Result<(), ImagesError> {
    let (from, to) = (blob(from, digest), blob(to, digest));
    if std::fs::hard_link(&from, &to).is_ok() {
        return Ok(());
    }
    std::fs::copy(&from, &to).map(|_| ()).map_err(ImagesError::file(&to))
}

/// Reads a small file, if it is there.
pub(crate) fn read_if_there(path: &Utf8Path) -> Option<Vec<u8>> {
    // What was built is known from here; anything that cannot be read is built anew.
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(1 << 20).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
