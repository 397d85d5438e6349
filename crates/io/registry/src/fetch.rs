//! Manifests and small blobs, checked against their digests.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use scantling_endpoint::{Attempt, Selector};
use scantling_image::Digest;

use crate::access::{Action, uri};
use crate::client::Inner;
use crate::document::{self, ACCEPT, Descriptor, Document, MANIFEST_MAX};
use crate::error::{Place, Problem, RegistryError};
use crate::exchange::Outgoing;
use crate::hosts::lock;

const CONTENT_DIGEST: &str = "docker-content-digest";
/// How often content that broke off or came damaged is asked for: networks fail once, registries always.
const CONTENT_TRIES: u32 = 2;

impl Inner {
    /// The digest behind a tag or digest, by `HEAD`; `None` if the registry does not answer that usefully, so that `GET` must be
    /// asked.
    pub(crate) async fn head(
        &self,
        attempt: &Attempt,
        selector: &Selector,
    ) -> Result<Option<Digest>, RegistryError> {
        let place = Place::new(&attempt.host, &attempt.repository, format!("manifest {selector}"));
        let answered = self.manifest_request(&place, attempt, selector, Method::HEAD).await?;
        match answered.response.status().as_u16() {
            200 => {}
            // The body, which says more, comes with GET only; and some registries refuse HEAD.
            401 | 403 | 429 | 500..=599 => return Err(self.refused(&place, attempt, answered).await),
            _ => return Ok(None),
        }
        let Some(found) = content_digest(answered.response.headers()) else {
            return Ok(None);
        };
        match selector {
            Selector::Digest(wanted) if *wanted != found => {
                let detail = format!("the registry answers with {found}");
                Err(place.error(Problem::DigestMismatch { wanted: wanted.clone(), detail }))
            }
            _ => Ok(Some(found)),
        }
    }

    /// A manifest or index by `GET`.
    pub(crate) async fn manifest(
        &self,
        attempt: &Attempt,
        selector: &Selector,
    ) -> Result<Arc<Document>, RegistryError> {
        let place = Place::new(&attempt.host, &attempt.repository, format!("manifest {selector}"));
        let mut tries = 0;
        loop {
            tries += 1;
            match self.manifest_once(&place, attempt, selector).await {
                Err(error) if tries < CONTENT_TRIES && may_be_transport(&error) => {}
                result => return result,
            }
        }
    }

    async fn manifest_once(
        &self,
        place: &Place,
        attempt: &Attempt,
        selector: &Selector,
    ) -> Result<Arc<Document>, RegistryError> {
        let answered = self.manifest_request(place, attempt, selector, Method::GET).await?;
        if answered.response.status() != StatusCode::OK {
            return Err(self.refused(place, attempt, answered).await);
        }
        let headers = answered.response.headers();
        let media_type =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let promised = match selector {
            Selector::Digest(digest) => Some(digest.clone()),
            Selector::Tag(_) => content_digest(headers),
        };
        let bytes = self.whole(place, answered.response, MANIFEST_MAX).await?;
        if let Some(wanted) = &promised
            && !wanted.verifies(&bytes)
        {
            let detail = format!("{} bytes with the digest {} came", bytes.len(), Digest::of(&bytes));
            return Err(place.error(Problem::DigestMismatch { wanted: wanted.clone(), detail }));
        }
        let digest = promised.unwrap_or_else(|| Digest::of(&bytes));
        let document = document::read(digest, media_type.as_deref(), bytes)
            .map_err(|problem| place.malformed(problem))?;
        let document = Arc::new(document);
        lock(&self.documents).put(&document);
        Ok(document)
    }

    /// A manifest that a registry is known to have: remembered, or by `GET`.
    pub(crate) async fn known_manifest(
        &self,
        attempt: &Attempt,
        digest: &Digest,
    ) -> Result<Arc<Document>, RegistryError> {
        let known = lock(&self.documents).get(digest);
        match known {
            Some(document) => Ok(document),
            None => self.manifest(attempt, &Selector::Digest(digest.clone())).await,
        }
    }

    async fn manifest_request(
        &self,
        place: &Place,
        attempt: &Attempt,
        selector: &Selector,
        method: Method,
    ) -> Result<crate::access::Answered, RegistryError> {
        let path = pull_path(attempt, &format!("manifests/{selector}"));
        let mut request = Outgoing::new(method, uri(place, attempt, &path)?);
        request.headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
        self.send(place, attempt, Action::Pull, &request).await
    }

    /// Asks for a blob.
    pub(crate) async fn blob_request(
        &self,
        place: &Place,
        attempt: &Attempt,
        digest: &Digest,
        method: Method,
        range: Option<&'static str>,
    ) -> Result<crate::access::Answered, RegistryError> {
        let path = pull_path(attempt, &format!("blobs/{digest}"));
        let mut request = Outgoing::new(method, uri(place, attempt, &path)?);
        if let Some(range) = range {
            request.headers.insert(header::RANGE, HeaderValue::from_static(range));
        }
        self.send(place, attempt, Action::Pull, &request).await
    }

    /// A whole blob that fits into memory.
    pub(crate) async fn blob(
        &self,
        attempt: &Attempt,
        descriptor: &Descriptor,
        what: &str,
        limit: usize,
    ) -> Result<Bytes, RegistryError> {
        let place = Place::new(&attempt.host, &attempt.repository, format!("{what} {}", descriptor.digest));
        if descriptor.size > limit as u64 {
            return Err(place.malformed(format!("{} bytes, at most {limit} are read", descriptor.size)));
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match self.blob_once(&place, attempt, descriptor, limit).await {
                Err(error) if tries < CONTENT_TRIES && may_be_transport(&error) => {}
                result => return result,
            }
        }
    }

    async fn blob_once(
        &self,
        place: &Place,
        attempt: &Attempt,
        descriptor: &Descriptor,
        limit: usize,
    ) -> Result<Bytes, RegistryError> {
        let answered = self.blob_request(place, attempt, &descriptor.digest, Method::GET, None).await?;
        if answered.response.status() != StatusCode::OK {
            return Err(self.refused(place, attempt, answered).await);
        }
        let bytes = self.whole(place, answered.response, limit).await?;
        if bytes.len() as u64 != descriptor.size {
            return Err(place.error(short(descriptor, bytes.len() as u64)));
        }
        if !descriptor.digest.verifies(&bytes) {
            let detail = format!("{} bytes with the digest {} came", bytes.len(), Digest::of(&bytes));
            return Err(place.error(Problem::DigestMismatch { wanted: descriptor.digest.clone(), detail }));
        }
        Ok(bytes)
    }
}

/// The path of something to read. A mirror for several registries is told which one is meant.
fn pull_path(attempt: &Attempt, what: &str) -> String {
    match &attempt.namespace {
        Some(namespace) => {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("ns", namespace).finish();
            format!("/v2/{}/{what}?{query}", attempt.repository)
        }
        None => format!("/v2/{}/{what}", attempt.repository),
    }
}

/// Content of another size than promised.
pub(crate) fn short(descriptor: &Descriptor, found: u64) -> Problem {
    let detail = format!("{found} bytes came, {} were promised", descriptor.size);
    Problem::DigestMismatch { wanted: descriptor.digest.clone(), detail }
}

/// True for content that broke off or came damaged, which may be the network's fault.
fn may_be_transport(error: &RegistryError) -> bool {
    match error.problem.as_ref() {
        Problem::DigestMismatch { .. } => true,
        Problem::Unreachable { detail } => detail.contains("broke off"),
        _ => false,
    }
}

pub(crate) fn content_digest(headers: &HeaderMap) -> Option<Digest> {
    Digest::parse(headers.get(CONTENT_DIGEST)?.to_str().ok()?).ok()
}
