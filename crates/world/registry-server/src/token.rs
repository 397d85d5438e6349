//! Bearer tokens: what `/token` grants, and how a request proves it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use scantling_image::Digest;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::{Access, Action, Credentials, Gate, Rights};
use crate::reply::{Answer, Code, Refusal};

/// Most scopes of one token request: a client asks for two when it mounts a blob.
const MAX_SCOPES: usize = 64;
/// Longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 64 * 1024;
/// Seconds that a client may keep a token, as told to it. The server has no clock; its tokens end with the epoch.
const EXPIRES_IN: u32 = 300;

/// What a token allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    repositories: BTreeMap<String, BTreeSet<String>>,
    pub(crate) catalog: bool,
}

impl Grant {
    pub(crate) fn allows(&self, repository: &str, action: Action) -> bool {
        self.repositories.get(repository).is_some_and(|actions| actions.contains(action.word()))
    }
}

/// What a token is bound to.
pub(crate) struct Key<'a> {
    pub(crate) host: &'a str,
    pub(crate) epoch: u64,
}

impl Key<'_> {
    fn seal(&self, payload: &str) -> String {
        let text = format!("scantling registry token\n{}\n{}\n{payload}", self.host, self.epoch);
        Digest::of(text.as_bytes()).hex().to_owned()
    }

    fn write(&self, grant: &Grant) -> Option<String> {
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(grant).ok()?);
        let seal = self.seal(&payload);
        Some(format!("{payload}.{seal}"))
    }

    /// What a token grants, if this key made it.
    pub(crate) fn read(&self, token: &str) -> Option<Grant> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (payload, seal) = token.split_once('.')?;
        if self.seal(payload) != seal {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }
}

/// Serves `/token`: `GET` with Basic credentials or none, and `POST` with the password grant of OAuth 2.
pub(crate) fn serve(gate: &Gate, host: &str, request: &Request<Bytes>) -> Result<Response<Bytes>, Refusal> {
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let (credentials, scopes) = match *request.method() {
        Method::GET => (Credentials::of(request.headers()), scopes(query)?),
        Method::POST => {
            let mut fields: BTreeMap<_, _> = form_urlencoded::parse(request.body()).into_owned().collect();
            if fields.get("grant_type").is_none_or(|kind| kind != "password") {
                return Err(Refusal::new(Code::Unsupported, "only grant_type=password is supported")
                    .status(StatusCode::BAD_REQUEST));
            }
            let credentials = fields
                .remove("username")
                .zip(fields.remove("password"))
                .map(|(user, password)| Credentials { user, password });
            (credentials, scopes(request.body())?)
        }
        _ => return Err(Refusal::new(Code::Unsupported, "the token endpoint answers GET and POST")),
    };
    if let Some(credentials) = &credentials
        && !gate.knows(credentials)
    {
        return Err(Refusal::new(Code::Unauthorized, "incorrect username or password")
            .header(header::WWW_AUTHENTICATE, format!("Basic realm=\"{host}\"")));
    }
    let mut grant = Grant::default();
    for scope in scopes {
        add(gate, credentials.as_ref(), &scope, &mut grant);
    }
    let token = Key { host, epoch: gate.epoch }
        .write(&grant)
        .ok_or_else(|| Refusal::new(Code::Unavailable, "cannot write the token"))?;
    let body = json!({"token": token, "access_token": token, "expires_in": EXPIRES_IN});
    Ok(Answer::json(StatusCode::OK, &body).into_response())
}

fn scopes(form: &[u8]) -> Result<Vec<String>, Refusal> {
    let scopes: Vec<String> = form_urlencoded::parse(form)
        .filter(|(name, _)| name == "scope")
        .flat_map(|(_, value)| value.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .take(MAX_SCOPES + 1)
        .collect();
    if scopes.len() > MAX_SCOPES {
        let text = format!("more than {MAX_SCOPES} scopes in one request");
        return Err(Refusal::new(Code::Unsupported, text).status(StatusCode::BAD_REQUEST));
    }
    Ok(scopes)
}

/// Adds what the identity may have of one scope. As the token specification says, the rest is left out without an error.
fn add(gate: &Gate, credentials: Option<&Credentials>, scope: &str, grant: &mut Grant) {
    if scope == "registry:catalog:*" {
        grant.catalog = match gate.rule("") {
            Access::Anonymous => true,
            Access::Basic { .. } => false,
            Access::Token { anonymous_pull, .. } => *anonymous_pull || credentials.is_some(),
        };
        return;
    }
    let Some((name, actions)) = scope.strip_prefix("repository:").and_then(|rest| rest.rsplit_once(':'))
    else {
        return;
    };
    let rights = match gate.rule(name) {
        Access::Anonymous => Some(Rights::Push),
        Access::Basic { .. } => None,
        Access::Token { accounts, anonymous_pull } => credentials
            .and_then(|credentials| credentials.account(accounts))
            .map(|account| account.rights)
            .or(anonymous_pull.then_some(Rights::Pull)),
    };
    let Some(rights) = rights else { return };
    let wanted = |action: Action| actions.split(',').any(|word| word == action.word() || word == "*");
    let granted = grant.repositories.entry(name.to_owned()).or_default();
    for action in [Action::Pull, Action::Push, Action::Delete] {
        if wanted(action) && action.is_allowed(rights) {
            granted.insert(action.word().to_owned());
        }
    }
}
