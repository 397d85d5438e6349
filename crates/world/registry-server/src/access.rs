//! Who may do what.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use serde::Deserialize;

use crate::faults::is_below;
use crate::reply::{Code, Refusal};
use crate::token::Key;

/// What an account may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rights {
    /// Read.
    #[default]
    Pull,
    /// Read, write and delete.
    Push,
}

/// One account. The password is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Account {
    /// The password, or a token used as one.
    pub password: String,
    /// What it may do.
    #[serde(default)]
    pub rights: Rights,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("password", &"<hidden>").field("rights", &self.rights).finish()
    }
}

/// Accounts by user name.
pub type Accounts = BTreeMap<String, Account>;

/// The rule of a part of a host. The rule with the longest prefix of whole components holds for a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, tag = "kind")]
pub enum Access {
    /// Everybody may do everything. This holds where no rule was given.
    #[default]
    Anonymous,
    /// User name and password with every request.
    Basic {
        /// Who.
        accounts: Accounts,
    },
    /// A bearer token from the host's `/token`, as Docker Hub and Quay want it.
    #[serde(rename_all = "camelCase")]
    Token {
        /// Who.
        #[serde(default)]
        accounts: Accounts,
        /// May a token without an account pull?
        #[serde(default)]
        anonymous_pull: bool,
    },
}

/// What a request wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pull,
    Push,
    Delete,
}

impl Action {
    /// The word of the token scope.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push",
            Self::Delete => "delete",
        }
    }

    pub(crate) fn is_allowed(self, rights: Rights) -> bool {
        self == Self::Pull || rights == Rights::Push
    }
}

/// What a request is checked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// `/v2/`: any valid identity will do.
    Base,
    /// The catalogue of the host.
    Catalog,
    /// A repository.
    Repository(&'a str, Action),
}

impl Target<'_> {
    fn scope(&self) -> Option<String> {
        match self {
            Self::Base => None,
            Self::Catalog => Some("registry:catalog:*".to_owned()),
            Self::Repository(name, Action::Pull) => Some(format!("repository:{name}:pull")),
            Self::Repository(name, Action::Push) => Some(format!("repository:{name}:pull,push")),
            Self::Repository(name, Action::Delete) => Some(format!("repository:{name}:delete")),
        }
    }
}

/// The rules of one host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    rules: BTreeMap<String, Access>,
    /// Tokens of an older epoch are no longer accepted.
    pub(crate) epoch: u64,
    /// Where tokens are to be had, if not at `https://HOST/token`.
    pub(crate) realm: Option<String>,
}

impl Gate {
    pub(crate) fn set(&mut self, prefix: &str, access: Access) {
        self.rules.insert(prefix.trim_matches('/').to_owned(), access);
    }

    /// The rule of a repository.
    pub(crate) fn rule(&self, repository: &str) -> &Access {
        self.rules
            .iter()
            .filter(|(prefix, _)| is_below(repository, prefix))
            .max_by_key(|(prefix, _)| prefix.len())
            .map_or(&Access::Anonymous, |(_, access)| access)
    }

    /// The rule of what belongs to no repository. A host that wants tokens anywhere asks for one at `/v2/`, as real ones do.
    fn rule_of_host(&self) -> &Access {
        let token = self.rules.values().find(|access| matches!(access, Access::Token { .. }));
        self.rules.get("").or(token).unwrap_or(&Access::Anonymous)
    }

    /// Is this user known anywhere on the host, with this password?
    pub(crate) fn knows(&self, credentials: &Credentials) -> bool {
        self.rules.values().any(|access| match access {
            Access::Anonymous => false,
            Access::Basic { accounts } | Access::Token { accounts, .. } => {
                credentials.account(accounts).is_some()
            }
        })
    }

    /// Lets the request pass, or says what is missing.
    pub(crate) fn check(&self, host: &str, headers: &HeaderMap, target: Target<'_>) -> Result<(), Refusal> {
        let rule = match target {
            Target::Base | Target::Catalog => self.rule_of_host(),
            Target::Repository(name, _) => self.rule(name),
        };
        match rule {
            Access::Anonymous => Ok(()),
            Access::Basic { accounts } => self.check_basic(host, headers, target, accounts),
            Access::Token { .. } => self.check_token(host, headers, target),
        }
    }

    fn check_basic(
        &self,
        host: &str,
        headers: &HeaderMap,
        target: Target<'_>,
        accounts: &Accounts,
    ) -> Result<(), Refusal> {
        let unauthorized = || {
            Refusal::new(Code::Unauthorized, "authentication required")
                .header(header::WWW_AUTHENTICATE, format!("Basic realm=\"{host}\""))
        };
        let credentials = Credentials::of(headers).ok_or_else(unauthorized)?;
        let Some(account) = credentials.account(accounts) else {
            return Err(if self.knows(&credentials) { denied() } else { unauthorized() });
        };
        match target {
            Target::Repository(_, action) if !action.is_allowed(account.rights) => Err(denied()),
            _ => Ok(()),
        }
    }

    fn check_token(&self, host: &str, headers: &HeaderMap, target: Target<'_>) -> Result<(), Refusal> {
        let challenge = |error: Option<&str>| {
            let realm = self.realm.clone().unwrap_or_else(|| format!("https://{host}/token"));
            let mut text = format!("Bearer realm=\"{realm}\",service=\"{host}\"");
            if let Some(scope) = target.scope() {
                text = format!("{text},scope=\"{scope}\"");
            }
            if let Some(error) = error {
                text = format!("{text},error=\"{error}\"");
            }
            Refusal::new(Code::Unauthorized, "authentication required").header(header::WWW_AUTHENTICATE, text)
        };
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| scheme(value, "bearer"))
            .ok_or_else(|| challenge(None))?;
        let grant =
            Key { host, epoch: self.epoch }.read(token).ok_or_else(|| challenge(Some("invalid_token")))?;
        let allowed = match target {
            Target::Base => true,
            Target::Catalog => grant.catalog,
            Target::Repository(name, action) => grant.allows(name, action),
        };
        if allowed { Ok(()) } else { Err(challenge(Some("insufficient_scope"))) }
    }
}

fn denied() -> Refusal {
    Refusal::new(Code::Denied, "requested access to the resource is denied")
}

/// User name and password of a request. No `Debug`: they are secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl Credentials {
    /// Reads an `Authorization: Basic` header.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let decoded = STANDARD.decode(scheme(value, "basic")?).ok()?;
        let text = String::from_utf8(decoded).ok()?;
        let (user, password) = text.split_once(':')?;
        Some(Self { user: user.to_owned(), password: password.to_owned() })
    }

    pub(crate) fn account<'a>(&self, accounts: &'a Accounts) -> Option<&'a Account> {
        accounts.get(&self.user).filter(|account| account.password == self.password)
    }
}

/// The rest of an `Authorization` value of this scheme; schemes have no case.
fn scheme<'a>(value: &'a str, wanted: &str) -> Option<&'a str> {
    let (scheme, rest) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case(wanted).then(|| rest.trim())
}
