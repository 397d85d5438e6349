//! Promotion: an image, byte for byte, into another repository.

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use scantling_contents::BuiltImage;
use scantling_endpoint::{Attempt, Selector, source};
use scantling_image::{Digest, Reference};

use crate::client::{Inner, RegistryClient};
use crate::document::{Content, Descriptor, Document, Manifest};
use crate::error::{Place, Problem, RegistryError};
use crate::fetch::short;
use crate::resolve::most_telling;
use crate::upload::{Begun, Upload};

/// What a copy did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The digest, the same at both ends.
    pub digest: Digest,
    /// Manifests written, the index included.
    pub manifests: usize,
    /// Blobs that were sent.
    pub sent: usize,
    /// Blobs that were there already or were mounted within the registry.
    pub present: usize,
    /// Bytes that were sent.
    pub bytes: u64,
}

/// An image for one platform, whose configuration and layers are kept somewhere that can be read as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredImage<'a> {
    /// Media type of the manifest.
    pub media_type: &'a str,
    /// The manifest.
    pub manifest: &'a [u8],
    /// Configuration and layers, with their sizes in bytes.
    pub blobs: &'a [(Digest, u64)],
}

impl RegistryClient {
    /// Copies an image with everything that its index names, so that its digest stays. What is at the target already is not sent
    /// again. The tag of the target, if one is written, is set last; a digest of the target must be the image's.
    pub async fn copy(&self, from: &Reference, to: &Reference) -> Result<Copied, RegistryError> {
        let target = self.inner.target(to);
        let mut errors = Vec::new();
        for attempt in self.inner.attempts(from)? {
            match self.inner.manifest(&attempt, &attempt.selector).await {
                Ok(root) => return self.inner.copy_from(&attempt, &root, &target, to).await,
                Err(error) => errors.push(error),
            }
        }
        Err(most_telling(errors, from))
    }

    /// Writes an image from memory. What is there already is not sent again; the tag, if one is written, is set last.
    pub async fn push(&self, image: &BuiltImage, to: &Reference) -> Result<Copied, RegistryError> {
        let target = self.inner.target(to);
        check_target(&target, to, &image.root)?;
        let mut copied = Copied::new(&image.root);
        // The root comes last: a registry wants to have what a manifest names.
        let mut manifests: Vec<&Digest> = image.platforms.iter().map(|platform| &platform.manifest).collect();
        manifests.retain(|digest| **digest != image.root);
        manifests.push(&image.root);
        for (digest, (_, bytes)) in image.blobs.iter().filter(|(digest, _)| !manifests.contains(digest)) {
            match self.inner.begin(&target, digest, None).await? {
                Begun::Present => copied.present += 1,
                Begun::Upload(upload) => {
                    self.inner.send_whole(upload, digest, Bytes::copy_from_slice(bytes)).await?;
                    copied.sent(bytes.len() as u64);
                }
            }
        }
        let names = manifests.iter().map(|digest| (digest.as_str(), *digest));
        for (name, digest) in names.chain(to.effective_tag().map(|tag| (tag, &image.root))) {
            if let Some((media_type, bytes)) = image.blobs.get(digest) {
                let bytes = Bytes::copy_from_slice(bytes);
                self.inner.put_manifest(&target, name, media_type, digest, bytes).await?;
                copied.manifests += usize::from(name == digest.as_str());
            }
        }
        Ok(copied)
    }
}

impl RegistryClient {
    /// Writes an image from where it is stored, piece by piece: no layer is in memory as a whole. A blob that the repository
    /// `mount_from` of the same registry has is taken from there. What is there already is not sent again; the tag, if one is
    /// written, is set last.
    pub async fn push_stored<R: Read>(
        &self,
        image: &StoredImage<'_>,
        mut open: impl FnMut(&Digest) -> io::Result<R>,
        mount_from: Option<&str>,
        to: &Reference,
    ) -> Result<Copied, RegistryError> {
        let root = Digest::of(image.manifest);
        let target = self.inner.target(to);
        check_target(&target, to, &root)?;
        let mut copied = Copied::new(&root);
        let mount_from = mount_from.filter(|from| *from != target.repository);
        for (digest, size) in image.blobs {
            match self.inner.begin(&target, digest, mount_from).await? {
                Begun::Present => copied.present += 1,
                Begun::Upload(upload) => {
                    let place = Place::new(&target.host, &target.repository, format!("blob {digest}"));
                    let mut source = Source { place, digest, left: *size, data: open(digest) };
                    self.inner.send_stream(upload, &mut source).await?;
                    copied.sent(*size);
                }
            }
        }
        let manifest = Bytes::copy_from_slice(image.manifest);
        for name in [Some(root.as_str()), to.effective_tag()].into_iter().flatten() {
            self.inner.put_manifest(&target, name, image.media_type, &root, manifest.clone()).await?;
        }
        copied.manifests = 1;
        Ok(copied)
    }
}

/// A blob that is read piece by piece.
struct Source<'a, R> {
    place: Place,
    digest: &'a Digest,
    left: u64,
    data: io::Result<R>,
}

impl<R: Read> Source<'_, R> {
    /// The next piece, of `most` bytes unless it is the last.
    fn piece(&mut self, most: usize) -> Result<Bytes, RegistryError> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        let mut piece = vec![0; wanted];
        let read = match &mut self.data {
            Ok(data) => data.read_exact(&mut piece),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        read.map_err(|error| self.place.malformed(format!("{} cannot be read: {error}", self.digest)))?;
        self.left -= wanted as u64;
        Ok(piece.into())
    }
}

impl Copied {
    fn new(digest: &Digest) -> Self {
        Self { digest: digest.clone(), manifests: 0, sent: 0, present: 0, bytes: 0 }
    }

    fn sent(&mut self, bytes: u64) {
        self.sent += 1;
        self.bytes += bytes;
    }
}

impl Inner {
    /// Where to write: the registry itself, never a mirror.
    fn target(&self, to: &Reference) -> Attempt {
        source(to, &self.mirrors, &self.keyring)
    }

    async fn copy_from(
        &self,
        source: &Attempt,
        root: &Document,
        target: &Attempt,
        to: &Reference,
    ) -> Result<Copied, RegistryError> {
        check_target(target, to, &root.digest)?;
        let mut copied = Copied::new(&root.digest);
        match &root.content {
            Content::Manifest(manifest) => self.copy_blobs(source, manifest, target, &mut copied).await?,
            Content::Index(entries) => {
                for entry in entries {
                    let selector = Selector::Digest(entry.descriptor.digest.clone());
                    let document = self.manifest(source, &selector).await?;
                    if let Content::Manifest(manifest) = &document.content {
                        self.copy_blobs(source, manifest, target, &mut copied).await?;
                    } else {
                        let place =
                            Place::new(&source.host, &source.repository, format!("manifest {selector}"));
                        return Err(place.malformed("an index within an index"));
                    }
                    self.put_document(target, &document).await?;
                    copied.manifests += 1;
                }
            }
        }
        self.put_document(target, root).await?;
        copied.manifests += 1;
        if let Some(tag) = to.effective_tag() {
            self.put_manifest(target, tag, &root.media_type, &root.digest, root.bytes.clone()).await?;
        }
        Ok(copied)
    }

    async fn put_document(&self, target: &Attempt, document: &Document) -> Result<(), RegistryError> {
        let Document { digest, media_type, bytes, .. } = document;
        self.put_manifest(target, digest.as_str(), media_type, digest, bytes.clone()).await
    }

    async fn copy_blobs(
        &self,
        source: &Attempt,
        manifest: &Manifest,
        target: &Attempt,
        copied: &mut Copied,
    ) -> Result<(), RegistryError> {
        let mount = (source.host == target.host && source.repository != target.repository)
            .then_some(source.repository.as_str());
        for blob in manifest.layers.iter().filter(|layer| !layer.is_foreign()).chain([&manifest.config]) {
            match self.begin(target, &blob.digest, mount).await? {
                Begun::Present => copied.present += 1,
                Begun::Upload(upload) => {
                    self.pipe(source, blob, upload).await?;
                    copied.sent(blob.size);
                }
            }
        }
        Ok(())
    }

    /// Sends bytes that are in memory: in one request, or in pieces.
    async fn send_whole(
        &self,
        mut upload: Upload<'_>,
        digest: &Digest,
        mut bytes: Bytes,
    ) -> Result<(), RegistryError> {
        while bytes.len() > self.options.chunk.max(1) {
            upload.piece(bytes.split_to(self.options.chunk.max(1))).await?;
        }
        upload.finish(digest, bytes).await
    }

    /// Sends a blob that is read as it goes: in one request, or in pieces.
    async fn send_stream<R: Read>(
        &self,
        mut upload: Upload<'_>,
        source: &mut Source<'_, R>,
    ) -> Result<(), RegistryError> {
        let chunk = self.options.chunk.max(1);
        while source.left > chunk as u64 {
            upload.piece(source.piece(chunk)?).await?;
        }
        upload.finish(source.digest, source.piece(chunk)?).await
    }

    /// Sends a blob on as it comes, in pieces if it is large. It is checked on the way, and the target checks it again.
    async fn pipe(
        &self,
        source: &Attempt,
        blob: &Descriptor,
        mut upload: Upload<'_>,
    ) -> Result<(), RegistryError> {
        let place = Place::new(&source.host, &source.repository, format!("blob {}", blob.digest));
        let chunk = self.options.chunk.max(1);
        if blob.size <= chunk as u64 {
            let bytes = self.blob(source, blob, "blob", chunk).await?;
            return upload.finish(&blob.digest, bytes).await;
        }
        let answered = self.blob_request(&place, source, &blob.digest, Method::GET, None).await?;
        if answered.response.status() != StatusCode::OK {
            return Err(self.refused(&place, source, answered).await);
        }
        let mut body = answered.response.into_body();
        let mut hasher = blob.digest.verifier();
        let mut waiting = BytesMut::new();
        let mut size = 0u64;
        while let Some(piece) = self.piece(&place, &mut body).await? {
            size += piece.len() as u64;
            if size > blob.size {
                return Err(place.error(short(blob, size)));
            }
            hasher.update(&piece);
            waiting.extend_from_slice(&piece);
            while waiting.len() > chunk {
                upload.piece(waiting.split_to(chunk).freeze()).await?;
            }
        }
        if size != blob.size {
            return Err(place.error(short(blob, size)));
        }
        let found = hasher.finish();
        if found != blob.digest {
            let detail = format!("bytes with the digest {found} came");
            return Err(place.error(Problem::DigestMismatch { wanted: blob.digest.clone(), detail }));
        }
        upload.finish(&blob.digest, waiting.freeze()).await
    }
}

fn check_target(target: &Attempt, to: &Reference, digest: &Digest) -> Result<(), RegistryError> {
    let place = Place::new(&target.host, &target.repository, format!("manifest {digest}"));
    match to.digest() {
        Some(wanted) if wanted != digest => {
            let detail = "the target names another digest than the image has".to_owned();
            Err(place.error(Problem::DigestMismatch { wanted: wanted.clone(), detail }))
        }
        _ => Ok(()),
    }
}
