//! Writing to a registry: blobs and manifests.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use scantling_endpoint::Attempt;
use scantling_image::Digest;

use crate::access::{Action, resolved, uri};
use crate::client::Inner;
use crate::error::{Place, Problem, RegistryError};
use crate::exchange::Outgoing;
use crate::fetch::content_digest;
use crate::transport::Body;

const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// An upload that was begun: where its next piece goes, and what has arrived.
pub(crate) struct Upload<'a> {
    inner: &'a Inner,
    target: &'a Attempt,
    place: Place,
    location: Uri,
    sent: u64,
}

/// The answer to the wish to upload a blob.
pub(crate) enum Begun<'a> {
    /// It is there already, or was mounted from another repository.
    Present,
    /// It must be sent.
    Upload(Upload<'a>),
}

impl Inner {
    /// True if the repository has the blob.
    pub(crate) async fn has_blob(&self, target: &Attempt, digest: &Digest) -> Result<bool, RegistryError> {
        let place = Place::new(&target.host, &target.repository, format!("blob {digest}"));
        let answered = self.blob_request(&place, target, digest, Method::HEAD, None).await?;
        match answered.response.status().as_u16() {
            200 => Ok(true),
            404 => Ok(false),
            _ => Err(self.refused(&place, target, answered).await),
        }
    }

    /// Begins to upload a blob; asks first whether it is there, and whether it can be mounted from another repository.
    pub(crate) async fn begin<'a>(
        &'a self,
        target: &'a Attempt,
        digest: &Digest,
        mount_from: Option<&str>,
    ) -> Result<Begun<'a>, RegistryError> {
        if self.has_blob(target, digest).await? {
            return Ok(Begun::Present);
        }
        let place = Place::new(&target.host, &target.repository, format!("upload of {digest}"));
        let mut path = format!("/v2/{}/blobs/uploads/", target.repository);
        let mut action = Action::Push;
        if let Some(from) = mount_from {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("mount", digest.as_str())
                .append_pair("from", from)
                .finish();
            path = format!("{path}?{query}");
            action = Action::PushFrom(from);
        }
        let mut request = Outgoing::new(Method::POST, uri(&place, target, &path)?);
        request.headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        let base = request.uri.clone();
        let answered = self.send(&place, target, action, &request).await?;
        match answered.response.status() {
            StatusCode::CREATED => Ok(Begun::Present),
            StatusCode::ACCEPTED => {
                let location = next_place(&place, &base, &answered.response)?;
                Ok(Begun::Upload(Upload { inner: self, target, place, location, sent: 0 }))
            }
            _ => Err(self.refused(&place, target, answered).await),
        }
    }

    /// Stores a manifest under its digest or a tag.
    pub(crate) async fn put_manifest(
        &self,
        target: &Attempt,
        name: &str,
        media_type: &str,
        digest: &Digest,
        bytes: Bytes,
    ) -> Result<(), RegistryError> {
        let place = Place::new(&target.host, &target.repository, format!("manifest {name}"));
        let path = format!("/v2/{}/manifests/{name}", target.repository);
        let mut request = Outgoing::new(Method::PUT, uri(&place, target, &path)?);
        let media_type = HeaderValue::try_from(media_type)
            .map_err(|_| place.malformed("a media type that is no header"))?;
        request.headers.insert(header::CONTENT_TYPE, media_type);
        request.body = bytes;
        let answered = self.send(&place, target, Action::Push, &request).await?;
        if answered.response.status() != StatusCode::CREATED {
            return Err(self.refused(&place, target, answered).await);
        }
        match content_digest(answered.response.headers()) {
            Some(stored) if stored != *digest => {
                let detail = format!("the registry stored it as {stored}");
                Err(place.error(Problem::DigestMismatch { wanted: digest.clone(), detail }))
            }
            _ => Ok(()),
        }
    }
}

impl Upload<'_> {
    /// Sends a piece that is not the last.
    pub(crate) async fn piece(&mut self, bytes: Bytes) -> Result<(), RegistryError> {
        let Some(last) = (bytes.len() as u64).checked_sub(1) else {
            return Ok(());
        };
        let mut request = Outgoing::new(Method::PATCH, self.location.clone());
        // A piece that arrived though its answer did not would be appended twice.
        request.repeatable = false;
        let range = format!("{}-{}", self.sent, self.sent + last);
        request.headers.insert(header::CONTENT_TYPE, OCTETS);
        if let Ok(range) = HeaderValue::try_from(range) {
            request.headers.insert(header::CONTENT_RANGE, range);
        }
        request.body = bytes;
        self.sent += last + 1;
        let answered = self.inner.send(&self.place, self.target, Action::Push, &request).await?;
        if answered.response.status() != StatusCode::ACCEPTED {
            return Err(self.inner.refused(&self.place, self.target, answered).await);
        }
        self.location = next_place(&self.place, &self.location, &answered.response)?;
        Ok(())
    }

    /// Sends the last piece, or everything, and closes the upload.
    pub(crate) async fn finish(self, digest: &Digest, bytes: Bytes) -> Result<(), RegistryError> {
        let mut query = self.location.query().map_or_else(String::new, |query| format!("{query}&"));
        query.push_str(
            &form_urlencoded::Serializer::new(String::new()).append_pair("digest", digest.as_str()).finish(),
        );
        let mut parts = self.location.into_parts();
        let path = parts.path_and_query.as_ref().map_or("/", |path| path.path()).to_owned();
        parts.path_and_query = format!("{path}?{query}").parse().ok();
        let closing = Uri::from_parts(parts)
            .map_err(|_| self.place.malformed("the registry names a place for uploads that is no address"))?;
        let mut request = Outgoing::new(Method::PUT, closing);
        request.headers.insert(header::CONTENT_TYPE, OCTETS);
        request.body = bytes;
        let answered = self.inner.send(&self.place, self.target, Action::Push, &request).await?;
        if answered.response.status() != StatusCode::CREATED {
            return Err(self.inner.refused(&self.place, self.target, answered).await);
        }
        Ok(())
    }
}

/// Where an upload goes on. It must stay with the registry: the credential goes along.
fn next_place(place: &Place, base: &Uri, response: &Response<Body>) -> Result<Uri, RegistryError> {
    let location = response
        .headers()
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|location| resolved(base, location))
        .ok_or_else(|| place.malformed("the registry names no place for the upload"))?;
    if location.authority() != base.authority() {
        return Err(place.malformed("the registry sends the upload to another host"));
    }
    // Registries behind a proxy that ends TLS may name themselves with plain HTTP.
    let mut parts = location.into_parts();
    parts.scheme = base.scheme().cloned();
    Uri::from_parts(parts).map_err(|_| place.malformed("the registry names no place for the upload"))
}
