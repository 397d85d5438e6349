//! A registry on a loopback port, and the command.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use assert_cmd::Command;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use scantling_contents::{ImageDescription, build};
use scantling_registry_server::{Pushed, RegistryServer};

/// The command, as in a pipe of 100 columns, without settings of whoever runs the tests.
pub fn scantling() -> Command {
    let mut command = Command::cargo_bin("scantling").unwrap();
    for name in ["SCANTLING_MIRRORS", "REGISTRY_AUTH_FILE", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("COLUMNS", "100");
    command
}

/// Standard output, standard error and exit code.
pub fn run(command: &mut Command) -> (String, String, i32) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// Makes an image from its description in YAML and puts it into a registry.
pub fn push(
    server: &mut RegistryServer,
    host: &str,
    repository: &str,
    tag: Option<&str>,
    description: &str,
) -> String {
    let document = scantling_yaml::parse(description.as_bytes()).unwrap().remove(0);
    let description: ImageDescription = scantling_yaml::decode(&document.root).unwrap();
    let image = build(&description, None).unwrap();
    let root = image.root.to_string();
    let blobs = image
        .blobs
        .into_iter()
        .map(|(digest, (media_type, bytes))| (digest, media_type, Bytes::from(bytes)))
        .collect();
    let pushed = Pushed { media_type: image.media_type, root: image.root, blobs };
    server.push(host, repository, tag, &pushed).unwrap();
    root
}

/// Serves registries on a loopback port and writes the file that leads `host` there.
pub fn serve(server: RegistryServer, host: &str, endpoints: &Path) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::fs::write(
        endpoints,
        format!("version: 1\nendpoints:\n- registry: {host}\n  address: \"{address}\"\n  insecure: true\n"),
    )
    .unwrap();
    let server = Arc::new(Mutex::new(server));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                        let server = Arc::clone(&server);
                        async move {
                            let (parts, body) = request.into_parts();
                            let body = body.collect().await.unwrap().to_bytes();
                            let host = parts.headers[http::header::HOST].to_str().unwrap().to_owned();
                            let request = http::Request::from_parts(parts, body);
                            let response = server.lock().unwrap().handle(&host, &request);
                            Ok::<_, Infallible>(response.map(Full::new))
                        }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
    });
}
