//! What a refusal means.

use http::Response;
use scantling_endpoint::{Attempt, Credential};
use serde::Deserialize;

use crate::access::{Answered, Authorised};
use crate::client::Inner;
use crate::error::{Answer, Place, Problem, RegistryError};
use crate::retry;
use crate::transport::Body;

/// Largest error body that is read, in bytes; what is longer says nothing more.
const ERROR_BODY_MAX: usize = 64 * 1024;
/// Most characters of a registry's own words that are repeated.
const MESSAGE_MAX: usize = 200;

#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default)]
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: Option<String>,
}

/// Reads status, code and message of a refusal. The message is dropped if it repeats a credential.
pub(crate) async fn read(
    inner: &Inner,
    place: &Place,
    response: Response<Body>,
    credential: Option<&Credential>,
) -> Answer {
    let status = response.status().as_u16();
    let entry = match inner.whole(place, response, ERROR_BODY_MAX).await {
        Ok(bytes) => {
            serde_json::from_slice::<ErrorBody>(&bytes).ok().and_then(|body| body.errors.into_iter().next())
        }
        Err(_) => None,
    };
    let Some(entry) = entry else {
        return Answer { status, code: None, message: None };
    };
    let clean = |text: &str| -> String {
        text.chars().filter(|c| !c.is_control()).take(MESSAGE_MAX).collect::<String>().trim().to_owned()
    };
    let secret = |text: &str| {
        credential.is_some_and(|credential| {
            let password = credential.password.expose();
            !password.is_empty() && text.contains(password)
        })
    };
    let code = clean(&entry.code);
    let message = entry.message.filter(|message| !secret(message)).map(|message| clean(&message));
    Answer {
        status,
        code: Some(code).filter(|code| !code.is_empty()),
        message: message.filter(|message| !message.is_empty()),
    }
}

impl Inner {
    /// The error that an answer without success amounts to.
    pub(crate) async fn refused(
        &self,
        place: &Place,
        attempt: &Attempt,
        answered: Answered,
    ) -> RegistryError {
        let Answered { response, authorised } = answered;
        let credential = attempt.credential.and_then(|id| self.keyring.credential(id));
        let retry_after = retry::retry_after(response.headers());
        let is_registry = response.headers().contains_key("docker-distribution-api-version");
        let answer = read(self, place, response, credential).await;
        let status = answer.status;
        place.error(match status {
            401 => unauthorised(answer, authorised, credential),
            403 => Problem::Forbidden {
                detail: match credential {
                    Some(credential) => format!("not permitted with the credential {credential}"),
                    None => "not permitted without a credential".to_owned(),
                },
                answer,
            },
            // Only an answer in the registry's own form proves that something is not there.
            404 | 410 if is_registry || answer.code.is_some() => Problem::Absent { answer, nearby: None },
            421 => {
                Problem::Unreachable { detail: format!("no registry of this name answers there: {answer}") }
            }
            429 => Problem::RateLimited { answer, retry_after },
            500..=599 => Problem::Failing { answer },
            _ if answer.code.as_deref() == Some("TOOMANYREQUESTS") => {
                Problem::RateLimited { answer, retry_after }
            }
            _ => Problem::Unknown { answer },
        })
    }
}

fn unauthorised(answer: Answer, authorised: Authorised, credential: Option<&Credential>) -> Problem {
    match (authorised, credential) {
        (Authorised::Basic, Some(credential)) => Problem::Unauthenticated {
            answer: Some(answer),
            detail: format!("the registry refused the credential {credential}"),
        },
        // The token service took the credential, so the credential is not what is wrong.
        (Authorised::Token, Some(credential)) => Problem::Forbidden {
            answer,
            detail: format!(
                "missing, or not permitted with the credential {credential}; registries hide which"
            ),
        },
        (Authorised::Token, None) => Problem::Unauthenticated {
            answer: Some(answer),
            detail: "missing, or a credential is needed; registries hide which".to_owned(),
        },
        (_, _) => Problem::Unauthenticated {
            answer: Some(answer),
            detail: "a credential is needed and none fits".to_owned(),
        },
    }
}
