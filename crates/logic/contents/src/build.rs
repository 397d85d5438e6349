//! Images made from descriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::io;

use oci_spec::OciSpecError;
use oci_spec::image::{
    Config, Descriptor, History, HistoryBuilder, ImageConfiguration, ImageConfigurationBuilder, ImageIndex,
    ImageIndexBuilder, ImageManifest, MediaType, PlatformBuilder, RootFs, SCHEMA_VERSION,
};
use scantling_image::{Digest, ImageIdentity, Platform};

use crate::description::{DescriptionError, ImageDescription, LayerDescription};
use crate::documents::{CREATED, canonical, descriptor, manifest};
use crate::dpkg;
use crate::layer_reader::{ContentsReader, LayerError};
use crate::layer_writer::LayerFiles;
use crate::limits::Limits;
use crate::package::{Contents, Ecosystem, normalised};

/// Why an image was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The description is at fault.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The base has no image for a platform.
    #[error("the base {base} has no image for platform {platform}; it has {available}")]
    Platform {
        /// Root of the base.
        base: String,
        /// What was asked for.
        platform: String,
        /// What there is.
        available: String,
    },
    /// The base is incomplete or malformed.
    #[error("the base {base} cannot be used: {reason}")]
    Base {
        /// Root of the base.
        base: String,
        /// Why.
        reason: String,
    },
    /// A layer, of the base or just made, cannot be read.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A document or archive could not be written.
    #[error("cannot write the image: {0}")]
    Write(String),
}

impl From<OciSpecError> for BuildError {
    fn from(error: OciSpecError) -> Self {
        Self::Write(error.to_string())
    }
}

impl From<serde_json::Error> for BuildError {
    fn from(error: serde_json::Error) -> Self {
        Self::Write(error.to_string())
    }
}

impl From<fmt::Error> for BuildError {
    fn from(error: fmt::Error) -> Self {
        Self::Write(error.to_string())
    }
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::Write(error.to_string())
    }
}

/// The image of one platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltPlatform {
    /// The platform.
    pub platform: Platform,
    /// Its manifest.
    pub manifest: Digest,
    /// Its configuration.
    pub config: Digest,
    /// Its layers from the bottom, with their media types.
    pub layers: Vec<(Digest, String)>,
}

/// A whole image in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// Media type of the root.
    pub media_type: String,
    /// The root: an index, or the manifest of the only platform.
    pub root: Digest,
    /// Every document and layer, the root included: media type and bytes by digest.
    pub blobs: BTreeMap<Digest, (String, Vec<u8>)>,
    /// The platforms, in the order of the index.
    pub platforms: Vec<BuiltPlatform>,
}

impl BuiltImage {
    /// Reads an image that is stored somewhere, as a base for another; `fetch` gives media type and bytes of a digest. Entries of an
    /// index that are for no platform (attestations) are left out.
    pub fn read(
        media_type: &str,
        root: &Digest,
        mut fetch: impl FnMut(&Digest) -> Option<(String, Vec<u8>)>,
    ) -> Result<Self, BuildError> {
        let base = |reason: String| BuildError::Base { base: root.to_string(), reason };
        let mut blobs = BTreeMap::new();
        let mut get = |digest: &Digest, media_type: &str| -> Result<Vec<u8>, BuildError> {
            let (_, bytes) =
                fetch(digest).ok_or_else(|| base(format!("{media_type} {digest} is missing")))?;
            if !digest.verifies(&bytes) {
                return Err(base(format!("the content of {media_type} {digest} has another digest")));
            }
            blobs.insert(digest.clone(), (media_type.to_owned(), bytes.clone()));
            Ok(bytes)
        };
        let parse = |text: &str| Digest::parse(text).map_err(|error| base(error.to_string()));
        let top = get(root, media_type)?;
        let mut manifests = Vec::new();
        if is_index(media_type) {
            let index: ImageIndex =
                serde_json::from_slice(&top).map_err(|error| base(format!("index: {error}")))?;
            for entry in index.manifests() {
                let Some(stated) = entry.platform() else { continue };
                if stated.os().to_string() == "unknown" {
                    continue;
                }
                let platform = Platform::new(
                    &stated.os().to_string(),
                    &stated.architecture().to_string(),
                    stated.variant().as_deref(),
                )
                .map_err(|error| base(error.to_string()))?;
                let digest = parse(entry.digest().as_ref())?;
                let bytes = get(&digest, entry.media_type().as_ref())?;
                manifests.push((Some(platform), digest, bytes));
            }
        } else {
            manifests.push((None, root.clone(), top));
        }
        let mut platforms = Vec::new();
        for (stated, manifest, bytes) in manifests {
            let document: ImageManifest = serde_json::from_slice(&bytes)
                .map_err(|error| base(format!("manifest {manifest}: {error}")))?;
            let config = parse(document.config().digest().as_ref())?;
            let config_bytes = get(&config, document.config().media_type().as_ref())?;
            let configuration: ImageConfiguration = serde_json::from_slice(&config_bytes)
                .map_err(|error| base(format!("configuration {config}: {error}")))?;
            let platform = match stated {
                Some(platform) => platform,
                None => platform_of(&configuration).map_err(|error| base(error.to_string()))?,
            };
            let mut layers = Vec::new();
            for layer in document.layers() {
                let digest = parse(layer.digest().as_ref())?;
                get(&digest, layer.media_type().as_ref())?;
                layers.push((digest, layer.media_type().to_string()));
            }
            platforms.push(BuiltPlatform { platform, manifest, config, layers });
        }
        Ok(Self { media_type: media_type.to_owned(), root: root.clone(), blobs, platforms })
    }

    /// The identity class: every digest by which a node may name this image.
    pub fn identity(&self) -> ImageIdentity {
        let mut identity = ImageIdentity::default();
        if is_index(&self.media_type) {
            identity.index.insert(self.root.clone());
        }
        for platform in &self.platforms {
            identity.manifests.insert(platform.manifest.clone());
            identity.configs.insert(platform.config.clone());
        }
        identity
    }

    /// The contents of one platform's image, read from its layers.
    pub fn contents(&self, platform: &BuiltPlatform) -> Result<Contents, BuildError> {
        Ok(self.reader(platform)?.finish())
    }

    fn reader(&self, platform: &BuiltPlatform) -> Result<ContentsReader, BuildError> {
        let mut reader = ContentsReader::new(Limits::default());
        reader.config(self.bytes(&platform.config)?)?;
        for (layer, media_type) in &platform.layers {
            reader.layer(media_type, self.bytes(layer)?)?;
        }
        Ok(reader)
    }

    fn bytes(&self, digest: &Digest) -> Result<&[u8], BuildError> {
        self.blobs.get(digest).map(|(_, bytes)| bytes.as_slice()).ok_or_else(|| BuildError::Base {
            base: self.root.to_string(),
            reason: format!("{digest} is missing"),
        })
    }
}

fn is_index(media_type: &str) -> bool {
    matches!(MediaType::from(media_type), MediaType::ImageIndex)
        || media_type == "application/vnd.docker.distribution.manifest.list.v2+json"
}

fn platform_of(configuration: &ImageConfiguration) -> Result<Platform, scantling_image::PlatformError> {
    Platform::new(
        &configuration.os().to_string(),
        &configuration.architecture().to_string(),
        configuration.variant().as_deref(),
    )
}

/// Builds an image from its description, on a base if there is one. The same description and base give the same bytes.
pub fn build(description: &ImageDescription, base: Option<&BuiltImage>) -> Result<BuiltImage, BuildError> {
    description.check()?;
    let platforms: Vec<Platform> = match base {
        _ if !description.platforms.is_empty() => description.platforms.clone(),
        Some(base) => base.platforms.iter().map(|built| built.platform.clone()).collect(),
        None => vec![Platform::linux_amd64()],
    };
    let mut blobs = BTreeMap::new();
    let mut built = Vec::new();
    let mut entries = Vec::new();
    for platform in platforms {
        let mut maker = Maker::new(&platform, base)?;
        for layer in &description.layers {
            maker.add(layer)?;
        }
        let (one, descriptor) = maker.finish(description, &mut blobs)?;
        built.push(one);
        entries.push(descriptor);
    }
    let based_on_index =
        description.platforms.is_empty() && base.is_some_and(|base| is_index(&base.media_type));
    let (media_type, root) = match entries.as_slice() {
        [only] if !description.index && !based_on_index => {
            (only.media_type().to_string(), built.first().map(|one| one.manifest.clone()))
        }
        _ => {
            let index = ImageIndexBuilder::default()
                .schema_version(SCHEMA_VERSION)
                .media_type(MediaType::ImageIndex)
                .manifests(entries)
                .build()?;
            let root = store(&mut blobs, &MediaType::ImageIndex, canonical(&index)?);
            (MediaType::ImageIndex.to_string(), Some(root))
        }
    };
    let root = root.ok_or_else(|| BuildError::Write("the base has no platforms".to_owned()))?;
    Ok(BuiltImage { media_type, root, blobs, platforms: built })
}

/// Makes the image of one platform.
struct Maker {
    platform: Platform,
    /// What the layers so far come to; decides what a new layer has to take away.
    reader: ContentsReader,
    configuration: ImageConfiguration,
    layers: Vec<(Descriptor, Vec<u8>)>,
    history: Vec<History>,
    diff_ids: Vec<String>,
}

impl Maker {
    fn new(platform: &Platform, base: Option<&BuiltImage>) -> Result<Self, BuildError> {
        let mut maker = Self {
            platform: platform.clone(),
            reader: ContentsReader::new(Limits::default()),
            configuration: ImageConfigurationBuilder::default()
                .created(CREATED)
                .os(platform.os())
                .architecture(platform.architecture())
                .config(Config::default())
                .rootfs(RootFs::default())
                .build()?,
            layers: Vec::new(),
            history: Vec::new(),
            diff_ids: Vec::new(),
        };
        maker.configuration.set_variant(platform.variant().map(str::to_owned));
        let Some(base) = base else { return Ok(maker) };
        let from = base.platforms.iter().find(|built| built.platform == *platform).ok_or_else(|| {
            let available: Vec<String> =
                base.platforms.iter().map(|built| built.platform.to_string()).collect();
            BuildError::Platform {
                base: base.root.to_string(),
                platform: platform.to_string(),
                available: available.join(", "),
            }
        })?;
        maker.reader = base.reader(from)?;
        maker.configuration = serde_json::from_slice(base.bytes(&from.config)?)
            .map_err(|error| BuildError::Base { base: base.root.to_string(), reason: error.to_string() })?;
        maker.history = maker.configuration.history().clone().unwrap_or_default();
        maker.diff_ids.clone_from(maker.configuration.rootfs().diff_ids());
        for (digest, media_type) in &from.layers {
            let bytes = base.bytes(digest)?.to_vec();
            let media_type = MediaType::from(media_type.as_str());
            maker.layers.push((descriptor(&media_type, digest, bytes.len() as u64)?, bytes));
        }
        Ok(maker)
    }

    fn add(&mut self, layer: &LayerDescription) -> Result<(), BuildError> {
        let files = files(layer, &self.reader.clone().finish())?;
        let (written, bytes) = files.write()?;
        self.reader.layer(MediaType::ImageLayerGzip.as_ref(), bytes.as_slice())?;
        self.diff_ids.push(written.diff_id.to_string());
        self.history.push(HistoryBuilder::default().created(CREATED).created_by(layer.summary()).build()?);
        self.layers.push((descriptor(&MediaType::ImageLayerGzip, &written.digest, written.size)?, bytes));
        Ok(())
    }

    fn finish(
        mut self,
        description: &ImageDescription,
        blobs: &mut BTreeMap<Digest, (String, Vec<u8>)>,
    ) -> Result<(BuiltPlatform, Descriptor), BuildError> {
        let mut config = self.configuration.config().clone().unwrap_or_default();
        merge_config(&mut config, description);
        self.configuration.set_config(Some(config));
        self.configuration.set_history(Some(self.history));
        self.configuration.rootfs_mut().set_diff_ids(self.diff_ids);
        let config_bytes = canonical(&self.configuration)?;
        let layers = self.layers.iter().map(|(descriptor, _)| descriptor.clone()).collect();
        let manifest_bytes = canonical(&manifest(&config_bytes, layers)?)?;
        let manifest_digest = Digest::of(&manifest_bytes);
        let mut entry = descriptor(&MediaType::ImageManifest, &manifest_digest, manifest_bytes.len() as u64)?;
        let mut stated = PlatformBuilder::default()
            .os(self.platform.os())
            .architecture(self.platform.architecture())
            .build()?;
        stated.set_variant(self.platform.variant().map(str::to_owned));
        entry.set_platform(Some(stated));
        let mut layers = Vec::new();
        for (descriptor, bytes) in self.layers {
            let media_type = descriptor.media_type().clone();
            layers.push((store(blobs, &media_type, bytes), media_type.to_string()));
        }
        let config = store(blobs, &MediaType::ImageConfig, config_bytes);
        let manifest = store(blobs, &MediaType::ImageManifest, manifest_bytes);
        Ok((BuiltPlatform { platform: self.platform, manifest, config, layers }, entry))
    }
}

fn merge_config(config: &mut Config, description: &ImageDescription) {
    let mut env = config.env().clone().unwrap_or_default();
    for entry in &description.env {
        let name = entry.split_once('=').map_or(entry.as_str(), |(name, _)| name);
        let is_same = |other: &String| other.split_once('=').is_some_and(|(other, _)| other == name);
        match env.iter_mut().find(|other| is_same(other)) {
            Some(other) => other.clone_from(entry),
            None => env.push(entry.clone()),
        }
    }
    config.set_env((!env.is_empty()).then_some(env));
    let mut labels = config.labels().clone().unwrap_or_default();
    labels.extend(description.labels.clone());
    config.set_labels((!labels.is_empty()).then_some(labels));
    if !description.cmd.is_empty() {
        config.set_cmd(Some(description.cmd.clone()));
    }
    if !description.entrypoint.is_empty() {
        config.set_entrypoint(Some(description.entrypoint.clone()));
    }
}

/// The files of a layer on top of what is there already.
fn files(layer: &LayerDescription, below: &Contents) -> Result<LayerFiles, BuildError> {
    let mut files = LayerFiles::default();
    match layer {
        LayerDescription::Files(described) => {
            for (path, text) in described {
                files.files.insert(relative(path).to_owned(), text.clone().into_bytes());
            }
        }
        LayerDescription::Remove(paths) => paths.iter().for_each(|path| files.whiteout(relative(path))),
        LayerDescription::Python { path, packages } => {
            python_files(relative(path), packages, below, &mut files);
        }
        LayerDescription::Conda { path, packages } => {
            conda_files(&format!("{}/conda-meta", relative(path)), packages, below, &mut files)?;
        }
        LayerDescription::Dpkg { packages } => {
            files.files.insert(dpkg::STATUS.to_owned(), dpkg_status(packages, below)?.into_bytes());
        }
    }
    Ok(files)
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// As pip leaves them: `METADATA` and `RECORD` in a folder named after the distribution, none of an older version beside it.
fn python_files(site: &str, packages: &BTreeMap<String, String>, below: &Contents, files: &mut LayerFiles) {
    let names: BTreeSet<String> = packages.keys().map(|name| normalised(name)).collect();
    let mut folders = BTreeSet::new();
    for (name, version) in packages {
        let folder = format!("{site}/{}-{version}.dist-info", normalised(name).replace('-', "_"));
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
        files.files.insert(format!("{folder}/METADATA"), metadata.into_bytes());
        files.files.insert(format!("{folder}/INSTALLER"), b"pip\n".to_vec());
        folders.insert(folder);
    }
    for old in &below.packages {
        if old.ecosystem != Ecosystem::Python || !names.contains(&normalised(&old.name)) {
            continue;
        }
        let Some(place) = old.path.strip_prefix(site).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        // The first component: the metadata's folder, or the file itself.
        let entry = format!("{site}/{}", place.split('/').next().unwrap_or(place));
        if place.split('/').count() <= 2 && !folders.contains(&entry) {
            files.whiteout(&entry);
        }
    }
}

/// As conda leaves them: one record for each package, none of an older version beside it.
fn conda_files(
    meta: &str,
    packages: &BTreeMap<String, String>,
    below: &Contents,
    files: &mut LayerFiles,
) -> Result<(), BuildError> {
    let names: BTreeSet<String> = packages.keys().map(|name| normalised(name)).collect();
    for (name, version) in packages {
        let record = serde_json::json!({
            "build": "0", "build_number": 0, "files": [], "name": name, "version": version,
        });
        files.files.insert(format!("{meta}/{name}-{version}-0.json"), serde_json::to_vec(&record)?);
    }
    for old in &below.packages {
        let here = old.path.rsplit_once('/').is_some_and(|(folder, _)| folder == meta);
        if here
            && old.ecosystem == Ecosystem::Conda
            && names.contains(&normalised(&old.name))
            && !files.files.contains_key(&old.path)
        {
            files.whiteout(&old.path);
        }
    }
    Ok(())
}

/// dpkg's list is one file, so a layer that adds to it repeats what was there (name and version; other fields are not kept).
fn dpkg_status(packages: &BTreeMap<String, String>, below: &Contents) -> Result<String, BuildError> {
    let mut all: BTreeMap<&str, &str> = BTreeMap::new();
    for old in below.packages.iter().filter(|old| old.path == dpkg::STATUS) {
        all.insert(&old.name, &old.version);
    }
    all.extend(packages.iter().map(|(name, version)| (name.as_str(), version.as_str())));
    let mut status = String::new();
    for (name, version) in all {
        writeln!(
            status,
            "Package: {name}\nStatus: install ok installed\nArchitecture: all\nVersion: {version}\n"
        )?;
    }
    Ok(status)
}

fn store(blobs: &mut BTreeMap<Digest, (String, Vec<u8>)>, media_type: &MediaType, bytes: Vec<u8>) -> Digest {
    let digest = Digest::of(&bytes);
    blobs.insert(digest.clone(), (media_type.to_string(), bytes));
    digest
}
