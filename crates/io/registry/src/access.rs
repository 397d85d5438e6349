//! Requests to a repository: address, authorisation, redirects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use scantling_endpoint::{Attempt, Credential};
use serde::Deserialize;

use crate::answer;
use crate::challenge::{self, Challenge};
use crate::client::Inner;
use crate::error::{Place, Problem, RegistryError};
use crate::exchange::{Outgoing, is_redirection};
use crate::hosts::TokenKey;
use crate::transport::Body;

/// Largest answer of a token service, in bytes; tokens with many scopes take some tens of KiB.
const TOKEN_ANSWER_MAX: usize = 1024 * 1024;
/// Most redirections that are followed; registries need one, to their storage.
const REDIRECTIONS_MAX: usize = 5;

/// What a request wants to do with a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action<'a> {
    Pull,
    Push,
    /// Push, and read another repository of the same registry to mount from.
    PushFrom(&'a str),
}

impl Action<'_> {
    fn scope(self, repository: &str) -> String {
        match self {
            Self::Pull => format!("repository:{repository}:pull"),
            Self::Push => format!("repository:{repository}:pull,push"),
            Self::PushFrom(other) => {
                format!("repository:{repository}:pull,push repository:{other}:pull")
            }
        }
    }
}

/// How a request was authorised, which decides what a refusal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorised {
    Not,
    Token,
    Basic,
}

/// An answer, and how its request was authorised.
pub(crate) struct Answered {
    pub(crate) response: Response<Body>,
    pub(crate) authorised: Authorised,
}

impl Inner {
    /// Sends a request, with the credential that the attempt names if the registry wants one.
    pub(crate) async fn send(
        &self,
        place: &Place,
        attempt: &Attempt,
        action: Action<'_>,
        outgoing: &Outgoing,
    ) -> Result<Answered, RegistryError> {
        let host = self.hosts.host(&attempt.host, self.options.parallel);
        let credential = attempt.credential.and_then(|id| self.keyring.credential(id));
        let scope = action.scope(&attempt.repository);
        let mut known = host.challenge(&attempt.repository);
        let mut used_scope = scope.clone();
        let mut stale: Option<String> = None;
        // First with what is known; then with the answer to a challenge; then with the scope that the registry itself names.
        let mut rounds = 0;
        loop {
            let (value, authorised) = match &known {
                None => (None, Authorised::Not),
                Some(Challenge::Basic) => match credential {
                    Some(credential) => (Some(basic(credential)), Authorised::Basic),
                    None => (None, Authorised::Not),
                },
                Some(Challenge::Bearer { realm, service, .. }) => {
                    let key = TokenKey {
                        host: attempt.host.clone(),
                        scope: used_scope.clone(),
                        credential: attempt.credential,
                    };
                    let want = Wanted { realm, service: service.as_deref(), key: &key, credential };
                    let token = self.token(place, attempt, &want, stale.as_deref()).await?;
                    let value = HeaderValue::try_from(format!("Bearer {token}"))
                        .map_err(|_| place.malformed("the token service gave a token that is no header"))?;
                    stale = Some(token);
                    (Some(value), Authorised::Token)
                }
            };
            let mut request = outgoing.clone();
            if let Some(mut value) = value {
                value.set_sensitive(true);
                request.headers.insert(header::AUTHORIZATION, value);
            }
            let response = self.follow(place, attempt, request).await?;
            rounds += 1;
            if response.status() != StatusCode::UNAUTHORIZED || rounds >= 3 {
                return Ok(Answered { response, authorised });
            }
            let Some(asked) = challenge::from_headers(response.headers()) else {
                return Ok(Answered { response, authorised });
            };
            let named_scope = match &asked {
                Challenge::Bearer { scope: Some(named), .. } => named.clone(),
                _ => scope.clone(),
            };
            let same_question = known.as_ref().is_some_and(|known| same_service(known, &asked));
            match authorised {
                Authorised::Basic => return Ok(Answered { response, authorised }),
                // A token that was just made for this very scope was refused.
                Authorised::Token if same_question && rounds > 1 && named_scope == used_scope => {
                    return Ok(Answered { response, authorised });
                }
                Authorised::Not if asked == Challenge::Basic && credential.is_none() => {
                    return Ok(Answered { response, authorised });
                }
                _ => {}
            }
            if !same_question {
                stale = None;
            }
            host.learn(&attempt.repository, &asked);
            used_scope = named_scope;
            known = Some(asked);
        }
    }

    /// Sends a request and follows redirections of reads; the credential stays with the host it was for.
    async fn follow(
        &self,
        place: &Place,
        attempt: &Attempt,
        mut request: Outgoing,
    ) -> Result<Response<Body>, RegistryError> {
        for _ in 0..=REDIRECTIONS_MAX {
            let response = self.exchange(place, &request).await?;
            let read = request.method == Method::GET || request.method == Method::HEAD;
            if !read || !is_redirection(response.status()) {
                return Ok(response);
            }
            let Some(location) =
                response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok())
            else {
                return Err(place.malformed("a redirection without a place to go to"));
            };
            let next = resolved(&request.uri, location)
                .ok_or_else(|| place.malformed("a redirection to something that is no address"))?;
            if request.uri.scheme() == Some(&Scheme::HTTPS)
                && next.scheme() != Some(&Scheme::HTTPS)
                && !attempt.insecure
            {
                return Err(place.malformed("a redirection from HTTPS to plain HTTP"));
            }
            if next.authority() != request.uri.authority() || next.scheme() != request.uri.scheme() {
                request.headers.remove(header::AUTHORIZATION);
            }
            request.uri = next;
        }
        Err(place.malformed(format!("more than {REDIRECTIONS_MAX} redirections")))
    }

    /// A token for the scope: the remembered one, unless that is the stale one, else a new one.
    async fn token(
        &self,
        place: &Place,
        attempt: &Attempt,
        wanted: &Wanted<'_>,
        stale: Option<&str>,
    ) -> Result<String, RegistryError> {
        let slot = self.hosts.token(wanted.key);
        let mut held = slot.lock().await;
        if let Some(token) = held.as_ref().filter(|token| stale != Some(token.as_str())) {
            return Ok(token.clone());
        }
        *held = None;
        let token = self.new_token(place, attempt, wanted).await?;
        *held = Some(token.clone());
        Ok(token)
    }

    async fn new_token(
        &self,
        place: &Place,
        attempt: &Attempt,
        wanted: &Wanted<'_>,
    ) -> Result<String, RegistryError> {
        let subject = format!("token for {}", wanted.key.scope);
        let place = Place { subject, ..place.clone() };
        let uri = wanted
            .address()
            .ok_or_else(|| place.malformed("the registry names a token service that is no address"))?;
        let host = uri.authority().map_or("", Authority::as_str).to_owned();
        let plain = uri.scheme() != Some(&Scheme::HTTPS);
        if plain && !is_loopback(&host) && !attempt.insecure {
            return Err(place.malformed(format!("the token service {host} is not reached over HTTPS")));
        }
        let mut request = Outgoing::new(Method::GET, uri);
        if let Some(credential) = wanted.credential {
            request.headers.insert(header::AUTHORIZATION, basic(credential));
        }
        let response = self.exchange(&place, &request).await?;
        let status = response.status();
        if status != StatusCode::OK {
            let retry_after = crate::retry::retry_after(response.headers());
            let answer = answer::read(self, &place, response, wanted.credential).await;
            let problem = match status.as_u16() {
                401 | 403 => {
                    let detail = match wanted.credential {
                        Some(credential) => {
                            format!("the token service {host} refused the credential {credential}")
                        }
                        None => format!("the token service {host} gives no token without a credential"),
                    };
                    Problem::Unauthenticated { answer: Some(answer), detail }
                }
                429 => Problem::RateLimited { answer, retry_after },
                500..=599 => Problem::Failing { answer },
                _ => Problem::Unknown { answer },
            };
            return Err(place.error(problem));
        }
        let bytes = self.whole(&place, response, TOKEN_ANSWER_MAX).await?;
        let answer: TokenAnswer = serde_json::from_slice(&bytes)
            .map_err(|_| place.malformed(format!("the token service {host} gave no token")))?;
        answer
            .token
            .or(answer.access_token)
            .filter(|token| !token.is_empty())
            .ok_or_else(|| place.malformed(format!("the token service {host} gave no token")))
    }
}

/// The address of a path of the registry's interface.
pub(crate) fn uri(place: &Place, attempt: &Attempt, path: &str) -> Result<Uri, RegistryError> {
    let scheme = if attempt.insecure || is_loopback(&attempt.host) { Scheme::HTTP } else { Scheme::HTTPS };
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(scheme);
    parts.authority = Authority::try_from(attempt.host.as_str()).ok();
    parts.path_and_query = PathAndQuery::try_from(path).ok();
    Uri::from_parts(parts).map_err(|_| place.malformed(format!("no address can be made of {path}")))
}

struct Wanted<'a> {
    realm: &'a str,
    service: Option<&'a str>,
    key: &'a TokenKey,
    credential: Option<&'a Credential>,
}

impl Wanted<'_> {
    /// The address of the token service, with service and scopes.
    fn address(&self) -> Option<Uri> {
        let realm: Uri = self.realm.parse().ok()?;
        let mut query = form_urlencoded::Serializer::new(realm.query().unwrap_or_default().to_owned());
        if let Some(service) = self.service {
            query.append_pair("service", service);
        }
        for scope in self.key.scope.split(' ') {
            query.append_pair("scope", scope);
        }
        let path = format!("{}?{}", realm.path(), query.finish());
        let mut parts = realm.into_parts();
        parts.authority.as_ref()?;
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        Uri::from_parts(parts).ok()
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

fn basic(credential: &Credential) -> HeaderValue {
    let joined = format!("{}:{}", credential.username.expose(), credential.password.expose());
    // Base64 is always a header value.
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(joined)))
        .unwrap_or_else(|_| HeaderValue::from_static("Basic"));
    value.set_sensitive(true);
    value
}

fn same_service(a: &Challenge, b: &Challenge) -> bool {
    match (a, b) {
        (Challenge::Basic, Challenge::Basic) => true,
        (
            Challenge::Bearer { realm: a_realm, service: a_service, .. },
            Challenge::Bearer { realm: b_realm, service: b_service, .. },
        ) => a_realm == b_realm && a_service == b_service,
        _ => false,
    }
}

/// Loopback registries are asked over plain HTTP, as container runtimes do.
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The address that a `Location` means, seen from the address that gave it.
pub(crate) fn resolved(base: &Uri, location: &str) -> Option<Uri> {
    if location.starts_with("//") {
        return format!("{}:{location}", base.scheme_str()?).parse().ok();
    }
    if location.starts_with('/') {
        let mut parts = base.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(location).ok()?);
        return Uri::from_parts(parts).ok();
    }
    let uri: Uri = location.parse().ok()?;
    (uri.authority().is_some() && matches!(uri.scheme_str(), Some("http" | "https"))).then_some(uri)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loopback_hosts() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:1", "127.9.9.9", "[::1]:5000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["quay.io", "127.example.com", "localhost.example", "10.0.0.1:5000", "[fe80::1]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn locations() {
        let base: Uri = "https://a.example:5000/v2/x/blobs/y?z=1".parse().unwrap();
        let check = |location: &str, expected: Option<&str>| {
            assert_eq!(
                resolved(&base, location).map(|uri| uri.to_string()).as_deref(),
                expected,
                "{location}"
            );
        };
        check("/v2/up?state=1", Some("https://a.example:5000/v2/up?state=1"));
        check("https://cdn.example/b?sig=%2F", Some("https://cdn.example/b?sig=%2F"));
        check("//cdn.example/b", Some("https://cdn.example/b"));
        check("ftp://cdn.example/b", None);
        check("relative", None);
        check("", None);
    }
}
