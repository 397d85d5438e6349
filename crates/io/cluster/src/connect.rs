//! The way to a real cluster: from a kubeconfig, or from the service account of the pod that we are in.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

use crate::call::innermost;
use crate::cluster::Cluster;
use crate::error::ClusterError;

/// How long one address may take to accept a connection. A server that is up does it in a round trip; what a firewall swallows
/// never does.
const CONNECT: Duration = Duration::from_secs(10);
/// A silent connection is asked whether the other side is still there after this time: a watch of a server that was cut off
/// would otherwise wait for good.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Connections kept for the next request: as many as a run writes at a time, with some for reads.
const IDLE_CONNECTIONS: usize = 24;
/// How long one is kept: shorter than what servers, and load balancers in front of them, wait.
const IDLE: Duration = Duration::from_mins(1);
/// How long the first answer may take. Later requests are repeated for about a minute, since the server was there once.
const FIRST_ANSWER: Duration = Duration::from_secs(15);

/// Where a cluster is and as whom we come, for people. Holds no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The API server's address.
    pub server: String,
    /// Where the address comes from.
    pub origin: Origin,
}

/// Where an address comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A context of a kubeconfig.
    Context {
        /// The context's name.
        name: String,
        /// The user's name in the kubeconfig, if the context names one.
        user: Option<String>,
    },
    /// The pod that the program runs in.
    Pod,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Context { name, .. } => write!(f, "{name} ({})", self.server),
            Origin::Pod => write!(f, "the cluster of this pod ({})", self.server),
        }
    }
}

impl Cluster {
    /// The cluster that kubeconfigs name, by their current context or another. Of several files the first that says something
    /// wins, as in `kubectl`. The server is asked once whether it is there.
    ///
    /// # Errors
    /// [`ClusterError::Configuration`] when a file, the context or the credentials in it cannot be used,
    /// [`ClusterError::Unreachable`] or [`ClusterError::Unauthenticated`] when the server cannot be.
    pub async fn from_kubeconfig(
        files: &[PathBuf],
        context: Option<&str>,
        seed: u64,
    ) -> Result<(Self, Place), ClusterError> {
        let what = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
        let bad = |message: String| ClusterError::Configuration { what: what.clone(), message };
        let mut merged = Kubeconfig::default();
        for file in files {
            // Further lines quote the file, in which there are credentials.
            let read = Kubeconfig::read_from(file)
                .map_err(|e| bad(innermost(&e).lines().next().unwrap_or_default().to_owned()))?;
            merged = merged.merge(read).map_err(|e| bad(innermost(&e)))?;
        }
        let Some(name) = context.map(ToOwned::to_owned).or_else(|| merged.current_context.clone()) else {
            return Err(bad("no current-context; name one".to_owned()));
        };
        let Some(found) = merged.contexts.iter().find(|c| c.name == name) else {
            let known: Vec<&str> = merged.contexts.iter().map(|c| c.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(bad(format!("no context {name:?}; it has {known}")));
        };
        let user = found.context.as_ref().and_then(|c| c.user.clone());
        let options = KubeConfigOptions { context: Some(name.clone()), ..Default::default() };
        let config =
            Config::from_custom_kubeconfig(merged, &options).await.map_err(|e| bad(innermost(&e)))?;
        let place = Place { server: server(&config), origin: Origin::Context { name, user } };
        let service = service(&config, &what)?;
        greet(service.clone(), &place).await?;
        Ok((Self::over(service, seed), place))
    }

    /// The cluster of the pod that the program runs in, as its service account. Asks nothing yet.
    ///
    /// # Errors
    /// [`ClusterError::Configuration`] outside a pod, or when its service account's token is not mounted.
    pub fn of_this_pod(seed: u64) -> Result<(Self, Place), ClusterError> {
        let what = "the service account of this pod";
        let config = Config::incluster()
            .map_err(|e| ClusterError::Configuration { what: what.to_owned(), message: innermost(&e) })?;
        let place = Place { server: server(&config), origin: Origin::Pod };
        Ok((Self::over(service(&config, what)?, seed), place))
    }
}

/// Asks the server for its version, once and not for long: an address where nobody is must not keep a person waiting for as
/// long as requests are repeated later, when the server was there once.
async fn greet<S, B>(service: S, place: &Place) -> Result<(), ClusterError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
{
    let what = format!("connect to {place}");
    let silent = || ClusterError::Unreachable {
        what: what.clone(),
        message: format!("silent for {} seconds", FIRST_ANSWER.as_secs()),
    };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = Uri::from_static("/version");
    let answer = tokio::time::timeout(FIRST_ANSWER, service.oneshot(request)).await.map_err(|_| silent())?;
    let answer = answer
        .map_err(|e| ClusterError::Unreachable { what: what.clone(), message: innermost(e.as_ref()) })?;
    // A server may refuse to tell its version to some; it is there all the same.
    if answer.status() == StatusCode::UNAUTHORIZED {
        Err(ClusterError::Unauthenticated { what })
    } else {
        Ok(())
    }
}

/// The address without what may be secret in it.
fn server(config: &Config) -> String {
    let url = &config.cluster_url;
    let host = url.authority().map_or("", |authority| {
        let text = authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, host)| host)
    });
    format!("{}://{host}", url.scheme_str().unwrap_or("https"))
}

/// Why the credentials of a configuration cannot be had, with what they come from: the kubeconfig itself is there.
fn no_credentials(config: &Config, why: &str) -> String {
    let from = &config.auth_info;
    if let Some(command) = from.exec.as_ref().and_then(|exec| exec.command.as_ref()) {
        return format!("the credential plugin {command} (`exec` of the user) gives no credentials: {why}");
    }
    match &from.token_file {
        Some(path) => format!("the token file {path} (`tokenFile` of the user) cannot be read: {why}"),
        None => why.to_owned(),
    }
}

/// HTTP with the configuration's TLS and credentials.
fn service(
    config: &Config,
    what: &str,
) -> Result<
    impl Service<
        Request<Body>,
        Response = Response<impl http_body::Body<Data = bytes::Bytes, Error = BoxError> + Send + use<>>,
        Error = BoxError,
        Future: Send,
    > + Clone
    + Send
    + use<>,
    ClusterError,
> {
    let bad = |message: String| ClusterError::Configuration { what: what.to_owned(), message };
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    http.set_keepalive(Some(KEEP_ALIVE));
    http.set_keepalive_interval(Some(KEEP_ALIVE / 3));
    http.set_keepalive_retries(Some(3));
    let connector = config.rustls_https_connector_with_connector(http).map_err(|e| bad(innermost(&e)))?;
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector);
    Ok(ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(|e| bad(no_credentials(config, &innermost(&e))))?)
        // As whom to act, if the user of the kubeconfig acts for somebody else (`as`).
        .layer(config.extra_headers_layer().map_err(|e| bad(innermost(&e)))?)
        .map_err(BoxError::from)
        .service(client)
        .map_response(|response| response.map(|body| body.map_err(BoxError::from))))
}
