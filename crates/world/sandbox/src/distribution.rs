//! The client half of the distribution protocol, as the container runtimes of the nodes and the image
//! importer speak it with the world's registry: manifests by tag or digest, blobs, challenges for basic
//! and bearer authentication. Every byte is checked against the digest that it was asked for by.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use scantling_image::{Digest, Platform};
use scantling_registry_server::{RegistryServer, Unreachable};
use serde_json::Value;

use crate::value::{list, text};

/// What a puller accepts, as containerd writes it.
const ACCEPT: &str = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, */*";
/// Most layers of one image that a puller takes (overlay file systems end near 128).
const MAX_LAYERS: usize = 128;
/// Most manifests of one index that a puller looks at.
const MAX_INDEX: usize = 1024;

/// A name and password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// Passwords stay out of every output.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a request to a registry failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    /// The host's name cannot be resolved.
    #[error("dial tcp: lookup {host}: no such host")]
    NoHost { host: String },
    /// The host does not answer.
    #[error("dial tcp {host}: connect: connection refused")]
    Unreachable { host: String },
    /// 404.
    #[error("{what}: not found")]
    NotFound { what: String },
    /// The token endpoint refused, or a token did not help.
    #[error(
        "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"
    )]
    Denied,
    /// Any other status.
    #[error("unexpected status from {method} request to {url}: {status}")]
    Status { method: Method, url: String, status: StatusCode },
    /// The bytes are not those of the digest.
    #[error("unexpected commit digest {found}, expected {wanted}: failed precondition")]
    Mismatch { wanted: Digest, found: Digest },
    /// A manifest that is none.
    #[error("{what}")]
    Malformed { what: String },
    /// The cluster's rules forbid the registry and name no mirror.
    #[error("access to the registry is refused by the cluster's image policy")]
    Refused,
    /// An index without the node's platform.
    #[error("no match for platform in manifest: not found")]
    NoPlatform,
}

impl FetchError {
    /// Whether the next host of the list may be asked without remembering this answer.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// What a manifest points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) media_type: String,
}

/// A manifest or index as a registry gave it.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) digest: Digest,
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
    pub(crate) value: Value,
}

impl Manifest {
    /// Whether it lists manifests instead of layers.
    pub(crate) fn is_index(&self) -> bool {
        self.value.get("manifests").is_some()
    }

    /// The manifest of an index that fits the platform best.
    pub(crate) fn select(&self, platform: &Platform) -> Result<Descriptor, FetchError> {
        let entries = list(&self.value, "/manifests");
        let mut found: Vec<(Platform, &Value)> = Vec::new();
        for entry in entries.iter().take(MAX_INDEX) {
            let os = text(entry, "/platform/os").unwrap_or_default();
            let architecture = text(entry, "/platform/architecture").unwrap_or_default();
            let variant = text(entry, "/platform/variant").filter(|variant| !variant.is_empty());
            if let Ok(candidate) = Platform::new(os, architecture, variant) {
                found.push((candidate, entry));
            }
        }
        let chosen = Platform::select(found.iter().map(|(candidate, _)| candidate), platform)
            .and_then(|index| found.get(index))
            .ok_or(FetchError::NoPlatform)?;
        descriptor(chosen.1)
    }

    /// The manifests that an index names.
    pub(crate) fn entries(&self) -> Vec<Descriptor> {
        list(&self.value, "/manifests")
            .iter()
            .take(MAX_INDEX)
            .filter_map(|entry| descriptor(entry).ok())
            .collect()
    }

    /// Config and layers of a manifest.
    pub(crate) fn parts(&self) -> Result<(Descriptor, Vec<Descriptor>), FetchError> {
        let config = self.value.get("config").ok_or_else(|| FetchError::Malformed {
            what: format!("manifest {} has no config", self.digest),
        })?;
        let layers = list(&self.value, "/layers");
        if layers.len() > MAX_LAYERS {
            return Err(FetchError::Malformed {
                what: format!("manifest {} has {} layers, more than {MAX_LAYERS}", self.digest, layers.len()),
            });
        }
        Ok((descriptor(config)?, layers.iter().map(descriptor).collect::<Result<_, _>>()?))
    }
}

fn descriptor(value: &Value) -> Result<Descriptor, FetchError> {
    let written = text(value, "/digest").unwrap_or_default();
    let digest = Digest::parse(written)
        .map_err(|error| FetchError::Malformed { what: format!("descriptor digest {written:?}: {error}") })?;
    Ok(Descriptor {
        digest,
        size: value.get("size").and_then(Value::as_u64).unwrap_or(0),
        media_type: text(value, "/mediaType").unwrap_or_default().to_owned(),
    })
}

/// One conversation with one repository of one host.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    host: String,
    repository: String,
    login: Option<Login>,
    authorization: Option<String>,
}

impl Session {
    /// A conversation that has not begun; `login` is used only when the host asks for one.
    pub(crate) fn new(host: &str, repository: &str, login: Option<Login>) -> Self {
        Self { host: host.to_owned(), repository: repository.to_owned(), login, authorization: None }
    }

    /// Asks which digest a tag (or digest) has, and takes the manifest.
    pub(crate) fn manifest(
        &mut self,
        registry: &mut RegistryServer,
        selector: &str,
    ) -> Result<Manifest, FetchError> {
        let path = format!("/v2/{}/manifests/{selector}", self.repository);
        let head = self.send(registry, &Method::HEAD, &path)?;
        let named = head
            .headers()
            .get("docker-content-digest")
            .and_then(|value| value.to_str().ok())
            .and_then(|value| Digest::parse(value).ok());
        let wanted = Digest::parse(selector).ok().or(named);
        let path = match &wanted {
            Some(digest) => format!("/v2/{}/manifests/{digest}", self.repository),
            None => path,
        };
        let response = self.send(registry, &Method::GET, &path)?;
        let bytes = response.body().clone();
        let digest = check(wanted, &bytes)?;
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| FetchError::Malformed { what: format!("manifest {digest}: {error}") })?;
        let media_type = text(&value, "/mediaType")
            .map(ToOwned::to_owned)
            .or_else(|| response.headers().get(header::CONTENT_TYPE)?.to_str().ok().map(ToOwned::to_owned))
            .unwrap_or_default();
        Ok(Manifest { digest, media_type, bytes, value })
    }

    /// Takes a blob.
    pub(crate) fn blob(
        &mut self,
        registry: &mut RegistryServer,
        digest: &Digest,
    ) -> Result<Bytes, FetchError> {
        let path = format!("/v2/{}/blobs/{digest}", self.repository);
        let response = self.send(registry, &Method::GET, &path)?;
        let bytes = response.into_body();
        check(Some(digest.clone()), &bytes)?;
        Ok(bytes)
    }

    fn send(
        &mut self,
        registry: &mut RegistryServer,
        method: &Method,
        path: &str,
    ) -> Result<Response<Bytes>, FetchError> {
        let response =
            self.once(registry, &self.host.clone(), method, path, self.authorization.as_deref())?;
        if response.status() == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
            self.authorization = self.authorize(registry, response.headers())?;
            if self.authorization.is_some() {
                let again =
                    self.once(registry, &self.host.clone(), method, path, self.authorization.as_deref())?;
                return self.judge(method, path, again);
            }
        }
        self.judge(method, path, response)
    }

    fn judge(
        &self,
        method: &Method,
        path: &str,
        response: Response<Bytes>,
    ) -> Result<Response<Bytes>, FetchError> {
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::NOT_FOUND => Err(FetchError::NotFound { what: self.url(path) }),
            StatusCode::UNAUTHORIZED => Err(FetchError::Denied),
            status => Err(FetchError::Status { method: method.clone(), url: self.url(path), status }),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.host)
    }

    fn once(
        &self,
        registry: &mut RegistryServer,
        host: &str,
        method: &Method,
        path: &str,
        authorization: Option<&str>,
    ) -> Result<Response<Bytes>, FetchError> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, host);
        if path.contains("/manifests/") {
            request = request.header(header::ACCEPT, ACCEPT);
        }
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Bytes::new()).map_err(|error| FetchError::Malformed {
            what: format!("cannot ask {}: {error}", self.url(path)),
        })?;
        let response = registry.handle(host, &request);
        if response.extensions().get::<Unreachable>().is_some() {
            return Err(FetchError::Unreachable { host: host.to_owned() });
        }
        if response.status() == StatusCode::MISDIRECTED_REQUEST {
            return Err(FetchError::NoHost { host: host.to_owned() });
        }
        Ok(response)
    }

    /// Answers a challenge: the value for `Authorization`, or nothing when there is no answer to give.
    fn authorize(
        &self,
        registry: &mut RegistryServer,
        headers: &HeaderMap,
    ) -> Result<Option<String>, FetchError> {
        let Some(challenge) = headers.get(header::WWW_AUTHENTICATE).and_then(|value| value.to_str().ok())
        else {
            return Ok(None);
        };
        let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
        let basic = self
            .login
            .as_ref()
            .map(|login| format!("Basic {}", STANDARD.encode(format!("{}:{}", login.user, login.password))));
        if scheme.eq_ignore_ascii_case("basic") {
            return Ok(basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(None);
        }
        let Some(realm) = parameter(parameters, "realm") else { return Ok(None) };
        let (host, path) = split_url(&realm);
        let scope =
            parameter(parameters, "scope").unwrap_or_else(|| format!("repository:{}:pull", self.repository));
        let mut query = format!("scope={scope}");
        if let Some(service) = parameter(parameters, "service") {
            query.push_str("&service=");
            query.push_str(&service);
        }
        let path = format!("{path}{}{query}", if path.contains('?') { '&' } else { '?' });
        let response = self.once(registry, &host, &Method::GET, &path, basic.as_deref())?;
        if !response.status().is_success() {
            return Err(FetchError::Denied);
        }
        let body: Value = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
        let token = text(&body, "/token").or_else(|| text(&body, "/access_token")).unwrap_or_default();
        Ok((!token.is_empty()).then(|| format!("Bearer {token}")))
    }
}

/// The digest of the bytes; it must be the wanted one.
fn check(wanted: Option<Digest>, bytes: &[u8]) -> Result<Digest, FetchError> {
    match wanted {
        Some(wanted) if wanted.verifies(bytes) => Ok(wanted),
        Some(wanted) => Err(FetchError::Mismatch { wanted, found: Digest::of(bytes) }),
        None => Ok(Digest::of(bytes)),
    }
}

/// One parameter of a challenge, quoted or not.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value.trim().to_owned());
        }
        rest = next.trim_start().trim_start_matches(',').trim_start();
    }
    None
}

/// Host and path of an absolute URL.
fn split_url(url: &str) -> (String, String) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    match rest.split_once('/') {
        Some((host, path)) => (host.to_owned(), format!("/{path}")),
        None => (rest.to_owned(), "/".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_challenge() {
        let challenge = r#"realm="https://auth.example/token",service="r.example", scope="repository:a/b:pull,push",plain=x"#;
        for (name, value) in [
            ("realm", Some("https://auth.example/token")),
            ("service", Some("r.example")),
            ("scope", Some("repository:a/b:pull,push")),
            ("plain", Some("x")),
            ("other", None),
        ] {
            assert_eq!(parameter(challenge, name).as_deref(), value, "{name}");
        }
        assert_eq!(parameter("realm", "realm"), None);
        assert_eq!(parameter("realm=\"open", "realm"), None);
    }

    #[test]
    fn urls() {
        assert_eq!(split_url("https://a:1/t?x=1"), ("a:1".to_owned(), "/t?x=1".to_owned()));
        assert_eq!(split_url("a"), ("a".to_owned(), "/".to_owned()));
    }

    #[test]
    fn a_login_does_not_show_its_password() {
        let login = Login { user: "u".into(), password: "secret".into() };
        assert!(!format!("{login:?}").contains("secret"));
    }
}
