//! Endpoint slices: the ready pods behind a service.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::value::{controller_reference, list, map, namespace, nonempty, pod_ready, set, text, uid};
use crate::world::World;

const ACTOR: &str = "endpointslice-controller";
/// Most addresses of one slice.
const MAX_ENDPOINTS: usize = 1000;

/// Looks at one service.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(service) = world.object(key).cloned() else { return };
    let Some(selector) = map(&service, "/spec/selector").filter(|selector| !selector.is_empty()) else {
        return;
    };
    let mut endpoints = Vec::new();
    for (pod_key, pod) in world.list("", "Pod", Some(namespace(&service))) {
        let labels = map(pod, "/metadata/labels");
        let matches =
            selector.iter().all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value));
        let (Some(address), true) = (nonempty(pod, "/status/podIP"), matches) else { continue };
        if matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed")) {
            continue;
        }
        endpoints.push(json!({
            "addresses": [address],
            "conditions": {"ready": pod_ready(pod), "serving": pod_ready(pod), "terminating": crate::value::deleting(pod)},
            "nodeName": text(pod, "/spec/nodeName"),
            "targetRef": {"kind": "Pod", "namespace": namespace(pod), "name": pod_key.name, "uid": uid(pod)},
        }));
        if endpoints.len() == MAX_ENDPOINTS {
            break;
        }
    }
    let ports: Vec<Value> = list(&service, "/spec/ports")
        .iter()
        .map(|port| {
            let target = port.get("targetPort").filter(|target| target.is_i64()).or_else(|| port.get("port"));
            json!({
                "name": text(port, "/name").unwrap_or_default(),
                "port": target,
                "protocol": text(port, "/protocol").unwrap_or("TCP"),
            })
        })
        .collect();
    let slice_key =
        ObjectKey::namespaced("discovery.k8s.io", "EndpointSlice", namespace(&service), &key.name);
    if world.object(&slice_key).is_none() {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": key.name,
                "namespace": namespace(&service),
                "labels": {
                    "kubernetes.io/service-name": key.name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
                "ownerReferences": [controller_reference(&service)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        });
        let _ = world.create(ACTOR, slice);
        return;
    }
    world.change(ACTOR, &slice_key, |slice| {
        set(slice, &[], "endpoints", Value::Array(endpoints));
        set(slice, &[], "ports", Value::Array(ports));
    });
}
