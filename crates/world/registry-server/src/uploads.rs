//! Uploads: in one piece, in chunks, or by mounting from another repository of the host.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use scantling_image::Digest;

use crate::access::{Action, Target};
use crate::reply::{Answer, CONTENT_DIGEST, Code, Refusal, UPLOAD_UUID};
use crate::repository::{MAX_BLOB_BYTES, Repository};
use crate::server::Host;

/// Most uploads that are open in one repository; clients open few and close them.
const MAX_OPEN: usize = 1_000;

/// What has arrived so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upload {
    bytes: Vec<u8>,
}

/// Answers `POST`: begins an upload, takes a whole blob, or mounts one.
pub(crate) fn start(
    host: &mut Host,
    host_name: &str,
    name: &str,
    request: &Request<Bytes>,
) -> Result<Response<Bytes>, Refusal> {
    let query = |wanted: &str| {
        form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
            .find(|(key, _)| key == wanted)
            .map(|(_, value)| value.into_owned())
    };
    if let Some(mount) = query("mount") {
        let digest = digest(&mount)?;
        // The specification lets a mount fall back to an upload when the blob is not there or may not be read.
        if let Some(blob) = mountable(host, host_name, query("from").as_deref(), &digest, request) {
            host.created(name)?.blobs.insert(digest.clone(), blob);
            return Ok(created(name, &digest));
        }
    }
    if let Some(text) = query("digest") {
        let digest = digest(&text)?;
        let repository = host.created(name)?;
        finish(repository, &digest, request.body().clone())?;
        return Ok(created(name, &digest));
    }
    let id = format!("upload-{}", host.next_upload);
    let repository = host.created(name)?;
    if repository.uploads.len() >= MAX_OPEN {
        return Err(Refusal::new(Code::TooManyRequests, format!("{MAX_OPEN} uploads are open already")));
    }
    repository.uploads.insert(id.clone(), Upload::default());
    host.next_upload += 1;
    Ok(progress(StatusCode::ACCEPTED, name, &id, 0))
}

fn mountable(
    host: &Host,
    host_name: &str,
    from: Option<&str>,
    digest: &Digest,
    request: &Request<Bytes>,
) -> Option<Bytes> {
    let from = from?;
    host.gate.check(host_name, request.headers(), Target::Repository(from, Action::Pull)).ok()?;
    host.repositories.get(from)?.blobs.get(digest).cloned()
}

/// Answers `PATCH`, `PUT`, `GET` and `DELETE` of an upload that was begun.
pub(crate) fn carry_on(
    repository: &mut Repository,
    name: &str,
    id: &str,
    request: &Request<Bytes>,
) -> Result<Response<Bytes>, Refusal> {
    let unknown =
        || Refusal::new(Code::BlobUploadUnknown, format!("no upload {id} is open in this repository"));
    let upload = repository.uploads.get_mut(id).ok_or_else(unknown)?;
    match *request.method() {
        Method::PATCH => {
            upload.append(name, id, request)?;
            Ok(progress(StatusCode::ACCEPTED, name, id, upload.bytes.len()))
        }
        Method::PUT => {
            let text = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
                .find(|(key, _)| key == "digest")
                .map(|(_, value)| value.into_owned())
                .ok_or_else(|| Refusal::new(Code::DigestInvalid, "the digest parameter is missing"))?;
            let digest = digest(&text)?;
            if !request.body().is_empty() {
                upload.append(name, id, request)?;
            }
            let upload = repository.uploads.remove(id).ok_or_else(unknown)?;
            finish(repository, &digest, Bytes::from(upload.bytes))?;
            Ok(created(name, &digest))
        }
        Method::DELETE => {
            repository.uploads.remove(id);
            Ok(Answer::new(StatusCode::NO_CONTENT).into_response())
        }
        _ => Ok(progress(StatusCode::NO_CONTENT, name, id, upload.bytes.len())),
    }
}

impl Upload {
    fn append(&mut self, name: &str, id: &str, request: &Request<Bytes>) -> Result<(), Refusal> {
        let have = self.bytes.len();
        let chunk = request.body();
        if let Some(value) = request.headers().get(header::CONTENT_RANGE) {
            let range = value.to_str().ok().and_then(chunk_range);
            if range != Some((have, chunk.len())) {
                return Err(Refusal::new(Code::RangeInvalid, format!("the upload continues at byte {have}"))
                    .header(header::LOCATION, location(name, id))
                    .header(header::RANGE, so_far(have)));
            }
        }
        if have.saturating_add(chunk.len()) > MAX_BLOB_BYTES {
            return Err(Refusal::new(
                Code::SizeInvalid,
                format!("a blob has at most {MAX_BLOB_BYTES} bytes"),
            ));
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

/// Start and length of a chunk, from `FIRST-LAST` (the specification has no unit here).
fn chunk_range(value: &str) -> Option<(usize, usize)> {
    let (first, last) = value.split_once('-')?;
    let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    last.checked_sub(first)?.checked_add(1).map(|length| (first, length))
}

fn digest(text: &str) -> Result<Digest, Refusal> {
    Digest::parse(text).map_err(|error| Refusal::new(Code::DigestInvalid, error.to_string()))
}

fn finish(repository: &mut Repository, digest: &Digest, bytes: Bytes) -> Result<(), Refusal> {
    if bytes.len() > MAX_BLOB_BYTES {
        return Err(Refusal::new(Code::SizeInvalid, format!("a blob has at most {MAX_BLOB_BYTES} bytes")));
    }
    if !digest.verifies(&bytes) {
        return Err(Refusal::new(
            Code::DigestInvalid,
            format!("the content does not have the digest {digest}"),
        ));
    }
    repository.blobs.insert(digest.clone(), bytes);
    Ok(())
}

fn created(name: &str, digest: &Digest) -> Response<Bytes> {
    Answer::new(StatusCode::CREATED)
        .header(header::LOCATION, format!("/v2/{name}/blobs/{digest}"))
        .header(header::CONTENT_LENGTH, "0")
        .header(CONTENT_DIGEST, digest.to_string())
        .into_response()
}

fn progress(status: StatusCode, name: &str, id: &str, have: usize) -> Response<Bytes> {
    let answer = Answer::new(status)
        .header(header::LOCATION, location(name, id))
        .header(header::RANGE, so_far(have))
        .header(UPLOAD_UUID, id);
    if status == StatusCode::NO_CONTENT {
        answer.into_response()
    } else {
        answer.header(header::CONTENT_LENGTH, "0").into_response()
    }
}

fn location(name: &str, id: &str) -> String {
    format!("/v2/{name}/blobs/uploads/{id}")
}

/// The range that has arrived. The specification has no way to say "nothing", so an empty upload also reads `0-0`.
fn so_far(have: usize) -> String {
    format!("0-{}", have.saturating_sub(1))
}
