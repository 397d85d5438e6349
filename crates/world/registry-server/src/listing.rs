//! Listings: tags, the catalogue, referrers.

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode, header};
use scantling_image::Digest;
use serde_json::json;

use crate::reply::{Answer, Code, Refusal};
use crate::repository::{OCI_INDEX, Repository};
use crate::server::Host;

/// Entries of one page, at most and where the client does not say.
const PAGE: usize = 1_000;

/// Answers `/v2/NAME/tags/list`.
pub(crate) fn tags(
    repository: &Repository,
    name: &str,
    request: &Request<Bytes>,
) -> Result<Response<Bytes>, Refusal> {
    let page = Page::of(repository.tags.keys().map(String::as_str), request)?;
    Ok(page.answer(&format!("/v2/{name}/tags/list"), &json!({"name": name, "tags": page.items})))
}

/// Answers `/v2/_catalog`.
pub(crate) fn catalog(host: &Host, request: &Request<Bytes>) -> Result<Response<Bytes>, Refusal> {
    let page = Page::of(host.repositories.keys().map(String::as_str), request)?;
    Ok(page.answer("/v2/_catalog", &json!({"repositories": page.items})))
}

/// One page of a sorted listing.
struct Page<'a> {
    items: Vec<&'a str>,
    /// The size asked for, when there is more.
    more: Option<usize>,
}

impl<'a> Page<'a> {
    fn of(all: impl Iterator<Item = &'a str>, request: &Request<Bytes>) -> Result<Self, Refusal> {
        let (mut size, mut last) = (PAGE, String::new());
        for (key, value) in form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
            match key.as_ref() {
                "n" => {
                    let n: usize = value.parse().map_err(|_| {
                        Refusal::new(
                            Code::PaginationInvalid,
                            format!("n={value:?} is not a number of entries"),
                        )
                    })?;
                    size = n.min(PAGE);
                }
                "last" => last = value.into_owned(),
                _ => {}
            }
        }
        let mut rest = all.skip_while(|item| !last.is_empty() && *item <= last.as_str());
        let items: Vec<&str> = rest.by_ref().take(size).collect();
        // A page of nothing has no last entry to continue from.
        let more = (size > 0 && rest.next().is_some()).then_some(size);
        Ok(Self { items, more })
    }

    fn answer(&self, path: &str, body: &serde_json::Value) -> Response<Bytes> {
        let mut answer = Answer::json(StatusCode::OK, body);
        if let (Some(size), Some(last)) = (self.more, self.items.last()) {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("last", last)
                .append_pair("n", &size.to_string())
                .finish();
            answer = answer.header(header::LINK, format!("<{path}?{query}>; rel=\"next\""));
        }
        answer.into_response()
    }
}

/// Answers `/v2/NAME/referrers/DIGEST`: an index of what refers to the digest; empty when nothing does, also when the digest or the
/// repository is unknown.
pub(crate) fn referrers(
    repository: Option<&Repository>,
    subject: &Digest,
    request: &Request<Bytes>,
) -> Response<Bytes> {
    let wanted = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
        .find(|(key, _)| key == "artifactType")
        .map(|(_, value)| value.into_owned());
    let mut manifests = Vec::new();
    for (digest, manifest) in repository.into_iter().flat_map(|repository| &repository.manifests) {
        let facts = &manifest.facts;
        if facts.subject.as_ref() != Some(subject) || (wanted.is_some() && facts.artifact_type != wanted) {
            continue;
        }
        let mut descriptor = json!({
            "mediaType": manifest.media_type,
            "digest": digest.to_string(),
            "size": manifest.bytes.len(),
        });
        if let Some(artifact_type) = &facts.artifact_type {
            descriptor["artifactType"] = json!(artifact_type);
        }
        if !facts.annotations.is_empty() {
            descriptor["annotations"] = json!(facts.annotations);
        }
        manifests.push(descriptor);
    }
    let body = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests});
    let mut answer = Answer::new(StatusCode::OK).body(OCI_INDEX, Bytes::from(body.to_string()));
    if wanted.is_some() {
        answer = answer.header(HeaderName::from_static("oci-filters-applied"), "artifactType");
    }
    answer.into_response()
}
