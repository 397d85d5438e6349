//! What is inside an image, read from its layers as they come.

use std::io::{self, Read};

use bytes::Bytes;
use http::{Method, StatusCode};
use scantling_contents::{Contents, ContentsReader, LayerError, Limits};
use scantling_endpoint::Attempt;
use scantling_image::{Digest, Platform, Reference};
use tokio::sync::mpsc;

use crate::client::{Inner, RegistryClient};
use crate::document::{CONFIG_MAX, Content, Descriptor, Manifest};
use crate::error::{Place, Problem, RegistryError};
use crate::fetch::short;
use crate::resolve::{as_manifest, most_telling, platform_in};

/// Pieces that may wait between network and reader; each has some tens of KiB.
const WAITING_PIECES: usize = 64;

impl RegistryClient {
    /// Reads what the image of one platform contains, from the first place that serves it. The bytes are checked against their
    /// digests before the result is given.
    pub async fn contents(
        &self,
        reference: &Reference,
        platform: &Platform,
    ) -> Result<Contents, RegistryError> {
        let mut errors = Vec::new();
        for attempt in self.inner.attempts(reference)? {
            match self.inner.contents_at(&attempt, platform).await {
                Ok(contents) => return Ok(contents),
                Err(error) => errors.push(error),
            }
        }
        Err(most_telling(errors, reference))
    }
}

impl Inner {
    async fn contents_at(&self, attempt: &Attempt, wanted: &Platform) -> Result<Contents, RegistryError> {
        let place = Place::new(&attempt.host, &attempt.repository, format!("manifest {}", attempt.selector));
        let root = self.manifest(attempt, &attempt.selector).await?;
        let wrong = |found: Vec<Platform>| {
            place.error(Problem::WrongPlatform { wanted: vec![wanted.clone()], found })
        };
        match &root.content {
            Content::Manifest(manifest) => {
                let config = self.blob(attempt, &manifest.config, "configuration", CONFIG_MAX).await?;
                let platform = platform_in(attempt, manifest, &config)?;
                if !platform.matches(wanted) {
                    return Err(wrong(vec![platform]));
                }
                self.layers(attempt, manifest, &config).await
            }
            Content::Index(entries) => {
                let there: Vec<(&Platform, &Digest)> = entries
                    .iter()
                    .filter_map(|entry| Some((entry.platform.as_ref()?, &entry.descriptor.digest)))
                    .collect();
                let chosen = Platform::select(there.iter().map(|(platform, _)| *platform), wanted)
                    .and_then(|place| there.get(place));
                let Some((_, digest)) = chosen else {
                    return Err(wrong(there.into_iter().map(|(platform, _)| platform.clone()).collect()));
                };
                let document = self.known_manifest(attempt, digest).await?;
                let manifest = as_manifest(attempt, &document)?;
                let config = self.blob(attempt, &manifest.config, "configuration", CONFIG_MAX).await?;
                self.layers(attempt, manifest, &config).await
            }
        }
    }

    async fn layers(
        &self,
        attempt: &Attempt,
        manifest: &Manifest,
        config: &[u8],
    ) -> Result<Contents, RegistryError> {
        let place = |subject: String| Place::new(&attempt.host, &attempt.repository, subject);
        let unread = |subject: String, error: &LayerError| place(subject).malformed(error.to_string());
        let mut reader = ContentsReader::new(Limits::default());
        reader
            .config(config)
            .map_err(|error| unread(format!("configuration {}", manifest.config.digest), &error))?;
        for layer in &manifest.layers {
            let subject = format!("layer {}", layer.digest);
            if layer.size <= self.options.in_memory as u64 {
                let bytes = self.blob(attempt, layer, "layer", self.options.in_memory).await?;
                reader.layer(&layer.media_type, bytes.as_ref()).map_err(|error| unread(subject, &error))?;
            } else {
                reader = self.large_layer(attempt, layer, reader).await?;
            }
        }
        Ok(reader.finish())
    }

    /// A layer that does not fit into memory: a thread reads what the network brings. What it found counts only if the digest holds.
    async fn large_layer(
        &self,
        attempt: &Attempt,
        layer: &Descriptor,
        mut reader: ContentsReader,
    ) -> Result<ContentsReader, RegistryError> {
        let place = Place::new(&attempt.host, &attempt.repository, format!("layer {}", layer.digest));
        let answered = self.blob_request(&place, attempt, &layer.digest, Method::GET, None).await?;
        if answered.response.status() != StatusCode::OK {
            return Err(self.refused(&place, attempt, answered).await);
        }
        let (sender, receiver) = mpsc::channel(WAITING_PIECES);
        let media_type = layer.media_type.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let result = reader.layer(&media_type, Pieces { receiver, current: Bytes::new() });
            result.map(|()| reader)
        });
        let mut body = answered.response.into_body();
        let mut hasher = layer.digest.verifier();
        let mut size = 0u64;
        let pumped = async {
            while let Some(piece) = self.piece(&place, &mut body).await? {
                size += piece.len() as u64;
                if size > layer.size {
                    return Err(place.error(short(layer, size)));
                }
                hasher.update(&piece);
                // A reader that has seen enough is gone; the digest is checked all the same.
                let _ = sender.send(piece).await;
            }
            Ok(())
        }
        .await;
        drop(sender);
        let read = reading.await;
        pumped?;
        if size != layer.size {
            return Err(place.error(short(layer, size)));
        }
        let found = hasher.finish();
        if found != layer.digest {
            let detail = format!("bytes with the digest {found} came");
            return Err(place.error(Problem::DigestMismatch { wanted: layer.digest.clone(), detail }));
        }
        match read {
            Ok(Ok(reader)) => Ok(reader),
            Ok(Err(error)) => Err(place.malformed(error.to_string())),
            Err(_) => Err(place.malformed("reading it was broken off")),
        }
    }
}

/// Pieces from a channel as a stream of bytes.
struct Pieces {
    receiver: mpsc::Receiver<Bytes>,
    current: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.current = piece,
                None => return Ok(0),
            }
        }
        let length = self.current.len().min(buffer.len());
        let piece = self.current.split_to(length);
        if let Some(target) = buffer.get_mut(..length) {
            target.copy_from_slice(&piece);
        }
        Ok(length)
    }
}
