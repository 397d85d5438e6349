//! The registry: hosts, and the way of one request.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use scantling_image::Digest;

use crate::access::{Access, Action, Gate, Target};
use crate::faults::{self, Effect, Faults};
use crate::reply::{Answer, Code, Refusal};
use crate::repository::{PushError, Pushed, Repository, check_repository};
use crate::route::{NoRoute, Route};
use crate::{blobs, listing, manifests, token, uploads};

/// Most repositories that clients may create on one host.
const MAX_REPOSITORIES: usize = 10_000;

/// Content and rules of one host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    pub(crate) repositories: BTreeMap<String, Repository>,
    pub(crate) gate: Gate,
    /// Names the next upload.
    pub(crate) next_upload: u64,
}

/// Any number of registries, each at its own host name. See the crate's documentation.
#[derive(Debug, Clone, Default)]
pub struct RegistryServer {
    hosts: BTreeMap<String, Host>,
    faults: Faults,
}

impl RegistryServer {
    /// No hosts yet: every request is misdirected until one is added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host without content. [`Self::push`] and [`Self::access`] do it too.
    pub fn add_host(&mut self, host: &str) {
        self.host_mut(host);
    }

    fn host_mut(&mut self, host: &str) -> &mut Host {
        self.hosts.entry(host.to_ascii_lowercase()).or_default()
    }

    fn repository(&self, host: &str, repository: &str) -> Option<&Repository> {
        self.hosts.get(&host.to_ascii_lowercase())?.repositories.get(repository)
    }

    /// Stores an image, and points the tag at its root. All or nothing.
    pub fn push(
        &mut self,
        host: &str,
        repository: &str,
        tag: Option<&str>,
        image: &Pushed,
    ) -> Result<(), PushError> {
        check_repository(repository)?;
        let host = self.host_mut(host);
        let mut stored = host.repositories.get(repository).cloned().unwrap_or_default();
        stored.store(repository, tag, image)?;
        host.repositories.insert(repository.to_owned(), stored);
        Ok(())
    }

    /// Points a tag at a manifest that the repository has.
    pub fn tag(&mut self, host: &str, repository: &str, tag: &str, digest: &Digest) -> Result<(), PushError> {
        check_repository(repository)?;
        match self.host_mut(host).repositories.get_mut(repository) {
            Some(stored) => stored.tag(repository, tag, digest),
            None => Repository::default().tag(repository, tag, digest),
        }
    }

    /// Takes away a tag, or by digest a manifest (with its tags) or a blob. Says whether there was one.
    pub fn remove(&mut self, host: &str, repository: &str, tag_or_digest: &str) -> bool {
        self.host_mut(host)
            .repositories
            .get_mut(repository)
            .is_some_and(|stored| stored.remove(tag_or_digest))
    }

    /// Sets the rule for the repositories below a prefix of whole components; the empty prefix is the host's default.
    pub fn access(&mut self, host: &str, repository_prefix: &str, access: Access) {
        self.host_mut(host).gate.set(repository_prefix, access);
    }

    /// Says where the host's tokens are to be had, if not at `https://HOST/token`.
    pub fn realm(&mut self, host: &str, url: &str) {
        self.host_mut(host).gate.realm = Some(url.to_owned());
    }

    /// Makes every token of the host invalid, as the passing of time does.
    pub fn expire_tokens(&mut self, host: &str) {
        self.host_mut(host).gate.epoch += 1;
    }

    /// The failures that wait for their requests.
    pub fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// The hosts, sorted.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str)
    }

    /// The repositories of a host, sorted.
    pub fn repositories(&self, host: &str) -> impl Iterator<Item = &str> {
        let host = self.hosts.get(&host.to_ascii_lowercase());
        host.into_iter().flat_map(|host| host.repositories.keys().map(String::as_str))
    }

    /// The tags of a repository, sorted, each with its digest.
    pub fn tags(&self, host: &str, repository: &str) -> impl Iterator<Item = (&str, &Digest)> {
        let stored = self.repository(host, repository);
        stored.into_iter().flat_map(|stored| stored.tags.iter().map(|(tag, digest)| (tag.as_str(), digest)))
    }

    /// The digest that a tag or a digest selects, if its manifest is there. Access rules and faults are not asked.
    pub fn resolve(&self, host: &str, repository: &str, tag_or_digest: &str) -> Option<Digest> {
        self.repository(host, repository)?.resolve(tag_or_digest).cloned()
    }

    /// Media type and bytes of a manifest or index. Access rules and faults are not asked.
    pub fn manifest(&self, host: &str, repository: &str, digest: &Digest) -> Option<(&str, &[u8])> {
        let manifest = self.repository(host, repository)?.manifests.get(digest)?;
        Some((manifest.media_type.as_str(), manifest.bytes.as_ref()))
    }

    /// The bytes of a blob. Access rules and faults are not asked.
    pub fn blob(&self, host: &str, repository: &str, digest: &Digest) -> Option<&[u8]> {
        self.repository(host, repository)?.blobs.get(digest).map(AsRef::as_ref)
    }

    /// Answers one request that was sent to this host.
    pub fn handle(&mut self, host: &str, request: &Request<Bytes>) -> Response<Bytes> {
        let host = host.to_ascii_lowercase();
        let mut response = match self.answer(&host, request) {
            Ok(response) => response,
            Err(refusal) => refusal.into_response(),
        };
        if request.method() == Method::HEAD {
            response.body_mut().clear();
        }
        response
    }

    fn answer(&mut self, name: &str, request: &Request<Bytes>) -> Result<Response<Bytes>, Refusal> {
        let host = self.hosts.get_mut(name).ok_or_else(|| {
            Refusal::new(Code::Unsupported, format!("no registry {name} is served here"))
                .status(StatusCode::MISDIRECTED_REQUEST)
        })?;
        let path = percent_encoding::percent_decode_str(request.uri().path()).decode_utf8_lossy();
        let route = Route::parse(&path).map_err(no_route)?;
        let effect = self.faults.take(name, request.method(), &route);
        if let Some(response) = effect.as_ref().and_then(|effect| faults::instead(effect, name, &route)) {
            return Ok(response);
        }
        let mut response = host.serve(name, &route, request)?;
        // Registries answer HEAD from the descriptor, which knows nothing of lost bytes.
        if let Some(Effect::Truncate { bytes }) = effect
            && request.method() != Method::HEAD
        {
            faults::truncate(&mut response, bytes);
        }
        Ok(response)
    }
}

impl Host {
    fn serve(
        &mut self,
        name: &str,
        route: &Route,
        request: &Request<Bytes>,
    ) -> Result<Response<Bytes>, Refusal> {
        let headers = request.headers();
        if *route == Route::Token {
            return token::serve(&self.gate, name, request);
        }
        let action = action(request.method(), route)?;
        let target = match route {
            Route::Base | Route::Token => Target::Base,
            Route::Catalog => Target::Catalog,
            _ => Target::Repository(route.repository().unwrap_or_default(), action),
        };
        self.gate.check(name, headers, target)?;
        match route {
            Route::Token | Route::Base => {
                Ok(Answer::json(StatusCode::OK, &serde_json::json!({})).into_response())
            }
            Route::Catalog => listing::catalog(self, request),
            Route::Tags { name } => listing::tags(self.existing(name)?, name, request),
            Route::Referrers { name, digest } => {
                Ok(listing::referrers(self.repositories.get(name), digest, request))
            }
            Route::Manifest { name, selector } => match *request.method() {
                Method::PUT => manifests::put(self.created(name)?, name, selector, request),
                Method::DELETE => manifests::delete(self.existing_mut(name)?, selector),
                _ => manifests::get(self.existing(name)?, selector, headers),
            },
            Route::Blob { name, digest } => match *request.method() {
                Method::DELETE => blobs::delete(self.existing_mut(name)?, digest),
                _ => blobs::get(self.existing(name)?, digest, headers),
            },
            Route::Uploads { name: repository } => uploads::start(self, name, repository, request),
            Route::Upload { name, id } => uploads::carry_on(self.existing_mut(name)?, name, id, request),
        }
    }

    fn existing(&self, name: &str) -> Result<&Repository, Refusal> {
        self.repositories.get(name).ok_or_else(|| unknown_name(name))
    }

    fn existing_mut(&mut self, name: &str) -> Result<&mut Repository, Refusal> {
        self.repositories.get_mut(name).ok_or_else(|| unknown_name(name))
    }

    /// The repository, made if it is not there.
    pub(crate) fn created(&mut self, name: &str) -> Result<&mut Repository, Refusal> {
        if !self.repositories.contains_key(name) && self.repositories.len() >= MAX_REPOSITORIES {
            return Err(Refusal::new(
                Code::Denied,
                format!("this host has {MAX_REPOSITORIES} repositories already"),
            ));
        }
        Ok(self.repositories.entry(name.to_owned()).or_default())
    }
}

fn unknown_name(name: &str) -> Refusal {
    Refusal::new(Code::NameUnknown, format!("repository {name} is not known to this registry"))
}

/// What the method asks for; refuses methods that the route does not have.
fn action(method: &Method, route: &Route) -> Result<Action, Refusal> {
    let read = matches!(*method, Method::GET | Method::HEAD);
    let action = match route {
        Route::Uploads { .. } if *method == Method::POST => Action::Push,
        Route::Upload { .. } if read || matches!(*method, Method::PATCH | Method::PUT | Method::DELETE) => {
            Action::Push
        }
        Route::Manifest { .. } if *method == Method::PUT => Action::Push,
        Route::Manifest { .. } | Route::Blob { .. } if *method == Method::DELETE => Action::Delete,
        Route::Uploads { .. } | Route::Upload { .. } => return Err(no_method(method)),
        _ if read => Action::Pull,
        _ => return Err(no_method(method)),
    };
    Ok(action)
}

fn no_method(method: &Method) -> Refusal {
    Refusal::new(Code::Unsupported, format!("{method} is not defined for this path"))
}

fn no_route(reason: NoRoute) -> Refusal {
    match reason {
        NoRoute::Unknown => Refusal::new(Code::Unsupported, "no such path in the distribution API")
            .status(StatusCode::NOT_FOUND),
        NoRoute::Name(name) => Refusal::new(Code::NameInvalid, format!("invalid repository name {name:?}")),
        NoRoute::Digest(text) => Refusal::new(Code::DigestInvalid, format!("invalid digest {text:?}")),
        NoRoute::Reference(text) => Refusal::new(Code::TagInvalid, format!("invalid tag {text:?}")),
    }
}
