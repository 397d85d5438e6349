//! One request and its answer, with limits and retries.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use tower::{Service as _, ServiceExt as _};

use crate::client::Inner;
use crate::error::{Place, RegistryError};
use crate::hosts::lock;
use crate::retry;
use crate::transport::{Body, BoxError};

/// A request before it is authorised.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// False for requests that must not be sent twice.
    pub(crate) repeatable: bool,
}

impl Outgoing {
    pub(crate) fn new(method: Method, uri: Uri) -> Self {
        Self { method, uri, headers: HeaderMap::new(), body: Bytes::new(), repeatable: true }
    }
}

impl Inner {
    /// Sends the request, again if the server is busy or away, and gives the last answer.
    pub(crate) async fn exchange(
        &self,
        place: &Place,
        outgoing: &Outgoing,
    ) -> Result<Response<Body>, RegistryError> {
        let name = outgoing.uri.authority().map_or("", http::uri::Authority::as_str);
        let host = self.hosts.host(name, self.options.parallel);
        let last = if outgoing.repeatable { self.options.retries } else { 0 };
        let mut round = 0;
        loop {
            host.open().await;
            let answer = {
                // The semaphore is never closed.
                let _permit = host.permits.acquire().await.ok();
                self.once(outgoing).await
            };
            let wait = match &answer {
                Ok(response) if retry::may_pass(response.status()) => {
                    let asked = retry::retry_after(response.headers());
                    if let Some(asked) = asked.filter(|asked| *asked <= self.options.longest_retry_after) {
                        host.close(asked);
                    }
                    asked
                }
                Ok(_) => return answer.map_err(|detail| place.unreachable(detail)),
                Err(_) => None,
            };
            let too_long = wait.is_some_and(|wait| wait > self.options.longest_retry_after);
            if round >= last || too_long {
                return answer.map_err(|detail| place.unreachable(detail));
            }
            let jitter = lock(&self.jitter).f64();
            let pause = retry::pause(&self.options, round, jitter);
            // Behind a wait that was asked for, jitter spreads those who waited together.
            tokio::time::sleep(wait.map_or(pause, |wait| wait + pause / 8)).await;
            round += 1;
        }
    }

    async fn once(&self, outgoing: &Outgoing) -> Result<Response<Body>, String> {
        let mut request = Request::new(outgoing.body.clone());
        *request.method_mut() = outgoing.method.clone();
        *request.uri_mut() = outgoing.uri.clone();
        *request.headers_mut() = outgoing.headers.clone();
        if let Ok(agent) = self.options.user_agent.parse() {
            request.headers_mut().insert(header::USER_AGENT, agent);
        }
        let mut service = lock(&self.transport).clone();
        let answer = async { service.ready().await?.call(request).await };
        match tokio::time::timeout(self.options.timeout, answer).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(no_answer(self.options.timeout)),
        }
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) async fn piece(&self, place: &Place, body: &mut Body) -> Result<Option<Bytes>, RegistryError> {
        loop {
            match tokio::time::timeout(self.options.timeout, body.frame()).await {
                Err(_) => return Err(place.unreachable(no_answer(self.options.timeout))),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    return Err(place.unreachable(format!("the answer broke off: {}", chain(&error))));
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// A whole body, if it is not larger than the limit.
    pub(crate) async fn whole(
        &self,
        place: &Place,
        response: Response<Body>,
        limit: usize,
    ) -> Result<Bytes, RegistryError> {
        let too_large = || place.malformed(format!("the answer is larger than {limit} bytes"));
        let announced = response.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        if announced.and_then(|text| text.parse::<usize>().ok()).is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut body = response.into_body();
        let mut collected = Vec::new();
        while let Some(piece) = self.piece(place, &mut body).await? {
            if collected.len() + piece.len() > limit {
                return Err(too_large());
            }
            collected.extend_from_slice(&piece);
        }
        Ok(Bytes::from(collected))
    }
}

/// An error with its causes: "connection failed: tcp connect error: connection refused".
fn chain(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

fn no_answer(timeout: Duration) -> String {
    format!("no answer within {} s", timeout.as_secs_f64())
}

/// True for redirections that keep the method of a read.
pub(crate) fn is_redirection(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
