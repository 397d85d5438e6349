//! HTTP on two loopback ports: one for the API server, one for all registries, told apart by their names.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::world_thread::{Answer, WorldHandle};

/// The largest request that is read; a real API server's own limit is 3 MiB, layers of images are larger.
const BODY_MAX: usize = 256 * 1024 * 1024;

/// Where a sandbox is served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    /// The API server.
    pub(crate) api: SocketAddr,
    /// The registries.
    pub(crate) registry: SocketAddr,
}

type Body = BoxBody<Bytes, Infallible>;

/// Opens both ports on the loopback interface and serves on them for as long as the runtime lives.
pub(crate) async fn serve(world: &WorldHandle, port: u16) -> std::io::Result<Served> {
    let api = TcpListener::bind(("127.0.0.1", port)).await?;
    let registry = TcpListener::bind(("127.0.0.1", 0)).await?;
    let served = Served { api: api.local_addr()?, registry: registry.local_addr()? };
    listen(api, world.clone(), answer_api);
    listen(registry, world.clone(), answer_registry);
    Ok(served)
}

fn listen<F>(listener: TcpListener, world: WorldHandle, answer: fn(WorldHandle, Request<Incoming>) -> F)
where
    F: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
{
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let world = world.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(world.clone(), request));
                // A connection that breaks is its client's business.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
}

async fn answer_api(world: WorldHandle, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let Ok(request) = whole(request).await else { return Ok(refused(StatusCode::PAYLOAD_TOO_LARGE)) };
    Ok(match world.api(request).await {
        None => refused(StatusCode::SERVICE_UNAVAILABLE),
        Some(Answer::Once(response)) => response.map(|bytes| Full::new(bytes).boxed()),
        Some(Answer::Watch(receiver)) => {
            let chunks = futures::stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|bytes| (bytes, receiver))
            });
            let frames = chunks.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
            let mut response = Response::new(http_body_util::BodyExt::boxed(StreamBody::new(frames)));
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, json);
            response
        }
    })
}

async fn answer_registry(
    world: WorldHandle,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let host = request
        .headers()
        .get(http::header::HOST)
        .and_then(|host| host.to_str().ok())
        .map(str::to_owned)
        .or_else(|| request.uri().authority().map(ToString::to_string))
        .unwrap_or_default();
    let Ok(request) = whole(request).await else { return Ok(refused(StatusCode::PAYLOAD_TOO_LARGE)) };
    Ok(match world.registry(host, request).await {
        None => refused(StatusCode::SERVICE_UNAVAILABLE),
        Some(response) => response.map(|bytes| Full::new(bytes).boxed()),
    })
}

async fn whole(
    request: Request<Incoming>,
) -> Result<Request<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
    let (parts, body) = request.into_parts();
    let bytes = Limited::new(body, BODY_MAX).collect().await?.to_bytes();
    Ok(Request::from_parts(parts, bytes))
}

fn refused(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed());
    *response.status_mut() = status;
    response
}
