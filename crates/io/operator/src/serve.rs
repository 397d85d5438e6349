//! Probes and metrics over HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::operator::Operator;

/// Connections at the same time: probes and a collector of metrics or two. What is beyond waits.
const CONNECTIONS: usize = 16;
/// How long a request may take to arrive.
const HEADER: Duration = Duration::from_secs(5);
/// How long a connection may live, so that a few that do nothing cannot keep all others out.
const LIFE: Duration = Duration::from_secs(30);
/// A process that has done nothing for this long hangs. Reconcilers are asked at least once a minute.
const HANGS_AFTER: i64 = 300;

/// Why probes and metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve probes and metrics on {address}: {source}; name another address with --listen")]
pub struct ServeError {
    /// The address.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

/// Serves `/healthz`, `/readyz` and `/metrics` for as long as it is polled.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn serve(operator: Arc<Operator>, address: SocketAddr) -> Result<Infallible, ServeError> {
    let listener = TcpListener::bind(address).await.map_err(|source| ServeError { address, source })?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { continue };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, or the other side is gone already.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let operator = operator.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&operator, &request);
                std::future::ready(Ok::<_, Infallible>(answer))
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER).keep_alive(false);
            // A connection that ends badly is the other side's trouble.
            let _ = tokio::time::timeout(LIFE, http.serve_connection(TokioIo::new(stream), service)).await;
            drop(place);
        });
    }
}

fn answer<B>(operator: &Operator, request: &Request<B>) -> Response<Full<Bytes>> {
    let text = |status: StatusCode, kind: &'static str, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
        response
    };
    let plain = |status, words: &str| text(status, "text/plain; charset=utf-8", format!("{words}\n"));
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    let last = operator.metrics.last_beat();
    let silent = operator.clock.now().as_second().saturating_sub(last);
    match request.uri().path() {
        "/healthz" if last == 0 || silent < HANGS_AFTER => plain(StatusCode::OK, "ok"),
        "/healthz" => {
            plain(StatusCode::SERVICE_UNAVAILABLE, &format!("nothing was done for {silent} seconds"))
        }
        // Whoever waits to lead is ready as well: it can take over at any moment.
        "/readyz" if last == 0 => {
            plain(StatusCode::SERVICE_UNAVAILABLE, "the API server has not answered yet")
        }
        "/readyz" => plain(StatusCode::OK, "ok"),
        "/metrics" => text(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            operator.metrics.text(),
        ),
        _ => plain(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics"),
    }
}
