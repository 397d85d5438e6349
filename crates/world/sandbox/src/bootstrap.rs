//! What a cluster has before anyone comes: namespaces, nodes, a storage class, the API's own service.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::controllers::volume::DEFAULT_CLASS;
use crate::node::object;
use crate::world::{Flavour, World};

const ACTOR: &str = "bootstrap";
/// The namespace of OpenShift's registry.
const REGISTRY_NAMESPACE: &str = "openshift-image-registry";

/// Makes it all.
pub(crate) fn fill(world: &mut World) {
    let mut namespaces = vec!["default", "kube-system", "kube-public", "kube-node-lease"];
    if world.flavour() == Flavour::OpenShift {
        namespaces.extend(["openshift", REGISTRY_NAMESPACE]);
    }
    for namespace in namespaces {
        put(world, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        world.change_status(ACTOR, &ObjectKey::cluster("", "Namespace", namespace), |object| {
            crate::value::set(object, &["status"], "phase", json!("Active"));
        });
    }
    put(
        world,
        json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": DEFAULT_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "sandbox.scantling.dev",
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
        }),
    );
    put(
        world,
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": "10.96.0.1",
                "clusterIPs": ["10.96.0.1"],
                "type": "ClusterIP",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
        }),
    );
    let names: Vec<String> = world.nodes.keys().cloned().collect();
    for name in names {
        let Some(node) = world.nodes.remove(&name) else { continue };
        let registration = object::registration(&node, world.flavour());
        put(world, registration);
        object::publish(world, &node, &object::key(&node));
        world.nodes.insert(name, node);
    }
}

/// Creates an object; one that the API refuses shows in the trace.
fn put(world: &mut World, object: Value) {
    let _ = world.create(ACTOR, object);
}
