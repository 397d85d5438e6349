//! Manifests and indexes.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use scantling_image::Digest;

use crate::reply::{Answer, CONTENT_DIGEST, Code, Refusal};
use crate::repository::{
    DOCKER_LIST, DOCKER_MANIFEST, MAX_MANIFEST_BYTES, MAX_TAGS, Manifest, ManifestFacts, OCI_INDEX,
    OCI_MANIFEST, Repository, is_manifest_type,
};
use crate::route::Selector;

/// The platform that an old client gets of a Docker manifest list, as the reference implementation has it.
const DEFAULT_PLATFORM: &str = "linux/amd64";

/// Answers `GET` and `HEAD`. Content negotiation is that of the reference implementation: only media types named in `Accept` count
/// (`*/*` does not name any), an index or manifest that was not asked for is unknown, and a client that asks by tag without knowing
/// Docker's lists gets the list's linux/amd64 manifest. Docker's own manifest is sent to everybody.
pub(crate) fn get(
    repository: &Repository,
    selector: &Selector,
    headers: &HeaderMap,
) -> Result<Response<Bytes>, Refusal> {
    let (digest, manifest) = find(repository, selector)?;
    let accepts = |media_type: &str| {
        headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|item| {
                item.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(media_type))
            })
    };
    let media_type = manifest.media_type.as_str();
    let refused = |what: &str| {
        Err(Refusal::new(
            Code::ManifestUnknown,
            format!("{what} found, but the Accept header does not name {media_type}"),
        ))
    };
    match media_type {
        OCI_INDEX if !accepts(OCI_INDEX) => refused("an OCI index was"),
        OCI_MANIFEST if !accepts(OCI_MANIFEST) => refused("an OCI manifest was"),
        DOCKER_LIST if !accepts(DOCKER_LIST) => {
            let child = manifest.facts.manifests.iter().find(|(_, p)| p.as_deref() == Some(DEFAULT_PLATFORM));
            match (selector, child) {
                (Selector::Tag(_), Some((child, _))) => {
                    let (digest, manifest) = find(repository, &Selector::Digest(child.clone()))?;
                    Ok(send(digest, manifest))
                }
                _ => refused("a Docker manifest list was"),
            }
        }
        DOCKER_LIST | DOCKER_MANIFEST | OCI_INDEX | OCI_MANIFEST => Ok(send(digest, manifest)),
        _ => refused("another kind of manifest was"),
    }
}

fn send(digest: &Digest, manifest: &Manifest) -> Response<Bytes> {
    Answer::new(StatusCode::OK)
        .body(&manifest.media_type, manifest.bytes.clone())
        .header(CONTENT_DIGEST, digest.to_string())
        .header(header::ETAG, format!("\"{digest}\""))
        .into_response()
}

fn find<'a>(repository: &'a Repository, selector: &Selector) -> Result<(&'a Digest, &'a Manifest), Refusal> {
    let (digest, text) = match selector {
        Selector::Tag(tag) => (repository.tags.get(tag), tag.clone()),
        Selector::Digest(digest) => (Some(digest), digest.to_string()),
    };
    digest.and_then(|digest| repository.manifests.get_key_value(digest)).ok_or_else(|| {
        Refusal::new(Code::ManifestUnknown, format!("manifest {text} is not known to this registry"))
    })
}

/// Answers `PUT`: a manifest is stored once everything that it names is here.
pub(crate) fn put(
    repository: &mut Repository,
    name: &str,
    selector: &Selector,
    request: &Request<Bytes>,
) -> Result<Response<Bytes>, Refusal> {
    let bytes = request.body();
    if bytes.len() > MAX_MANIFEST_BYTES {
        let text = format!("a manifest has at most {MAX_MANIFEST_BYTES} bytes");
        return Err(Refusal::new(Code::SizeInvalid, text));
    }
    let media_type = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim)
        .unwrap_or_default();
    if !is_manifest_type(media_type) {
        let text = format!("the Content-Type {media_type:?} is not that of a manifest");
        return Err(Refusal::new(Code::ManifestInvalid, text));
    }
    let digest = match selector {
        Selector::Tag(_) => Digest::of(bytes),
        Selector::Digest(wanted) if wanted.verifies(bytes) => wanted.clone(),
        Selector::Digest(wanted) => {
            let text = format!("the content does not have the digest {wanted}");
            return Err(Refusal::new(Code::DigestInvalid, text));
        }
    };
    let facts = ManifestFacts::parse(media_type, bytes)
        .map_err(|reason| Refusal::new(Code::ManifestInvalid, reason))?;
    if let Some(missing) = facts.blobs.iter().find(|blob| !repository.blobs.contains_key(*blob)) {
        return Err(Refusal::new(
            Code::ManifestBlobUnknown,
            format!("blob {missing} is not in this repository"),
        ));
    }
    if let Some((missing, _)) =
        facts.manifests.iter().find(|(child, _)| !repository.manifests.contains_key(child))
    {
        return Err(Refusal::new(
            Code::ManifestBlobUnknown,
            format!("manifest {missing} is not in this repository"),
        ));
    }
    if let Selector::Tag(tag) = selector {
        if !repository.tags.contains_key(tag) && repository.tags.len() >= MAX_TAGS {
            return Err(Refusal::new(Code::Denied, format!("this repository has {MAX_TAGS} tags already")));
        }
        repository.tags.insert(tag.clone(), digest.clone());
    }
    let mut answer = Answer::new(StatusCode::CREATED)
        .header(header::LOCATION, format!("/v2/{name}/manifests/{digest}"))
        .header(header::CONTENT_LENGTH, "0")
        .header(CONTENT_DIGEST, digest.to_string());
    if let Some(subject) = &facts.subject {
        answer = answer.header(HeaderName::from_static("oci-subject"), subject.to_string());
    }
    let manifest = Manifest { media_type: media_type.to_owned(), bytes: bytes.clone(), facts };
    repository.manifests.insert(digest, manifest);
    Ok(answer.into_response())
}

/// Answers `DELETE`: by tag the tag goes, by digest the manifest and all its tags.
pub(crate) fn delete(repository: &mut Repository, selector: &Selector) -> Result<Response<Bytes>, Refusal> {
    let text = match selector {
        Selector::Tag(tag) => tag.clone(),
        Selector::Digest(digest) if repository.manifests.contains_key(digest) => digest.to_string(),
        Selector::Digest(digest) => {
            return Err(Refusal::new(Code::ManifestUnknown, format!("manifest {digest} is not known")));
        }
    };
    if repository.remove(&text) {
        Ok(Answer::new(StatusCode::ACCEPTED).header(header::CONTENT_LENGTH, "0").into_response())
    } else {
        Err(Refusal::new(Code::ManifestUnknown, format!("tag {text} is not known to this registry")))
    }
}
