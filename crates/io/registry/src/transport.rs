//! The service under the client.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use tower::Service;

/// An error of the service, of any kind.
pub type BoxError = tower::BoxError;
/// A response's body, read as it comes.
pub type Body = BoxBody<Bytes, BoxError>;

/// Anything that answers HTTP requests. The request's URI is absolute: scheme, registry's name with port, path.
pub trait Transport:
    Service<Request<Bytes>, Response = Response<Body>, Error = BoxError, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<T> Transport for T where
    T: Service<Request<Bytes>, Response = Response<Body>, Error = BoxError, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// A body that is there as a whole.
pub fn full(bytes: Bytes) -> Body {
    http_body_util::Full::new(bytes).map_err(|never| match never {}).boxed()
}

/// A transport out of a function from host (with port) and request to response, for servers in the same process. An error stands
/// for a connection that could not be made.
pub fn transport_from_fn<F>(answer: F) -> impl Transport + Sync
where
    F: FnMut(&str, &Request<Bytes>) -> Result<Response<Bytes>, BoxError> + Send + 'static,
{
    FromFn(Arc::new(Mutex::new(answer)))
}

struct FromFn<F>(Arc<Mutex<F>>);

impl<F> Clone for FromFn<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> Service<Request<Bytes>> for FromFn<F>
where
    F: FnMut(&str, &Request<Bytes>) -> Result<Response<Bytes>, BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let host = request.uri().authority().map_or("", http::uri::Authority::as_str).to_owned();
        let mut answer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ready(answer(&host, &request).map(|response| response.map(full)))
    }
}
