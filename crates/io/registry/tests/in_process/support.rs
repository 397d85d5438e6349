//! Registries, a client, and a log of what was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, header};
use scantling_contents::{BuiltImage, ImageDescription, LayerDescription, build};
use scantling_endpoint::{Keyring, Mirrors, Secret};
use scantling_image::{Digest, Platform, Reference};
use scantling_registry::{BoxError, Options, RegistryClient, transport_from_fn};
use scantling_registry_server::{Effect, Fault, Pushed, RegistryServer, Requests, Subject, Unreachable};
use tokio::time::Instant;

type Twist = Box<dyn FnMut(&str, &Request<Bytes>, Response<Bytes>) -> Response<Bytes> + Send>;

/// All registries of a test.
#[derive(Clone)]
pub(crate) struct Registries {
    pub(crate) server: Arc<Mutex<RegistryServer>>,
    twist: Arc<Mutex<Option<Twist>>>,
    log: Arc<Mutex<Vec<String>>>,
    pub(crate) mirrors: Mirrors,
    pub(crate) keyring: Keyring,
    pub(crate) options: Options,
}

impl Registries {
    pub(crate) fn new() -> Self {
        Self {
            server: Arc::default(),
            twist: Arc::default(),
            log: Arc::default(),
            mirrors: Mirrors::new(),
            keyring: Keyring::new(),
            options: Options::default(),
        }
    }

    pub(crate) fn push(&self, reference: &str, image: &BuiltImage) {
        let reference = Reference::parse(reference).unwrap();
        let blobs = image.blobs.iter().map(|(digest, (media_type, bytes))| {
            (digest.clone(), media_type.clone(), Bytes::copy_from_slice(bytes))
        });
        let pushed =
            Pushed { media_type: image.media_type.clone(), root: image.root.clone(), blobs: blobs.collect() };
        let mut server = self.server.lock().unwrap();
        server
            .push(reference.registry(), reference.repository(), reference.effective_tag(), &pushed)
            .unwrap();
    }

    pub(crate) fn fault(
        &self,
        subject: Subject,
        reference: Option<&str>,
        times: Option<u32>,
        effect: Effect,
    ) {
        let requests = Requests {
            subject: Some(subject),
            reference: reference.map(str::to_owned),
            ..Requests::default()
        };
        self.server.lock().unwrap().faults().add(Fault { requests, effect, after: 0, times });
    }

    pub(crate) fn outage(&self, host: &str) {
        let requests = Requests { host: Some(host.to_owned()), ..Requests::default() };
        let fault = Fault { requests, effect: Effect::Outage, after: 0, times: None };
        self.server.lock().unwrap().faults().add(fault);
    }

    /// Changes every answer on its way.
    pub(crate) fn twist(
        &self,
        twist: impl FnMut(&str, &Request<Bytes>, Response<Bytes>) -> Response<Bytes> + Send + 'static,
    ) {
        *self.twist.lock().unwrap() = Some(Box::new(twist));
    }

    pub(crate) fn credential(&mut self, key: &str, user: &str, password: &str) {
        self.keyring.add("test", key, Secret::new(user), Secret::new(password));
    }

    pub(crate) fn client(&self) -> RegistryClient {
        let (server, twist, log) = (Arc::clone(&self.server), Arc::clone(&self.twist), Arc::clone(&self.log));
        let transport = transport_from_fn(move |host: &str, request: &Request<Bytes>| {
            let authorised = match request.headers().get(header::AUTHORIZATION) {
                Some(value) => format!(" {}", value.to_str().unwrap().split(' ').next().unwrap()),
                None => String::new(),
            };
            let path = request.uri().path_and_query().unwrap();
            log.lock().unwrap().push(format!("{} {host}{path}{authorised}", request.method()));
            let response = server.lock().unwrap().handle(host, request);
            if response.extensions().get::<Unreachable>().is_some() {
                return Err(BoxError::from("connection refused"));
            }
            Ok(match twist.lock().unwrap().as_mut() {
                Some(twist) => twist(host, request, response),
                None => response,
            })
        });
        RegistryClient::new(transport, self.mirrors.clone(), self.keyring.clone(), self.options.clone())
    }

    /// What was asked since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

pub(crate) fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

pub(crate) fn platforms(texts: &[&str]) -> Vec<Platform> {
    texts.iter().map(|text| Platform::parse(text).unwrap()).collect()
}

/// An image with two layers, its contents chosen by `version`.
pub(crate) fn image(version: &str, on: &[&str]) -> BuiltImage {
    let packages = BTreeMap::from([("tensorflow".to_owned(), version.to_owned())]);
    let files = BTreeMap::from([("/etc/os-release".to_owned(), "ID=rhel\n".to_owned())]);
    let description = ImageDescription {
        platforms: platforms(on),
        layers: vec![
            LayerDescription::Files(files),
            LayerDescription::Python { path: "/usr/lib/python3.8/site-packages".to_owned(), packages },
        ],
        ..ImageDescription::default()
    };
    build(&description, None).unwrap()
}

/// The first layer of the first platform.
pub(crate) fn layer(image: &BuiltImage, place: usize) -> Digest {
    image.platforms[0].layers[place].0.clone()
}

/// Seconds of the paused clock since `start`.
pub(crate) fn seconds_since(start: Instant) -> u64 {
    start.elapsed().as_secs()
}
