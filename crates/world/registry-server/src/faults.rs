//! Failures on demand.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};

use crate::reply::{Code, Refusal};
use crate::route::{Route, Selector};

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// Manifests and indexes.
    Manifest,
    /// Blobs: configurations and layers.
    Blob,
    /// Uploads.
    Upload,
    /// Listings: tags, catalogue, referrers.
    Listing,
    /// The token endpoint.
    Token,
    /// `/v2/`
    Base,
}

/// Which requests a fault is for. A field that is not given matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Requests {
    /// The host, as in [`crate::RegistryServer::push`].
    pub host: Option<String>,
    /// The repository, or a prefix of it by whole components.
    pub repository: Option<String>,
    /// What they are about.
    pub subject: Option<Subject>,
    /// The method: `GET`, `HEAD` …
    pub method: Option<String>,
    /// The tag or digest, exactly.
    pub reference: Option<String>,
}

/// What happens instead of the right answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, tag = "kind")]
pub enum Effect {
    /// An error of this status, with `Retry-After` in seconds if given.
    #[serde(rename_all = "camelCase")]
    Status {
        /// HTTP status, 400 to 599.
        status: u16,
        /// Seconds for `Retry-After`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// The right answer, but its body ends after so many bytes (and `Content-Length` agrees with what is sent).
    Truncate {
        /// How many bytes are left.
        bytes: usize,
    },
    /// "Unknown", as if the content had never been published.
    Missing,
    /// No answer at all; see [`Unreachable`].
    Outage,
}

/// A failure that is waiting for its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Which requests.
    #[serde(default)]
    pub requests: Requests,
    /// What happens.
    pub effect: Effect,
    /// So many matching requests are served before it begins.
    #[serde(default)]
    pub after: u32,
    /// So many requests fail; without it, all of them until the fault is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// Marks a response (in its extensions) that stands for a connection which could not be made. A transport must turn it into an
/// I/O error; one that does not sees a 503.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable;

/// Names a fault that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// The waiting failures. The first that matches wins, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    waiting: BTreeMap<FaultId, Fault>,
    next: u64,
}

impl Faults {
    /// Adds a failure behind those that wait already.
    pub fn add(&mut self, fault: Fault) -> FaultId {
        let id = FaultId(self.next);
        self.next += 1;
        self.waiting.insert(id, fault);
        id
    }

    /// Takes one back; gives what was left of it.
    pub fn clear(&mut self, id: FaultId) -> Option<Fault> {
        self.waiting.remove(&id)
    }

    /// Takes all back.
    pub fn clear_all(&mut self) {
        self.waiting.clear();
    }

    /// What waits, with the remaining counts.
    pub fn waiting(&self) -> impl Iterator<Item = (FaultId, &Fault)> {
        self.waiting.iter().map(|(id, fault)| (*id, fault))
    }

    /// The effect for this request; counts it.
    pub(crate) fn take(&mut self, host: &str, method: &Method, route: &Route) -> Option<Effect> {
        let mut hit = None;
        for (id, fault) in &mut self.waiting {
            if !fault.requests.matches(host, method, route) {
                continue;
            }
            if fault.after > 0 {
                fault.after -= 1;
                continue;
            }
            match &mut fault.times {
                Some(0) => continue,
                Some(left) => *left -= 1,
                None => {}
            }
            hit = Some((*id, fault.effect.clone(), fault.times == Some(0)));
            break;
        }
        let (id, effect, spent) = hit?;
        if spent {
            self.waiting.remove(&id);
        }
        Some(effect)
    }
}

impl Requests {
    fn matches(&self, host: &str, method: &Method, route: &Route) -> bool {
        let is = |wanted: &Option<String>, seen: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| seen.is_some_and(|seen| seen.eq_ignore_ascii_case(wanted)))
        };
        let reference = match route {
            Route::Manifest { selector: Selector::Tag(tag), .. } => Some(tag.clone()),
            Route::Manifest { selector: Selector::Digest(digest), .. }
            | Route::Blob { digest, .. }
            | Route::Referrers { digest, .. } => Some(digest.to_string()),
            _ => None,
        };
        is(&self.host, Some(host))
            && is(&self.method, Some(method.as_str()))
            && self.reference.as_ref().is_none_or(|wanted| reference.as_ref() == Some(wanted))
            && self.subject.is_none_or(|wanted| wanted == subject(route))
            && self
                .repository
                .as_deref()
                .is_none_or(|prefix| route.repository().is_some_and(|name| is_below(name, prefix)))
    }
}

/// Is `name` the repository `prefix` or one below it, by whole components? The empty prefix holds everything.
pub(crate) fn is_below(name: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    prefix.is_empty()
        || name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn subject(route: &Route) -> Subject {
    match route {
        Route::Base => Subject::Base,
        Route::Token => Subject::Token,
        Route::Catalog | Route::Tags { .. } | Route::Referrers { .. } => Subject::Listing,
        Route::Manifest { .. } => Subject::Manifest,
        Route::Blob { .. } => Subject::Blob,
        Route::Uploads { .. } | Route::Upload { .. } => Subject::Upload,
    }
}

/// The response of an effect that needs no right answer; `None` for those that change it.
pub(crate) fn instead(effect: &Effect, host: &str, route: &Route) -> Option<Response<Bytes>> {
    match effect {
        Effect::Status { status, retry_after } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let code = match status {
                StatusCode::TOO_MANY_REQUESTS => Code::TooManyRequests,
                StatusCode::UNAUTHORIZED => Code::Unauthorized,
                StatusCode::FORBIDDEN => Code::Denied,
                StatusCode::NOT_FOUND => unknown(route),
                _ => Code::Unavailable,
            };
            let mut refusal = Refusal::new(code, format!("{host} fails on demand")).status(status);
            if let Some(seconds) = retry_after {
                refusal = refusal.header(header::RETRY_AFTER, seconds.to_string());
            }
            Some(refusal.into_response())
        }
        Effect::Missing => {
            let refusal =
                Refusal::new(unknown(route), "unknown to this registry").status(StatusCode::NOT_FOUND);
            Some(refusal.into_response())
        }
        Effect::Outage => {
            let mut response = Refusal::new(Code::Unavailable, format!("{host} is down")).into_response();
            response.extensions_mut().insert(Unreachable);
            Some(response)
        }
        Effect::Truncate { .. } => None,
    }
}

/// Cuts the body of a right answer.
pub(crate) fn truncate(response: &mut Response<Bytes>, bytes: usize) {
    let body = response.body_mut();
    if body.len() <= bytes {
        return;
    }
    body.truncate(bytes);
    let length = body.len();
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
}

fn unknown(route: &Route) -> Code {
    match subject(route) {
        Subject::Manifest => Code::ManifestUnknown,
        Subject::Blob => Code::BlobUnknown,
        Subject::Upload => Code::BlobUploadUnknown,
        Subject::Listing | Subject::Token | Subject::Base => Code::NameUnknown,
    }
}
