//! Requests to the server, without a world around it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod custom;
mod hostile;
mod recorded;
mod requests;
mod watches;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{ApiServer, IdSource, Moment, Reply, WatchId};

/// Ids that count.
#[derive(Default)]
struct Counter(u64);

impl IdSource for Counter {
    fn uid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012}", self.0)
    }

    fn suffix(&mut self, length: usize) -> String {
        self.0 += 1;
        let digits = format!("{:0length$}", self.0);
        digits.replace(['0', '1', '3'], "x").replace(['a', 'e'], "z")
    }
}

/// A server with its clock.
struct Server {
    api: ApiServer,
    ids: Counter,
    now: jiff::Timestamp,
}

impl Server {
    /// A server with the namespaces `default` and `kube-system`.
    fn new() -> Self {
        Self::of(false)
    }

    fn of(openshift: bool) -> Self {
        let now = "2024-05-01T10:00:00Z".parse().unwrap();
        let mut server = Self { api: ApiServer::new(openshift), ids: Counter::default(), now };
        for name in ["default", "kube-system"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let mut moment = Moment { now: server.now, ids: &mut server.ids };
            server.api.create(&mut moment, "test", namespace).unwrap();
        }
        server
    }

    fn later(&mut self, seconds: i64) {
        self.now = self.now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap();
    }

    fn send(&mut self, request: &Request<Bytes>) -> Reply {
        self.api.handle(request, &mut Moment { now: self.now, ids: &mut self.ids })
    }

    /// Sends a request and reads the JSON of the answer.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        self.ask_as(method, path, body, content_type, "application/json")
    }

    fn ask_as(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
        content_type: &str,
        accept: &str,
    ) -> (u16, Value) {
        let bytes = match body {
            Value::Null => Bytes::new(),
            Value::String(text) => Bytes::from(text.clone()),
            other => Bytes::from(other.to_string()),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", accept)
            .header("user-agent", "differ/1.0")
            .body(bytes)
            .unwrap();
        match self.send(&request) {
            Reply::Once(response) => {
                let body = String::from_utf8(response.body().to_vec()).unwrap();
                let value = serde_json::from_str(&body).unwrap_or(Value::String(body));
                (response.status().as_u16(), value)
            }
            Reply::Watch(id) => panic!("{method} {path} began watch {id:?}"),
        }
    }

    fn get(&mut self, path: &str) -> Value {
        let (code, value) = self.ask("GET", path, &Value::Null);
        assert_eq!(code, 200, "{path}: {value}");
        value
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        let (code, value) = self.ask("POST", path, body);
        assert_eq!(code, 201, "{path}: {value}");
        value
    }

    /// Begins a watch.
    fn watch(&mut self, path: &str) -> WatchId {
        let request = Request::builder().uri(path).body(Bytes::new()).unwrap();
        match self.send(&request) {
            Reply::Watch(id) => id,
            Reply::Once(response) => panic!("{path}: {response:?}"),
        }
    }

    /// What a watch says now: type and object of each event, and whether it is over.
    fn poll(&mut self, id: WatchId) -> (Vec<(String, Value)>, bool) {
        let chunk = self.api.watch_poll(id, self.now);
        let events = chunk.bytes.iter().map(|line| {
            assert!(line.ends_with(b"\n"));
            let mut event: Value = serde_json::from_slice(line).unwrap();
            (event["type"].as_str().unwrap().to_owned(), event["object"].take())
        });
        (events.collect(), chunk.closed)
    }
}

/// A config map.
fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
