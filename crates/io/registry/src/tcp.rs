//! The network.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::uri::Authority;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use scantling_endpoint::Mirrors;
use scantling_image::DOCKER_HUB;
use tower::Service;

use crate::transport::{Body, BoxError};

/// The host behind the name `docker.io`.
const DOCKER_HUB_HOST: &str = "registry-1.docker.io";

/// Why no transport could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TcpError {
    /// The certificates given are none.
    #[error("certificate {number}: {problem}")]
    Certificate {
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        problem: String,
    },
    /// An address that stands in for a registry is none.
    #[error("the address {address} for {registry} is no host and port")]
    Address {
        /// The registry.
        registry: String,
        /// What was given.
        address: String,
    },
    /// The TLS library refused its settings.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// HTTP over TCP and TLS, with certificates checked against the public roots and those given.
#[derive(Clone)]
pub struct TcpTransport {
    client: Client<HttpsConnector<Addresses>, Full<Bytes>>,
    addresses: Arc<BTreeMap<String, Authority>>,
}

/// A transport over the network. Connections to registries that the rules give an address go there; the registry keeps its name in
/// `Host` and in TLS. `extra_roots` are further certificates (PEM) to trust beside the public ones, such as an organisation's own.
pub fn tcp_transport(mirrors: &Mirrors, extra_roots: &[u8]) -> Result<TcpTransport, TcpError> {
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for (place, certificate) in CertificateDer::pem_slice_iter(extra_roots).enumerate() {
        let problem = |problem: String| TcpError::Certificate { number: place + 1, problem };
        let certificate = certificate.map_err(|error| problem(error.to_string()))?;
        roots.add(certificate).map_err(|error| problem(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TcpError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let mut addresses = BTreeMap::new();
    for (registry, address) in mirrors.addresses() {
        let authority = address.address.parse().map_err(|_| TcpError::Address {
            registry: registry.to_owned(),
            address: address.address.clone(),
        })?;
        addresses.insert(registry.to_owned(), authority);
    }
    let addresses = Arc::new(addresses);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(Addresses { http, addresses: Arc::clone(&addresses) });
    Ok(TcpTransport { client: Client::builder(TokioExecutor::new()).build(connector), addresses })
}

impl Service<Request<Bytes>> for TcpTransport {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Bytes>) -> Self::Future {
        let name = request.uri().authority().map_or("", Authority::as_str);
        if name == DOCKER_HUB && !self.addresses.contains_key(DOCKER_HUB) {
            let hub = with_authority(request.uri(), &Authority::from_static(DOCKER_HUB_HOST));
            *request.uri_mut() = hub;
        }
        let answer = self.client.request(request.map(Full::new));
        Box::pin(async move { Ok(answer.await?.map(|body| body.map_err(BoxError::from).boxed())) })
    }
}

/// Connects to the address of a registry instead of to its name.
#[derive(Clone)]
struct Addresses {
    http: HttpConnector,
    addresses: Arc<BTreeMap<String, Authority>>,
}

impl Service<Uri> for Addresses {
    type Response = <HttpConnector as Service<Uri>>::Response;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = <HttpConnector as Service<Uri>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::poll_ready(&mut self.http, context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let address = uri.authority().and_then(|name| self.addresses.get(name.as_str()));
        let uri = address.map_or(uri.clone(), |address| with_authority(&uri, address));
        Service::call(&mut self.http, uri)
    }
}

fn with_authority(uri: &Uri, authority: &Authority) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority.clone());
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}
