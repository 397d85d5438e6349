//! Server-side apply.

use serde_json::Value;

use crate::error::MergeError;
use crate::last_applied;
use crate::managers::{Managers, entries, seconds, strip};
use crate::normalize::normalize;
use crate::ownership::Ownership;
use crate::request::{Request, Store, split};
use crate::update::{bounded, empty};

/// Manager that is recorded as owner of what a live object without any entries has before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies `body` on behalf of `request.manager`.
///
/// Gives the whole new object at the version of the request, with its `managedFields`. Without `live` the
/// object is created. With `force`, fields that others own with another value are taken over; without it
/// they are conflicts.
pub fn apply(
    request: &Request<'_>,
    live: Option<&Value>,
    body: &Value,
    force: bool,
) -> Result<Value, MergeError> {
    bounded("the applied object", body)?;
    check_kind(request, body)?;
    let now = seconds(request.now)
        .ok_or_else(|| MergeError::Refused(format!("`{}` is no RFC 3339 time", request.now)))?;
    let before = live.map(|live| request.convert(live));
    let managers = before.as_ref().map_or_else(|| Ok(Managers::default()), Managers::of);
    let managers = managers.map_err(MergeError::Ownership)?;
    let mut state = before.clone().unwrap_or_else(|| empty(request));
    strip(&mut state);

    let ownership = Ownership::new(request);
    let applied = attempt(request, &ownership, &state, body, &managers, force, now);
    let (object, managers) = match applied {
        Err(MergeError::Conflicts(conflicts)) if request.manager == last_applied::KUBECTL => {
            match last_applied::unchanged(request, &state) {
                None => Err(MergeError::Conflicts(conflicts)),
                Some(unchanged) => {
                    let rest: Vec<_> =
                        conflicts.into_iter().filter(|c| !unchanged.contains(&c.field)).collect();
                    if rest.is_empty() {
                        attempt(request, &ownership, &state, body, &managers, true, now)
                    } else {
                        Err(MergeError::Conflicts(rest))
                    }
                }
            }
        }
        other => other,
    }?;
    let mut object = object.unwrap_or(state);
    if request.store == Store::Typed {
        // Even what is given back below has passed through the server's type.
        normalize(request.schema, &request.root(), &mut object)
            .map_err(|misfit| MergeError::Invalid { what: "the merged object", misfit })?;
    }
    if request.manager == last_applied::KUBECTL {
        last_applied::refresh(&mut object, body);
    }
    finish(request, &mut object, before.as_ref())?;
    managers.encode_into(&mut object);
    Ok(object)
}

/// One try; the first apply to an untracked object first records what is there.
fn attempt(
    request: &Request<'_>,
    ownership: &Ownership<'_>,
    live: &Value,
    body: &Value,
    managers: &Managers,
    force: bool,
    now: i64,
) -> Result<(Option<Value>, Managers), MergeError> {
    let mut managers = managers.clone();
    if managers.is_empty() {
        managers = ownership.update(&empty(request), live, managers, BEFORE_FIRST_APPLY, now)?;
    }
    if entries(body).is_some() {
        return Err(MergeError::Refused(
            "metadata.managedFields must not be in an applied object; leave it out".to_owned(),
        ));
    }
    ownership.apply(live, body, managers, force, now)
}

fn check_kind(request: &Request<'_>, body: &Value) -> Result<(), MergeError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or("");
    let (version, kind) = (text("apiVersion"), text("kind"));
    if split(version) == split(request.api_version) && kind == request.kind {
        return Ok(());
    }
    Err(MergeError::Refused(format!(
        "the applied object is {version:?} {kind:?}, but the request is for {} {}",
        request.api_version, request.kind
    )))
}

/// What the server does with the object of a write before it keeps it.
pub(crate) fn finish(
    request: &Request<'_>,
    object: &mut Value,
    live: Option<&Value>,
) -> Result<(), MergeError> {
    request.reset(object, live);
    if request.store == Store::Typed {
        normalize(request.schema, &request.root(), object)
            .map_err(|misfit| MergeError::Invalid { what: "the new object", misfit })?;
    }
    Ok(())
}
