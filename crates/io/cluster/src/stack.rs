//! The layers between a `kube::Client` and the wire, the same in production and in a rehearsal.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tower::{BoxError, Service};

/// Attempts for one request, the first included. With the delays below a server may be away for about a minute,
/// which covers the roll-over of an API server, and a dead address is still reported within the same minute.
const ATTEMPTS: u32 = 8;
/// Delay before the second attempt; doubled for each further one.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// No single delay is longer, whether ours or the server's `Retry-After`.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Builds a client over any HTTP service: retries with jitter drawn from `seed`, nothing else.
///
/// `kube`'s own retry layer draws its jitter from the process, so that no run could be replayed.
pub fn stack<S, B>(service: S, seed: u64) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    kube::Client::new(Retry { inner: service, jitter: Jitter::new(seed) }, "default")
}

/// Seeded jitter, shared by everything that waits on behalf of one client.
#[derive(Debug, Clone)]
pub struct Jitter(Arc<Mutex<fastrand::Rng>>);

impl Jitter {
    /// Jitter drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// A duration between half of `full` and `full`.
    pub fn around(&self, full: Duration) -> Duration {
        let drawn = self.0.lock().unwrap_or_else(PoisonError::into_inner).f64();
        full.mul_f64(0.5 + drawn / 2.0)
    }

    /// The delay before attempt `attempt + 1` (the first attempt is 1), doubled each time up to `longest`.
    pub fn backoff(&self, first: Duration, longest: Duration, attempt: u32) -> Duration {
        let factor = 1u32.checked_shl(attempt.saturating_sub(1).min(16)).unwrap_or(u32::MAX);
        self.around(first.saturating_mul(factor).min(longest))
    }
}

/// Carried by a request to a server that may stand behind the API server and be away for good, as of an aggregated API: when
/// the API server says that it is unavailable, it is asked once or twice more, and not for as long as an API server takes
/// to come back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MayBeAway;

/// Attempts for such a request.
const ATTEMPTS_AWAY: u32 = 3;

#[derive(Debug, Clone)]
struct Retry<S> {
    inner: S,
    jitter: Jitter,
}

/// A request whose effect is the same when it is sent twice. A `POST` creates or starts something, so it is only
/// repeated when the server said that it did not begin.
fn repeatable(method: &Method) -> bool {
    method != Method::POST
}

fn worth_repeating(method: &Method, status: StatusCode) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
        StatusCode::GATEWAY_TIMEOUT => repeatable(method),
        _ => false,
    }
}

fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let seconds = response.headers().get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_DELAY))
}

fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().try_clone()?;
    let mut copied = Request::new(body);
    *copied.method_mut() = request.method().clone();
    *copied.uri_mut() = request.uri().clone();
    *copied.version_mut() = request.version();
    *copied.headers_mut() = request.headers().clone();
    *copied.extensions_mut() = request.extensions().clone();
    Some(copied)
}

impl<S, B> Service<Request<Body>> for Retry<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The clone that was made ready is the one that is called.
        let fresh = self.inner.clone();
        let mut service = std::mem::replace(&mut self.inner, fresh);
        let jitter = self.jitter.clone();
        Box::pin(async move {
            let method = request.method().clone();
            let may_be_away = request.extensions().get::<MayBeAway>().is_some();
            let mut request = request;
            let mut attempt = 1;
            loop {
                let again = if attempt < ATTEMPTS { copy(&request) } else { None };
                let answer = service.call(request).await;
                let is_away = may_be_away
                    && attempt >= ATTEMPTS_AWAY
                    && answer.as_ref().is_ok_and(|r| r.status() == StatusCode::SERVICE_UNAVAILABLE);
                if is_away {
                    return answer.map_err(Into::into);
                }
                let delay = match &answer {
                    Ok(response) if worth_repeating(&method, response.status()) => retry_after(response),
                    Err(_) if repeatable(&method) => None,
                    Ok(_) | Err(_) => return answer.map_err(Into::into),
                };
                let Some(next) = again else { return answer.map_err(Into::into) };
                drop(answer);
                let delay = delay.unwrap_or_else(|| jitter.backoff(FIRST_DELAY, LONGEST_DELAY, attempt));
                tokio::time::sleep(delay).await;
                std::future::poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
                request = next;
                attempt += 1;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use bytes::Bytes;
    use http_body_util::Full;

    type Answer = Result<Response<Full<Bytes>>, BoxError>;

    /// Answers the statuses in turn, then 200; `0` stands for a broken connection.
    fn scripted(
        statuses: &[u16],
    ) -> tower::util::ServiceFn<
        impl FnMut(Request<Body>) -> std::future::Ready<Answer> + Clone + Send + 'static,
    > {
        let left = Arc::new(Mutex::new(statuses.to_vec()));
        tower::service_fn(move |_: Request<Body>| {
            let mut left = left.lock().unwrap();
            let status = if left.is_empty() { 200 } else { left.remove(0) };
            std::future::ready(if status == 0 {
                Err(BoxError::from("connection refused"))
            } else {
                let mut response = Response::new(Full::new(Bytes::from_static(b"{}")));
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                Ok(response)
            })
        })
    }

    async fn outcome(method: Method, statuses: &[u16]) -> (Option<u16>, Duration) {
        let started = tokio::time::Instant::now();
        let client = stack(scripted(statuses), 7);
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        let status = client.send(request).await.ok().map(|r| r.status().as_u16());
        (status, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn retries_what_may_be_repeated_and_nothing_else() {
        let cases: &[(Method, &[u16], Option<u16>)] = &[
            (Method::GET, &[503, 429, 504], Some(200)),
            (Method::GET, &[0, 0], Some(200)),
            (Method::GET, &[404], Some(404)),
            (Method::GET, &[500], Some(500)),
            (Method::POST, &[503, 429], Some(200)),
            (Method::POST, &[504], Some(504)),
            (Method::POST, &[0], None),
            (Method::GET, &[503; 20], Some(503)),
            (Method::PATCH, &[0; 20], None),
        ];
        for (method, statuses, expected) in cases {
            let (status, _) = outcome(method.clone(), statuses).await;
            assert_eq!(status, *expected, "{method} {statuses:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_be_away_for_good_is_not_waited_for() {
        let started = tokio::time::Instant::now();
        let client = stack(scripted(&[503; 20]), 7);
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(MayBeAway);
        assert_eq!(client.send(request).await.unwrap().status(), 503);
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        // A broken connection is the API server's own, which comes back.
        let client = stack(scripted(&[0, 0, 0, 0, 429, 429, 429]), 7);
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(MayBeAway);
        assert_eq!(client.send(request).await.unwrap().status(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_seed_waits_the_same_time() {
        let (_, first) = outcome(Method::GET, &[503, 503, 503]).await;
        let (_, second) = outcome(Method::GET, &[503, 503, 503]).await;
        assert_eq!(first, second);
        assert!(first >= Duration::from_millis(875), "{first:?}");
    }
}
