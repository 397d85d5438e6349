//! Probes and metrics over HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use scantling_files::{Limits, read_file};
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

/// Serves `/healthz`, `/readyz` and `/metrics` for as long as it is polled. With a file of a token, metrics are for those who show
/// it: they tell names of people's notebooks and models.
pub(crate) async fn serve(
    operator: Arc<Operator>,
    address: SocketAddr,
    token: Option<Utf8PathBuf>,
) -> Result<Infallible, Failure> {
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
        let (operator, token) = (operator.clone(), token.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&operator, &request, token.as_deref());
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

fn answer<B>(operator: &Operator, request: &Request<B>, token: Option<&Utf8Path>) -> Response<Full<Bytes>> {
    let plain = |status, text: &str| Answered { status, media_type: "text/plain", text: format!("{text}\n") };
    let path = request.uri().path();
    let answered = match *request.method() {
        Method::GET | Method::HEAD if path != "/metrics" => operator.answer(path),
        Method::GET | Method::HEAD => match token.map(|file| shows(request, file)) {
            None | Some(Ok(true)) => operator.answer(path),
            Some(Ok(false)) => {
                plain(401, "metrics are for those who show the token: Authorization: Bearer TOKEN")
            }
            Some(Err(why)) => plain(503, &why),
        },
        _ => plain(405, "only GET"),
    };
    let mut response = Response::new(Full::new(Bytes::from(answered.text)));
    *response.status_mut() = StatusCode::from_u16(answered.status).unwrap_or_default();
    let media_type = http::HeaderValue::from_static(answered.media_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
    response
}

/// Whether a request shows the token of a file. The file is read each time: a Secret may change under a mount.
fn shows<B>(request: &Request<B>, file: &Utf8Path) -> Result<bool, String> {
    let wanted =
        read_file(file, &Limits::default()).map_err(|error| format!("no token to compare with: {error}"))?;
    let wanted = wanted.trim_ascii();
    let shown = request.headers().get(http::header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let shown = shown.and_then(|shown| shown.strip_prefix(b"Bearer ")).unwrap_or_default();
    // Every byte is looked at, so that the time tells nothing of where they differ.
    let differing = wanted.iter().zip(shown).fold(0_u8, |differing, (a, b)| differing | (a ^ b));
    Ok(!wanted.is_empty() && wanted.len() == shown.len() && differing == 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = Utf8PathBuf::from_path_buf(folder.path().join("token")).unwrap();
        let shows = |header: Option<&str>| {
            let mut request = Request::builder().uri("/metrics");
            if let Some(header) = header {
                request = request.header("authorization", header);
            }
            shows(&request.body(()).unwrap(), &file)
        };
        assert!(shows(Some("Bearer secret")).unwrap_err().contains("token"));
        std::fs::write(&file, "secret\n").unwrap();
        for (header, wanted) in [
            (Some("Bearer secret"), true),
            (Some("Bearer secre"), false),
            (Some("Bearer secrets"), false),
            (Some("Bearer "), false),
            (Some("secret"), false),
            (None, false),
        ] {
            assert_eq!(shows(header), Ok(wanted), "{header:?}");
        }
        std::fs::write(&file, "").unwrap();
        assert_eq!(shows(None), Ok(false));
    }
}
