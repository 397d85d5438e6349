//! Create, update and the result of a patch: ownership follows what changed.

use serde_json::Value;

use crate::apply::finish;
use crate::error::MergeError;
use crate::managers::{Managers, entries, is_reset, seconds, strip};
use crate::normalize::{as_held, normalize};
use crate::ownership::Ownership;
use crate::path::MAX_DEPTH;
use crate::request::{Request, Store};
use crate::validate::Misfit;
use crate::value::nests_deeper;

/// Tracks a write of the whole object `new`, and gives the object that is kept, with its `managedFields`.
///
/// Without `live` this is a create. Ownership that `new` carries replaces the live ownership, unless it is
/// absent or unreadable, or the write goes to a subresource; an empty list, or a list with one empty entry,
/// resets it. An update of a live object (one with a `uid`) without any ownership stays untracked. An
/// object that cannot be tracked because it does not fit its type is kept without ownership, as servers do.
pub fn update(request: &Request<'_>, live: Option<&Value>, new: &Value) -> Result<Value, MergeError> {
    bounded("the new object", new)?;
    if !new.is_object() {
        return Err(MergeError::Refused("the new object is not a JSON object".to_owned()));
    }
    let now = seconds(request.now)
        .ok_or_else(|| MergeError::Refused(format!("`{}` is no RFC 3339 time", request.now)))?;
    let before = live.map(|live| request.convert(live));
    let mut object = request.convert(new);
    if request.store == Store::Typed {
        // A server reads the body into its own type before anything else.
        as_held(request.schema, &request.root(), &mut object).map_err(|misfit| {
            MergeError::Refused(format!("the new object does not fit its type: {misfit}"))
        })?;
    }
    let managers = recorded(request, before.as_ref(), new);
    strip(&mut object);
    let mut state = before.clone().unwrap_or_else(|| empty(request));
    strip(&mut state);
    let tracked = if managers.is_empty() && has_uid(&state) {
        Managers::default()
    } else {
        Ownership::new(request).update(&state, &object, managers, request.manager, now).unwrap_or_default()
    };
    finish(request, &mut object, before.as_ref())?;
    tracked.encode_into(&mut object);
    Ok(object)
}

/// The ownership an update starts from.
fn recorded(request: &Request<'_>, live: Option<&Value>, new: &Value) -> Managers {
    let of_live = || live.map(Managers::of).and_then(Result::ok).unwrap_or_default();
    if request.subresource.is_some() {
        return of_live();
    }
    match entries(new) {
        Some(entries) if is_reset(&entries) => Managers::default(),
        Some(entries) => match Managers::decode(&entries) {
            Ok(managers) if !managers.is_empty() => managers,
            _ => of_live(),
        },
        None => of_live(),
    }
}

fn has_uid(object: &Value) -> bool {
    object.pointer("/metadata/uid").and_then(Value::as_str).is_some_and(|uid| !uid.is_empty())
}

/// The object before it exists, as the server's type has it.
pub(crate) fn empty(request: &Request<'_>) -> Value {
    let mut object = request.identity();
    if request.store == Store::Typed && normalize(request.schema, &request.root(), &mut object).is_err() {
        return request.identity();
    }
    object
}

/// Refuses objects that nest too deep to be walked.
pub(crate) fn bounded(what: &'static str, object: &Value) -> Result<(), MergeError> {
    if nests_deeper(object, MAX_DEPTH) {
        let misfit = Misfit { path: String::new(), problem: format!("nests deeper than {MAX_DEPTH} levels") };
        return Err(MergeError::Invalid { what, misfit });
    }
    Ok(())
}
