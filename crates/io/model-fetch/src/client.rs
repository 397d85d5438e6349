//! HTTP over TCP and TLS, for web servers and for S3.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::error::FetchError;

/// An HTTP client that trusts the public roots and those given.
#[derive(Clone)]
pub(crate) struct Web {
    client: Client<HttpsConnector<HttpConnector>, HttpRequestBody>,
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Web")
    }
}

impl Web {
    /// With certificates (PEM) beside the public ones.
    pub(crate) fn new(extra_roots: &[u8]) -> Result<Self, FetchError> {
        let tls = |error: &dyn fmt::Display| FetchError::Tls(error.to_string());
        let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for certificate in CertificateDer::pem_slice_iter(extra_roots) {
            let certificate = certificate.map_err(|error| tls(&error))?;
            roots.add(certificate).map_err(|error| tls(&error))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| tls(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(std::time::Duration::from_secs(10)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Sends a request.
    pub(crate) async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<hyper::body::Incoming>, String> {
        self.client.request(request.map(HttpRequestBody::from)).await.map_err(|error| reason(&error))
    }
}

/// The innermost cause: what a person can act on ("connection refused").
pub(crate) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

#[async_trait::async_trait]
impl HttpService for Web {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.client.request(request).await;
        let response = response.map_err(|error| HttpError::new(HttpErrorKind::Connect, error))?;
        Ok(response.map(|body| {
            HttpResponseBody::new(body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error)))
        }))
    }
}

impl object_store::client::HttpConnector for Web {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
