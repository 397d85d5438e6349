//! A web server that does what it is told, also badly.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// What is at one path.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    pub(crate) content: Vec<u8>,
    pub(crate) etag: Option<String>,
    /// Ends the connection after so many bytes, for each request in turn; then whole.
    pub(crate) cuts: Vec<usize>,
    /// Answers these, one for each request; then rightly.
    pub(crate) statuses: Vec<u16>,
    pub(crate) location: Option<String>,
    /// Ranges are not known here.
    pub(crate) whole_only: bool,
    /// Says nothing of the length, and never ends.
    pub(crate) endless: bool,
    /// Never sends a byte after the head.
    pub(crate) silent: bool,
}

#[derive(Clone, Default)]
pub(crate) struct Server {
    pub(crate) files: Arc<Mutex<BTreeMap<String, File>>>,
    /// `PATH` or `PATH bytes=N-` of every request.
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts it; gives its address.
    pub(crate) async fn start(&self) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = self.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let server = server.clone();
                let answer = service_fn(move |request| {
                    let response = server.answer(&request);
                    async move { Ok::<_, Infallible>(response) }
                });
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), answer)
                        .await;
                });
            }
        });
        format!("http://{address}")
    }

    pub(crate) fn put(&self, path: &str, file: File) {
        self.files.lock().unwrap().insert(path.to_owned(), file);
    }

    pub(crate) fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<UnsyncBoxBody<Bytes, std::io::Error>> {
        let text = |name| {
            request.headers().get(name).map(|value: &http::HeaderValue| value.to_str().unwrap().to_owned())
        };
        let range = text(header::RANGE);
        let shown = range.as_deref().map(|range| format!(" {range}")).unwrap_or_default();
        self.seen.lock().unwrap().push(format!("{}{shown}", request.uri().path()));
        let mut files = self.files.lock().unwrap();
        let Some(file) = files.get_mut(request.uri().path()) else { return empty(404) };
        if !file.statuses.is_empty() {
            return empty(file.statuses.remove(0));
        }
        if let Some(location) = &file.location {
            let mut response = empty(302);
            response.headers_mut().insert(header::LOCATION, location.parse().unwrap());
            return response;
        }
        let same = text(header::IF_RANGE).is_none_or(|tag| Some(tag) == file.etag);
        let from = range
            .filter(|_| !file.whole_only && same)
            .map(|range| range.trim_start_matches("bytes=").trim_end_matches('-').parse::<usize>().unwrap());
        let mut response = Response::builder();
        if let Some(etag) = &file.etag {
            response = response.header(header::ETAG, etag);
        }
        let all = file.content.len();
        let content = &file.content[from.unwrap_or(0).min(all)..];
        if let Some(from) = from {
            response = response
                .status(StatusCode::PARTIAL_CONTENT)
                .header(header::CONTENT_RANGE, format!("bytes {from}-{}/{all}", all - 1));
        }
        if !file.endless {
            response = response.header(header::CONTENT_LENGTH, content.len());
        }
        let cut = if file.cuts.is_empty() { None } else { Some(file.cuts.remove(0)) };
        let sent = &content[..cut.unwrap_or(content.len()).min(content.len())];
        let frames: Vec<Result<Frame<Bytes>, std::io::Error>> =
            sent.chunks(1000).map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk)))).collect();
        // What was sent has arrived before the connection ends.
        let end = stream::iter(cut).then(|_| async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            Err(std::io::Error::other("cut"))
        });
        if file.silent {
            return response.body(StreamBody::new(stream::pending()).boxed_unsync()).unwrap();
        }
        if file.endless {
            let forever = stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(&[0; 1000]))));
            return response.body(StreamBody::new(forever).boxed_unsync()).unwrap();
        }
        response.body(StreamBody::new(stream::iter(frames).chain(end)).boxed_unsync()).unwrap()
    }
}

fn empty(status: u16) -> Response<UnsyncBoxBody<Bytes, std::io::Error>> {
    let body = http_body_util::Empty::new().map_err(|never: Infallible| match never {});
    Response::builder().status(status).body(body.boxed_unsync()).unwrap()
}
