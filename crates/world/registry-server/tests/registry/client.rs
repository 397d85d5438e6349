//! A client of a few lines, and a small image.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use scantling_image::Digest;
use scantling_registry_server::{Pushed, RegistryServer};
use serde_json::{Value, json};

pub(crate) const HOST: &str = "registry.example:5000";
pub(crate) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// One answer.
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) response: Response<Bytes>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn body(&self) -> &[u8] {
        self.response.body()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.body()).unwrap()
    }

    /// The code of the error body.
    pub(crate) fn code(&self) -> String {
        self.json()["errors"][0]["code"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn ask_at(
    server: &mut RegistryServer,
    host: &str,
    method: &Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Seen {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = server.handle(host, &request.body(Bytes::copy_from_slice(body)).unwrap());
    if method != Method::HEAD && response.status() != StatusCode::NO_CONTENT {
        let length = response.headers()["content-length"].to_str().unwrap();
        assert_eq!(length, response.body().len().to_string(), "{method} {path}");
    }
    Seen { status: response.status().as_u16(), response }
}

pub(crate) fn ask(
    server: &mut RegistryServer,
    method: &Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Seen {
    ask_at(server, HOST, method, path, headers, body)
}

pub(crate) fn get(server: &mut RegistryServer, path: &str) -> Seen {
    ask(server, &Method::GET, path, &[("accept", OCI_MANIFEST), ("accept", OCI_INDEX)], b"")
}

pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len()})
}

/// A small image of one layer.
pub(crate) struct Small {
    pub(crate) config: Vec<u8>,
    pub(crate) layer: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) media_type: &'static str,
}

impl Small {
    pub(crate) fn new(layer: &[u8]) -> Self {
        Self::of_type(layer, OCI_MANIFEST)
    }

    pub(crate) fn of_type(layer: &[u8], media_type: &'static str) -> Self {
        let config =
            json!({"architecture": "amd64", "os": "linux", "n": layer.len()}).to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer)],
        });
        Self { config, layer: layer.to_vec(), manifest: manifest.to_string().into_bytes(), media_type }
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }

    pub(crate) fn pushed(&self) -> Pushed {
        let blob = |media_type: &str, bytes: &Vec<u8>| {
            (Digest::of(bytes), media_type.to_owned(), Bytes::from(bytes.clone()))
        };
        Pushed {
            media_type: self.media_type.to_owned(),
            root: self.digest(),
            blobs: vec![
                blob("application/vnd.oci.image.config.v1+json", &self.config),
                blob("application/vnd.oci.image.layer.v1.tar+gzip", &self.layer),
                blob(self.media_type, &self.manifest),
            ],
        }
    }
}

/// A server with `team/app:1`.
pub(crate) fn server() -> (RegistryServer, Small) {
    let mut server = RegistryServer::new();
    let image = Small::new(b"0123456789");
    server.push(HOST, "team/app", Some("1"), &image.pushed()).unwrap();
    (server, image)
}
