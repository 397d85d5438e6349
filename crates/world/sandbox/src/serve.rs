//! What the API server answers until it serves HTTP: that it does not.

use bytes::Bytes;
use http::{Request, Response, StatusCode};

use crate::api::{ApiServer, Moment, Reply, WatchChunk, WatchId};

/// Methods that the server's own take the place of.
pub(crate) trait Serve {
    fn handle(&mut self, request: &Request<Bytes>, at: &mut Moment<'_>) -> Reply;
    fn watch_poll(&mut self, id: WatchId, now: jiff::Timestamp) -> WatchChunk;
    fn watch_close(&mut self, id: WatchId);
    fn next_watch_time(&self) -> Option<jiff::Timestamp>;
}

impl Serve for ApiServer {
    fn handle(&mut self, _: &Request<Bytes>, _: &mut Moment<'_>) -> Reply {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        Reply::Once(response)
    }

    fn watch_poll(&mut self, _: WatchId, _: jiff::Timestamp) -> WatchChunk {
        WatchChunk::default()
    }

    fn watch_close(&mut self, _: WatchId) {}

    fn next_watch_time(&self) -> Option<jiff::Timestamp> {
        None
    }
}
