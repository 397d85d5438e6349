//! The image importer: what a reference names today, seen from the API server, with the pull secrets of the
//! stream's namespace.
//!
//! `importMode: Legacy`, the default, throws an index away and keeps the manifest of linux/amd64, so that the
//! digest is not the index's and other platforms are lost. `PreserveOriginal` keeps the index. What is
//! imported is also served by the registry in the cluster, from a copy that is made now (the real one fetches
//! at the first pull, and keeps it).

use std::collections::BTreeMap;

use bytes::Bytes;
use scantling_api::ObjectKey;
use scantling_image::{Digest, Platform, Reference};
use scantling_registry_server::Pushed;

use crate::distribution::{FetchError, Manifest, Session};
use crate::node::credentials;
use crate::value::text;
use crate::world::World;

/// What an import found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Imported {
    /// The digest.
    pub(crate) digest: Digest,
    /// Origin and digest, as the status says it.
    pub(crate) reference: String,
}

/// Why an import failed, in the words of the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportError {
    /// `NotFound`, `Unauthorized`, `InternalError` …
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Imports a reference for a tag of a stream.
pub(crate) fn import(
    world: &mut World,
    namespace: &str,
    stream: &str,
    tag: &str,
    from: &str,
    preserve: bool,
) -> Result<Imported, ImportError> {
    let reference = Reference::parse(from).map_err(|error| ImportError {
        reason: "InvalidImageReference",
        message: format!("\"{from}\" is not a valid image reference: {error}"),
    })?;
    let (mut image, reference_name) =
        fetch(world, namespace, &reference, preserve).map_err(|error| condition(from, &error))?;
    let digest = image.root.clone();
    if let Some(host) = world.config.internal_registry.clone() {
        let repository = format!("{namespace}/{stream}");
        if world.registry.resolve(&host, &repository, digest.as_str()).is_some() {
            let _ = world.registry.tag(&host, &repository, tag, &digest);
        } else {
            fill_blobs(world, namespace, &reference, &mut image);
            // Content that the origin has lost cannot be served from here either.
            let _ = world.registry.push(&host, &repository, Some(tag), &image);
        }
    }
    Ok(Imported { reference: format!("{reference_name}@{digest}"), digest })
}

/// Lets a tag of a stream be served from the registry in the cluster, from where its image is already.
pub(crate) fn serve_local(world: &mut World, namespace: &str, stream: &str, tag: &str, reference: &str) {
    let Some(host) = world.config.internal_registry.clone() else { return };
    let Ok(parsed) = Reference::parse(reference) else { return };
    let Some(digest) = parsed.digest().cloned() else { return };
    let repository = format!("{namespace}/{stream}");
    if world.registry.resolve(&host, &repository, tag).as_ref() == Some(&digest) {
        return;
    }
    if world.registry.tag(&host, &repository, tag, &digest).is_ok() {
        return;
    }
    if let Ok((mut image, _)) = fetch(world, namespace, &parsed, true) {
        fill_blobs(world, namespace, &parsed, &mut image);
        let _ = world.registry.push(&host, &repository, Some(tag), &image);
    }
}

/// An image's documents, and the name of where they came from.
fn fetch(
    world: &mut World,
    namespace: &str,
    reference: &Reference,
    preserve: bool,
) -> Result<(Pushed, String), FetchError> {
    let mut first_error = None;
    for mut session in sessions(world, namespace, reference) {
        match documents(world, &mut session.1, &session.0, preserve) {
            Ok(image) => return Ok((image, reference.name())),
            Err(error) => {
                if !error.is_absent() && first_error.is_none() {
                    first_error = Some(error);
                }
            }
        }
    }
    Err(first_error.unwrap_or(FetchError::NotFound { what: reference.written().to_owned() }))
}

/// The endpoints that the importer asks: what to ask for, and the conversation.
fn sessions(world: &World, namespace: &str, reference: &Reference) -> Vec<(String, Session)> {
    let secrets: Vec<String> = world
        .list("", "Secret", Some(namespace))
        .into_iter()
        .filter(|(_, secret)| {
            matches!(
                text(secret, "/type"),
                Some("kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg")
            )
        })
        .map(|(key, _): (ObjectKey, _)| key.name)
        .collect();
    let keyring = credentials::of_secrets(world, namespace, &secrets);
    credentials::sources(world, reference, &keyring)
        .into_iter()
        .map(|source| {
            let session = Session::new(&source.attempt.host, &source.attempt.repository, source.login);
            (source.attempt.selector.as_str().to_owned(), session)
        })
        .collect()
}

fn documents(
    world: &mut World,
    session: &mut Session,
    selector: &str,
    preserve: bool,
) -> Result<Pushed, FetchError> {
    let top = session.manifest(&mut world.registry, selector)?;
    let mut manifests: Vec<Manifest> = Vec::new();
    let (root, media_type) = if top.is_index() && !preserve {
        let chosen = top.select(&Platform::linux_amd64())?;
        let manifest = session.manifest(&mut world.registry, chosen.digest.as_str())?;
        let root = (manifest.digest.clone(), manifest.media_type.clone());
        manifests.push(manifest);
        root
    } else if top.is_index() {
        for entry in top.entries() {
            // Entries that the origin does not have are left out; the index keeps naming them.
            if let Ok(manifest) = session.manifest(&mut world.registry, entry.digest.as_str()) {
                manifests.push(manifest);
            }
        }
        let root = (top.digest.clone(), top.media_type.clone());
        manifests.push(top);
        root
    } else {
        let root = (top.digest.clone(), top.media_type.clone());
        manifests.push(top);
        root
    };
    let mut blobs: Vec<(Digest, String, Bytes)> = Vec::new();
    for manifest in manifests {
        if !manifest.is_index() {
            let (config, _) = manifest.parts()?;
            let bytes = session.blob(&mut world.registry, &config.digest)?;
            blobs.push((config.digest, config.media_type, bytes));
        }
        blobs.push((manifest.digest, manifest.media_type, manifest.bytes));
    }
    Ok(Pushed { media_type, root, blobs })
}

/// Adds the layers of all manifests.
fn fill_blobs(world: &mut World, namespace: &str, reference: &Reference, image: &mut Pushed) {
    let mut wanted: BTreeMap<Digest, String> = BTreeMap::new();
    for (_, _, bytes) in &image.blobs {
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { continue };
        for layer in crate::value::list(&value, "/layers") {
            if let Some(digest) = text(layer, "/digest").and_then(|text| Digest::parse(text).ok()) {
                wanted.insert(digest, text(layer, "/mediaType").unwrap_or_default().to_owned());
            }
        }
    }
    let mut sessions = sessions(world, namespace, reference);
    for (digest, media_type) in wanted {
        for (_, session) in &mut sessions {
            if let Ok(bytes) = session.blob(&mut world.registry, &digest) {
                image.blobs.push((digest, media_type, bytes));
                break;
            }
        }
    }
}

/// A whole image, with its layers, as a build takes its base.
pub(crate) fn whole(world: &mut World, namespace: &str, reference: &str) -> Result<Pushed, FetchError> {
    let parsed = Reference::parse(reference)
        .map_err(|error| FetchError::Malformed { what: format!("{reference:?}: {error}") })?;
    let (mut image, _) = fetch(world, namespace, &parsed, true)?;
    fill_blobs(world, namespace, &parsed, &mut image);
    Ok(image)
}

fn condition(from: &str, error: &FetchError) -> ImportError {
    let (reason, message) = match error {
        FetchError::NotFound { .. } => {
            ("NotFound", format!("dockerimage.image.openshift.io \"{from}\" not found"))
        }
        FetchError::Denied => {
            ("Unauthorized", format!("you may not have access to the container image \"{from}\""))
        }
        other => ("InternalError", format!("Internal error occurred: {from}: {other}")),
    };
    ImportError { reason, message }
}
