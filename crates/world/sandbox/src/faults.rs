//! What goes wrong between a client and the API server, switched on for a client by name.
//!
//! A client is known by the first word of its `User-Agent` up to the slash: `scantling/0.1 …` is
//! `scantling`, `kubectl/v1.35.4 …` is `kubectl`; one that sends none, by its field manager. Registry faults are `World::registry().faults()`.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};

use crate::api::WatchId;
use crate::ids::Ids;
use crate::time::Time;

/// What goes wrong for one client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiFaults {
    /// Of 1000 requests so many are answered with 503 before anything is done.
    pub unavailable: u16,
    /// Of 1000 writes so many are done, but their response is lost; see [`Lost`].
    pub lost_responses: u16,
    /// Every watch ends after so many milliseconds.
    pub watch_cut_after: Option<u64>,
    /// Every request takes so many more milliseconds; whoever carries requests to the world waits so long
    /// before handing them over.
    pub latency: u64,
}

/// Marks a response (in its extensions) that stands for a connection that was lost after the request was
/// carried out. A transport must turn it into an I/O error; one that does not sees a 504.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// What goes wrong, by client.
#[derive(Debug, Default)]
pub struct Faults {
    clients: BTreeMap<String, ApiFaults>,
    watches: BTreeMap<WatchId, (String, Time)>,
    now: Time,
}

impl Faults {
    /// Switches faults on for a client; the default value switches them off.
    pub fn set(&mut self, client: &str, faults: ApiFaults) {
        if faults == ApiFaults::default() {
            self.clients.remove(client);
        } else {
            self.clients.insert(client.to_owned(), faults);
        }
    }

    /// The faults of a client.
    pub fn of(&self, client: &str) -> ApiFaults {
        self.clients.get(client).cloned().unwrap_or_default()
    }

    /// Milliseconds that a client's requests take longer.
    pub fn latency(&self, client: &str) -> u64 {
        self.clients.get(client).map_or(0, |faults| faults.latency)
    }

    /// The response that a client gets instead of the right one, if any. One with [`Lost`] is sent after the
    /// request has been carried out.
    pub(crate) fn before(&self, client: &str, writes: bool, ids: &mut Ids) -> Option<Response<Bytes>> {
        let faults = self.clients.get(client)?;
        if faults.unavailable > 0 && ids.happens(faults.unavailable) {
            return Some(failure(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server is currently unable to handle the request",
                "ServiceUnavailable",
            ));
        }
        if writes && faults.lost_responses > 0 && ids.happens(faults.lost_responses) {
            let mut response = failure(
                StatusCode::GATEWAY_TIMEOUT,
                "the connection was lost after the request was carried out",
                "Timeout",
            );
            response.extensions_mut().insert(Lost);
            return Some(response);
        }
        None
    }

    pub(crate) fn watch_began(&mut self, id: WatchId, client: &str, now: Time) {
        self.watches.insert(id, (client.to_owned(), now));
    }

    pub(crate) fn watch_ended(&mut self, id: WatchId) {
        self.watches.remove(&id);
    }

    pub(crate) fn at(&mut self, now: Time) -> &mut Self {
        self.now = now;
        self
    }

    /// Whether a watch is cut now.
    pub(crate) fn cuts_watch(&mut self, id: WatchId) -> bool {
        let Some((client, began)) = self.watches.get(&id) else { return false };
        let Some(after) = self.clients.get(client).and_then(|faults| faults.watch_cut_after) else {
            return false;
        };
        if self.now.millis_since(*began) < after {
            return false;
        }
        self.watches.remove(&id);
        true
    }
}

/// Whether the response is sent after the request has been carried out.
pub(crate) fn after_write(response: &Response<Bytes>) -> bool {
    response.extensions().get::<Lost>().is_some()
}

/// The name of the client that sends a request.
pub(crate) fn client_of(request: &Request<Bytes>) -> String {
    let agent = request
        .headers()
        .get(header::USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .and_then(|agent| agent.split(['/', ' ']).next());
    let manager = || {
        let query = request.uri().query()?;
        query.split('&').find_map(|parameter| parameter.strip_prefix("fieldManager="))
    };
    let name = agent.filter(|name| !name.is_empty()).or_else(manager).filter(|name| !name.is_empty());
    name.unwrap_or("client").to_owned()
}

fn failure(status: StatusCode, message: &str, reason: &str) -> Response<Bytes> {
    let body = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": status.as_u16(),
    });
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn clients_are_named_by_their_agent() {
        for (agent, query, name) in [
            (Some("kubectl/v1.35.4 (linux/amd64)"), "", "kubectl"),
            (Some("scantling"), "?fieldManager=other", "scantling"),
            (Some(""), "", "client"),
            (None, "?force=true&fieldManager=scantling", "scantling"),
            (None, "?fieldManager=", "client"),
            (None, "", "client"),
        ] {
            let mut request = Request::builder().uri(format!("/api{query}"));
            if let Some(agent) = agent {
                request = request.header(header::USER_AGENT, agent);
            }
            assert_eq!(client_of(&request.body(Bytes::new()).unwrap()), name);
        }
    }

    #[test]
    fn faults_hit_the_named_client_only() {
        let mut ids = Ids::new(1);
        let mut faults = Faults::default();
        faults.set("a", ApiFaults { unavailable: 1000, ..ApiFaults::default() });
        faults.set("b", ApiFaults { lost_responses: 1000, ..ApiFaults::default() });
        assert_eq!(faults.before("a", false, &mut ids).unwrap().status(), 503);
        let lost = faults.before("b", true, &mut ids).unwrap();
        assert!(after_write(&lost));
        assert!(faults.before("b", false, &mut ids).is_none());
        assert!(faults.before("c", true, &mut ids).is_none());
        faults.set("a", ApiFaults::default());
        assert!(faults.before("a", false, &mut ids).is_none());
    }
}
