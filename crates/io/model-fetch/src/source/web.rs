//! Models on a web server.

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{self, HeaderMap};
use http::{Method, Request, StatusCode, Uri as Url};
use http_body_util::BodyExt as _;

use super::{Item, Opened, Trouble, Uri};
use crate::client::{Web, reason};
use crate::error::FetchError;
use crate::limits::MAX_REDIRECTS;

/// A file on a web server.
pub(crate) struct Page {
    url: Url,
    web: Web,
}

impl Page {
    pub(crate) fn new(url: Url, web: Web) -> Self {
        Self { url, web }
    }

    fn shown(url: &Url) -> String {
        Uri::Web(url.clone()).to_string()
    }

    /// The file, called like the last part of its path.
    pub(crate) fn item(&self) -> Item {
        let last = self.url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
        let path = if name.is_empty() { "model".to_owned() } else { name };
        Item { path, key: String::new(), size: None, etag: None }
    }

    pub(crate) async fn open(&self, from: u64, etag: Option<&str>) -> Result<Opened, Trouble> {
        let mut url = self.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::builder()
                .method(Method::GET)
                .uri(url.clone())
                .header(header::USER_AGENT, concat!("scantling/", env!("CARGO_PKG_VERSION")))
                .header(header::ACCEPT_ENCODING, "identity");
            if from > 0 {
                request = request.header(header::RANGE, format!("bytes={from}-"));
                if let Some(etag) = etag {
                    request = request.header(header::IF_RANGE, etag);
                }
            }
            let request = request.body(Bytes::new()).map_err(|error| answer(&url, &error.to_string()))?;
            let response = self.web.send(request).await.map_err(Trouble::Again)?;
            let (parts, body) = response.into_parts();
            if parts.status.is_redirection() && parts.status != StatusCode::NOT_MODIFIED {
                url = redirected(&url, &parts.headers)?;
                continue;
            }
            let begins = begins(parts.status, &parts.headers, from, &url)?;
            let length = number(&parts.headers, header::CONTENT_LENGTH.as_str());
            let chunks = body.into_data_stream().map(|chunk| chunk.map_err(|error| reason(&error)));
            return Ok(Opened {
                chunks: Box::pin(chunks),
                from: begins,
                size: length.map(|length| length.saturating_add(begins)),
                etag: strong_etag(&parts.headers),
            });
        }
        Err(answer(&self.url, &format!("it redirects more than {MAX_REDIRECTS} times")).into())
    }
}

fn answer(url: &Url, why: &str) -> FetchError {
    FetchError::Answer { uri: Page::shown(url), why: why.to_owned() }
}

/// A weak tag says that two versions mean the same, which is not that they are the same bytes.
fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(header::ETAG)?.to_str().ok()?;
    (!etag.starts_with("W/")).then(|| etag.to_owned())
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn redirected(url: &Url, headers: &HeaderMap) -> Result<Url, FetchError> {
    let to = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
    let bad = || answer(url, "it redirects to an address that is none");
    let next: Url = if to.starts_with('/') {
        let mut parts = url.clone().into_parts();
        parts.path_and_query = Some(to.parse().map_err(|_| bad())?);
        Url::from_parts(parts).map_err(|_| bad())?
    } else {
        to.parse().map_err(|_| bad())?
    };
    let scheme = next.scheme_str().unwrap_or_default();
    if !matches!(scheme, "http" | "https") || next.authority().is_none() {
        return Err(bad());
    }
    if url.scheme_str() == Some("https") && scheme == "http" {
        return Err(answer(url, "it redirects from https to http, where anybody could answer"));
    }
    Ok(next)
}

/// At which byte an answer begins, or why there is none.
fn begins(status: StatusCode, headers: &HeaderMap, from: u64, url: &Url) -> Result<u64, Trouble> {
    match status {
        StatusCode::OK => Ok(0),
        StatusCode::PARTIAL_CONTENT => {
            // "bytes 100-199/200"
            let range =
                headers.get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
            let first =
                range.strip_prefix("bytes ").and_then(|range| range.split('-').next()).unwrap_or_default();
            match first.trim().parse::<u64>() {
                Ok(first) if first == from => Ok(first),
                _ => Err(answer(url, "it answers with another range than was asked for").into()),
            }
        }
        StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PRECONDITION_FAILED if from > 0 => {
            Err(Trouble::Changed)
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(FetchError::Missing { uri: Page::shown(url) }.into()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            Err(FetchError::Denied { uri: Page::shown(url), status: status.to_string() }.into())
        }
        status
            if status.is_server_error()
                || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) =>
        {
            Err(Trouble::Again(format!("it answers {status}")))
        }
        status => Err(answer(url, &format!("it answers {status}")).into()),
    }
}
