//! Responses: the specification's error bodies and the headers that every answer has.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;

/// The specification's error codes, with the status that the reference implementation answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    BlobUnknown,
    BlobUploadUnknown,
    Denied,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    PaginationInvalid,
    RangeInvalid,
    SizeInvalid,
    TagInvalid,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unsupported,
}

impl Code {
    fn text(self) -> &'static str {
        match self {
            Self::BlobUnknown => "BLOB_UNKNOWN",
            Self::BlobUploadUnknown => "BLOB_UPLOAD_UNKNOWN",
            Self::Denied => "DENIED",
            Self::DigestInvalid => "DIGEST_INVALID",
            Self::ManifestBlobUnknown => "MANIFEST_BLOB_UNKNOWN",
            Self::ManifestInvalid => "MANIFEST_INVALID",
            Self::ManifestUnknown => "MANIFEST_UNKNOWN",
            Self::NameInvalid => "NAME_INVALID",
            Self::NameUnknown => "NAME_UNKNOWN",
            Self::PaginationInvalid => "PAGINATION_NUMBER_INVALID",
            Self::RangeInvalid => "RANGE_INVALID",
            Self::SizeInvalid => "SIZE_INVALID",
            Self::TagInvalid => "TAG_INVALID",
            Self::TooManyRequests => "TOOMANYREQUESTS",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Unsupported => "UNSUPPORTED",
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::BlobUnknown | Self::BlobUploadUnknown | Self::ManifestUnknown | Self::NameUnknown => {
                StatusCode::NOT_FOUND
            }
            Self::DigestInvalid
            | Self::ManifestBlobUnknown
            | Self::ManifestInvalid
            | Self::NameInvalid
            | Self::PaginationInvalid
            | Self::TagInvalid => StatusCode::BAD_REQUEST,
            Self::RangeInvalid => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::SizeInvalid => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Denied => StatusCode::FORBIDDEN,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unsupported => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}

/// An answer that refuses the request.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: Code,
    status: StatusCode,
    message: String,
    headers: Vec<(HeaderName, String)>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, status: code.status(), message: message.into(), headers: Vec::new() }
    }

    /// The same with another status, where one code serves several.
    pub(crate) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let body = json!({"errors": [{"code": self.code.text(), "message": self.message, "detail": null}]});
        let mut answer = Answer::json(self.status, &body);
        for (name, value) in self.headers {
            answer = answer.header(name, value);
        }
        answer.into_response()
    }
}

/// A response in the making. Header values that HTTP does not allow are left out: all of them are made here from checked text, so this
/// never happens, and a response without one header is better than none.
#[derive(Debug)]
pub(crate) struct Answer(Response<Bytes>);

impl Answer {
    pub(crate) fn new(status: StatusCode) -> Self {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = status;
        Self(response).header(HeaderName::from_static("docker-distribution-api-version"), "registry/2.0")
    }

    pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Self {
        Self::new(status).body("application/json", Bytes::from(body.to_string()))
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        if let Ok(value) = HeaderValue::try_from(value.into()) {
            self.0.headers_mut().insert(name, value);
        }
        self
    }

    pub(crate) fn body(mut self, media_type: &str, body: Bytes) -> Self {
        let length = body.len().to_string();
        *self.0.body_mut() = body;
        self.header(header::CONTENT_TYPE, media_type).header(header::CONTENT_LENGTH, length)
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        self.0
    }
}

/// The header that names the digest of what was sent.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// The header that names an upload.
pub(crate) const UPLOAD_UUID: HeaderName = HeaderName::from_static("docker-upload-uuid");
