//! Lists: selectors, pages, versions of the past.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scantling_api::{KindFacts, ObjectKey};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answer::{Answer, List};
use super::selector::Selector;
use super::serve::Call;
use super::{ApiServer, Cause, Status};

/// Where the next page begins. Clients hand it back as it is.
#[derive(Serialize, Deserialize)]
struct Continue {
    /// Version of the first page, which all pages show.
    version: u64,
    /// The last object of the page before.
    after: ObjectKey,
}

impl ApiServer {
    /// The selector of a request.
    pub(super) fn selector(&self, call: &Call<'_>, facts: &KindFacts) -> Result<Selector, Status> {
        let (labels, fields) = (call.query.get("labelSelector"), call.query.get("fieldSelector"));
        Selector::parse(labels, fields, facts, self.selectable_fields(facts))
    }

    /// A list, or a page of it.
    pub(super) fn list(
        &self,
        call: &Call<'_>,
        facts: &KindFacts,
        namespace: Option<&str>,
    ) -> Result<Answer, Status> {
        let selector = self.selector(call, facts)?;
        let limit = call.query.number("limit")?.unwrap_or(0);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let from = call.query.get("continue").map(parse_continue).transpose()?;
        let version = self.list_version(call, from.as_ref())?;
        let (group, kind) = (facts.gvk.group.as_str(), facts.gvk.kind.as_str());
        let all = self.store.list_at(group, kind, namespace, version).map_err(|compacted| {
            Status::expired(match from {
                Some(_) => "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.".to_owned(),
                None => compacted.to_string(),
            })
        })?;
        let mut selected = all.into_iter().filter(|(key, object)| {
            from.as_ref().is_none_or(|from| *key > from.after) && selector.matches(object)
        });
        let mut list = List { version, ..List::default() };
        let mut last_key = None;
        while limit == 0 || list.items.len() < limit {
            let Some((key, object)) = selected.next() else { break };
            list.items.push(object);
            last_key = Some(key);
        }
        let rest = selected.count();
        if rest > 0
            && let Some(after) = last_key
        {
            list.proceed = Some(write_continue(&Continue { version, after }));
            // With a selector a real server does not count.
            list.remaining = selector.is_everything().then_some(rest);
        }
        Ok(Answer::list(facts, list))
    }

    /// The version that a list shows.
    fn list_version(&self, call: &Call<'_>, from: Option<&Continue>) -> Result<u64, Status> {
        let current = self.store.version();
        let asked = call.query.get("resourceVersion");
        if let Some(from) = from {
            return match asked {
                None | Some("0") => Ok(from.version.min(current)),
                Some(_) => {
                    Err(Status::bad_request("specifying resource version is not allowed when using continue"))
                }
            };
        }
        let asked = asked.map(parse_version).transpose()?;
        match (call.query.get("resourceVersionMatch"), asked) {
            (None, None | Some(0)) | (Some("NotOlderThan"), Some(0)) => Ok(current),
            (Some(_), None) => {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                Err(Status::options("ListOptions", Cause::forbidden("resourceVersionMatch", detail)))
            }
            (_, Some(asked)) if asked > current => Err(too_large(asked, current)),
            (Some("Exact"), Some(0)) => {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                Err(Status::options("ListOptions", Cause::forbidden("resourceVersionMatch", detail)))
            }
            (Some("Exact"), Some(asked)) => Ok(asked),
            (None | Some("NotOlderThan"), Some(_)) => Ok(current),
            (Some(other), _) => {
                let cause =
                    Cause::unsupported("resourceVersionMatch", &json!(other), &["Exact", "NotOlderThan", ""]);
                Err(Status::options("ListOptions", cause))
            }
        }
    }
}

/// A version is a number that clients hand back as they got it.
pub(super) fn parse_version(text: &str) -> Result<u64, Status> {
    text.parse().map_err(|_| Status::bad_request(format!("invalid resource version: {text:?}")))
}

/// The version lies in the future of this server.
pub(super) fn too_large(asked: u64, current: u64) -> Status {
    Status::timeout(format!("Too large resource version: {asked}, current: {current}"))
}

fn parse_continue(token: &str) -> Result<Continue, Status> {
    let invalid = || Status::bad_request("continue key is not valid");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid())?;
    serde_json::from_slice(&bytes).map_err(|_| invalid())
}

fn write_continue(from: &Continue) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(from).unwrap_or_default())
}
