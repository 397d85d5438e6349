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
use scantling_operator::{Answered, Operator};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::outcome::Failure;

/// Connections at the same time: probes and a collector of metrics or two. What is beyond waits.
const CONNECTIONS: usize = 16;
/// How long a request may take to arrive.
const HEADER: Duration = Duration::from_secs(5);
/// How long a connection may live, so that a few that do nothing cannot keep all others out.
const LIFE: Duration = Duration::from_secs(30);
/// Serves `/healthz`, `/readyz` and `/metrics` for as long as it is polled.
pub(crate) async fn serve(operator: Arc<Operator>, address: SocketAddr) -> Result<Infallible, Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::failed(format!("cannot serve probes and metrics on {address}: {error}"))
            .with_hint("name another address with --listen")
    })?;
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
    let answered = match *request.method() {
        Method::GET | Method::HEAD => operator.answer(request.uri().path()),
        _ => Answered { status: 405, media_type: "text/plain", text: "only GET\n".to_owned() },
    };
    let mut response = Response::new(Full::new(Bytes::from(answered.text)));
    *response.status_mut() = StatusCode::from_u16(answered.status).unwrap_or_default();
    let media_type = http::HeaderValue::from_static(answered.media_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
    response
}
