//! What tells that the platform is there although no state says so.

use scantling_api::object;
use scantling_cluster::{ClusterError, Served};
use scantling_plan::is_made_by_us;
use serde_json::Value;

use crate::bundle::kept;
use crate::environment::Environment;
use crate::history;
use crate::journal::JOURNAL_NAME;
use crate::state::SYSTEM_NAMESPACE;

/// Kinds of which an uninstall that has ended leaves none that we have created, and every platform has some.
const ALWAYS: [(&str, &str); 2] = [("apps", "Deployment"), ("rbac.authorization.k8s.io", "ClusterRole")];
/// What is named of what was found.
const NAMED: usize = 3;

/// What runs have left in a cluster without a state: bookkeeping, or else objects that we have created. None of it is left
/// by an uninstall that has come to its end.
pub(crate) async fn traces(
    env: &Environment,
    served: &Served,
    maps: &[Value],
) -> Result<Vec<String>, ClusterError> {
    let mut found: Vec<String> =
        kept(maps).iter().map(|version| format!("release {version} is stored")).collect();
    if !history::read(maps).is_empty() {
        found.push("there is a history of runs".to_owned());
    }
    if found.is_empty() && maps.iter().any(|map| object::name(map) == JOURNAL_NAME) {
        found.push("there is the journal of a run".to_owned());
    }
    if !found.is_empty() {
        // An uninstall was killed while the server took its bookkeeping away.
        let namespace = match served.by_kind("", "Namespace") {
            Some(namespaces) => env.cluster.get(namespaces, None, SYSTEM_NAMESPACE).await,
            None => Ok(None),
        };
        let going = matches!(namespace, Ok(Some(it)) if it.pointer("/metadata/deletionTimestamp").is_some());
        return Ok(if going { Vec::new() } else { found });
    }
    for (group, kind) in ALWAYS {
        let Some(resource) = served.by_kind(group, kind) else { continue };
        match env.cluster.list(resource, None, None).await {
            Ok(objects) => {
                let ours = objects.iter().filter(|object| is_made_by_us(object));
                found.extend(ours.filter_map(|it| Some(format!("{} is there", object::key(it).ok()?))));
            }
            // Who may not see them is told of none.
            Err(ClusterError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// What was found, if it was anything.
pub(crate) fn in_words(traces: &[String]) -> Option<String> {
    let named: Vec<&str> = traces.iter().take(NAMED).map(String::as_str).collect();
    match traces.len().saturating_sub(NAMED) {
        _ if named.is_empty() => None,
        0 => Some(named.join(", ")),
        more => Some(format!("{}, and {more} more", named.join(", "))),
    }
}
