//! Routes: a host for each, admitted by the router.

use scantling_api::ObjectKey;
use serde_json::json;

use crate::value::{deleting, nonempty, set};
use crate::world::World;

const ACTOR: &str = "openshift-router";
/// The domain under which routes without a host are published.
const DOMAIN: &str = "apps.sandbox.example";

/// Looks at one route.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(route) = world.object(key).cloned() else { return };
    if deleting(&route) {
        return;
    }
    let space = key.namespace.clone().unwrap_or_default();
    let host = nonempty(&route, "/spec/host")
        .map_or_else(|| format!("{}-{space}.{DOMAIN}", key.name), ToOwned::to_owned);
    world.change(ACTOR, key, |object| set(object, &["spec"], "host", json!(host)));
    if route.pointer("/status/ingress/0/host").and_then(serde_json::Value::as_str) == Some(host.as_str()) {
        return;
    }
    let stamp = world.stamp_now();
    world.change_status(ACTOR, key, |object| {
        set(
            object,
            &["status"],
            "ingress",
            json!([{
                "host": host,
                "routerName": "default",
                "routerCanonicalHostname": format!("router-default.{DOMAIN}"),
                "wildcardPolicy": "None",
                "conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": stamp}],
            }]),
        );
    });
}
