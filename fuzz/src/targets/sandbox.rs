//! The sandbox' API server: any method, path, content type and body, in any order.

use bytes::Bytes;
use http::Request;
use scantling_image::Platform;
use scantling_registry_server::RegistryServer;
use scantling_sandbox::{Flavour, NodeConfig, Reply, Time, World, WorldConfig};

use super::parts;

/// Requests of one input: each costs as much as the whole rest.
const REQUESTS_MAX: usize = 8;
/// Virtual milliseconds between two requests: controllers see the one before.
const PAUSE_MILLIS: u64 = 50;
/// Virtual milliseconds after the last request.
const END_MILLIS: u64 = 5_000;

/// What must hold of all requests. A part is a request: `METHOD PATH TYPE` on the first line, the body below it.
pub fn run(data: &[u8]) {
    let Some((flavour, data)) = data.split_first() else { return };
    let flavour = if flavour % 2 == 0 { Flavour::Kubernetes } else { Flavour::OpenShift };
    let mut config = WorldConfig::new(1, flavour);
    config.nodes = vec![NodeConfig::new("node", Platform::linux_amd64())];
    config.internal_registry = Some("image-registry.openshift-image-registry.svc:5000".to_owned());
    let mut world = World::new(config, RegistryServer::new());
    for part in parts(data).into_iter().take(REQUESTS_MAX) {
        let Some(request) = request(part) else { continue };
        answer(&mut world, &request);
        let next = world.now().as_millis() + PAUSE_MILLIS;
        world.run_until(Time::from_millis(next));
    }
    let end = world.now().as_millis() + END_MILLIS;
    world.run_until(Time::from_millis(end));
    for (key, object) in world.objects() {
        assert!(object.get("metadata").is_some(), "{key}");
    }
}

fn answer(world: &mut World, request: &Request<Bytes>) {
    match world.handle(request) {
        Reply::Once(response) => {
            // A real server answers some bad applies with 500 and no reason; only its own faults have this reason.
            let text = String::from_utf8_lossy(response.body());
            let internal = response.status().as_u16() == 500 && text.contains("\"InternalError\"");
            assert!(!internal, "{:?}: {text}", request.uri());
        }
        Reply::Watch(id) => {
            let _ = world.watch_poll(id);
            world.watch_close(id);
        }
    }
}

fn request(part: &[u8]) -> Option<Request<Bytes>> {
    let end = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
    let line = std::str::from_utf8(part.get(..end)?).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let body = part.get(end + 1..).unwrap_or_default();
    let mut request = Request::builder().method(method).uri(path);
    if let Some(kind) = words.next() {
        request = request.header(http::header::CONTENT_TYPE, kind);
    }
    if let Some(accept) = words.next() {
        request = request.header(http::header::ACCEPT, accept);
    }
    request.body(Bytes::copy_from_slice(body)).ok()
}
