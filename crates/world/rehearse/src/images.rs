//! The example's images, made when the rehearsal starts; and what is inside an image that a registry holds.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use scantling_contents::{BuiltImage, Contents, ContentsReader, Limits};
use scantling_image::{Digest, ImageIdentity, Platform, Reference};
use scantling_registry_server::{Pushed, RegistryServer};
use serde_json::Value;

use crate::scenario::Images;

/// The images of an example, built.
pub struct BuiltImages {
    images: Vec<Named>,
}

struct Named {
    id: Option<String>,
    push: Vec<Reference>,
    built: Pushed,
}

impl BuiltImages {
    /// Builds every image. The bytes follow from the description alone.
    pub fn build(images: &Images) -> Result<Self, String> {
        let images = images
            .images
            .iter()
            .map(|source| {
                let name = source.id.clone().or_else(|| source.push.first().cloned()).unwrap_or_default();
                let built = scantling_contents::build(&source.image, None)
                    .map_err(|error| format!("image {name}: {error}"))?;
                let push = source
                    .push
                    .iter()
                    .map(|text| match Reference::parse(text) {
                        Ok(reference) if reference.tag().is_some() => Ok(reference),
                        Ok(_) => Err(format!(
                            "image {name}: push: {text} has no tag; an image is published under one"
                        )),
                        Err(error) => Err(format!("image {name}: push: {error}")),
                    })
                    .collect::<Result<_, _>>()?;
                Ok(Named { id: source.id.clone(), push, built: pushed(built) })
            })
            .collect::<Result<Vec<Named>, String>>()?;
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for image in &images {
            if let Some(id) = image.id.as_ref().filter(|id| !ids.insert((*id).clone())) {
                return Err(format!("two images have the id {id:?}"));
            }
            if let Some(name) = image.push.iter().find(|name| !names.insert(name.canonical())) {
                return Err(format!("two images are pushed as {}", name.written()));
            }
        }
        Ok(Self { images })
    }

    /// A registry that holds every image under every name that it is published by.
    pub fn registry(&self) -> Result<RegistryServer, String> {
        let mut registry = RegistryServer::new();
        for image in &self.images {
            for reference in &image.push {
                publish(&mut registry, reference, &image.built)?;
            }
        }
        Ok(registry)
    }

    /// Publishes the image of that `id` under one more name, and returns its digest.
    pub fn push(&self, registry: &mut RegistryServer, id: &str, to: &Reference) -> Result<Digest, String> {
        let image = self
            .images
            .iter()
            .find(|image| image.id.as_deref() == Some(id))
            .ok_or_else(|| format!("promote: there is no image with id {id:?}"))?;
        publish(registry, to, &image.built)?;
        Ok(image.built.root.clone())
    }

    /// Every published name with its digest, and the `id` of its image.
    pub fn names(&self) -> impl Iterator<Item = (Option<&str>, &Reference, &Digest)> {
        self.images
            .iter()
            .flat_map(|image| image.push.iter().map(|name| (image.id.as_deref(), name, &image.built.root)))
    }
}

fn publish(registry: &mut RegistryServer, to: &Reference, image: &Pushed) -> Result<(), String> {
    registry
        .push(to.registry(), to.repository(), to.effective_tag(), image)
        .map_err(|error| format!("{}: {error}", to.written()))
}

fn pushed(built: BuiltImage) -> Pushed {
    let blobs = built
        .blobs
        .into_iter()
        .map(|(digest, (media_type, bytes))| (digest, media_type, Bytes::from(bytes)))
        .collect();
    Pushed { media_type: built.media_type, root: built.root, blobs }
}

/// What a registry holds of one image, read from its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    /// Every digest that names it.
    pub identity: ImageIdentity,
    /// What is in it; absent if a layer is missing or can't be read.
    pub contents: Option<Contents>,
    /// What is missing.
    pub missing: Vec<String>,
    /// What it runs on, as its index or its configuration says.
    pub platforms: Vec<Platform>,
}

/// Reads images from a registry's bytes, each digest once. What was read stays known when the registry loses it, as an
/// image that still runs somewhere does.
#[derive(Default)]
pub(crate) struct Library {
    known: BTreeMap<Digest, Held>,
}

impl Library {
    /// What that digest is, wherever a host has it. Absent if none has.
    pub(crate) fn look_up(&mut self, registry: &RegistryServer, digest: &Digest) -> Option<Held> {
        if let Some(known) = self.known.get(digest) {
            return Some(known.clone());
        }
        let places: Vec<(String, String)> = registry
            .hosts()
            .flat_map(|host| registry.repositories(host).map(move |name| (host.to_owned(), name.to_owned())))
            .collect();
        let held = places.iter().find_map(|(host, name)| read(registry, host, name, digest));
        if let Some(held) = &held {
            self.known.insert(digest.clone(), held.clone());
        }
        held
    }
}

/// What one repository holds of an image.
pub(crate) fn read(registry: &RegistryServer, host: &str, repository: &str, digest: &Digest) -> Option<Held> {
    let (_, bytes) = registry.manifest(host, repository, digest)?;
    let root: Value = serde_json::from_slice(bytes).ok()?;
    let mut held = Held::default();
    let manifests: Vec<(Digest, Value)> = if let Some(list) = root.get("manifests").and_then(Value::as_array)
    {
        held.identity.index.insert(digest.clone());
        let mut found = Vec::new();
        for entry in list {
            let Some(child) = digest_of(entry) else {
                held.missing.push("an entry of its index that has no digest".to_owned());
                continue;
            };
            held.platforms.extend(entry.get("platform").and_then(platform_of));
            match registry.manifest(host, repository, &child) {
                Some((_, bytes)) => {
                    found.push((child, serde_json::from_slice(bytes).unwrap_or_default()));
                }
                None => held.missing.push(format!("manifest {child}")),
            }
        }
        found
    } else {
        let config = root.get("config").and_then(digest_of);
        let config = config.and_then(|config| registry.blob(host, repository, &config));
        let config: Option<Value> = config.and_then(|bytes| serde_json::from_slice(bytes).ok());
        held.platforms.extend(config.as_ref().and_then(platform_of));
        vec![(digest.clone(), root)]
    };
    for (number, (child, manifest)) in manifests.iter().enumerate() {
        held.identity.manifests.insert(child.clone());
        let config = manifest.get("config").and_then(digest_of);
        if let Some(config) = &config {
            held.identity.configs.insert(config.clone());
        }
        let contents = read_layers(registry, host, repository, manifest, config.as_ref(), &mut held.missing);
        // Of an index, the first platform speaks for all: an example's images hold the same on each.
        if number == 0 {
            held.contents = contents;
        }
    }
    Some(held)
}

fn read_layers(
    registry: &RegistryServer,
    host: &str,
    repository: &str,
    manifest: &Value,
    config: Option<&Digest>,
    missing: &mut Vec<String>,
) -> Option<Contents> {
    let mut reader = ContentsReader::new(Limits::default());
    match config.and_then(|digest| registry.blob(host, repository, digest)) {
        Some(bytes) => reader.config(bytes).ok()?,
        None => missing.push("its configuration".to_owned()),
    }
    let mut whole = true;
    for layer in manifest.get("layers").and_then(Value::as_array)? {
        let digest = digest_of(layer)?;
        let media_type = layer.get("mediaType").and_then(Value::as_str).unwrap_or_default();
        match registry.blob(host, repository, &digest) {
            Some(bytes) if whole => whole = reader.layer(media_type, bytes).is_ok(),
            Some(_) => {}
            None => {
                missing.push(format!("layer {digest}"));
                whole = false;
            }
        }
    }
    whole.then(|| reader.finish())
}

fn digest_of(descriptor: &Value) -> Option<Digest> {
    Digest::parse(descriptor.get("digest")?.as_str()?).ok()
}

/// The platform that an index' entry or a configuration names.
fn platform_of(value: &Value) -> Option<Platform> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    Platform::new(text("os")?, text("architecture")?, text("variant")).ok()
}
