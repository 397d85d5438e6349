//! The workload controllers.

use scantling_api::ObjectKey;
use scantling_registry_server::RegistryServer;
use serde_json::{Value, json};

use super::{R, described, image, push, world_of};
use crate::value::{condition, int, list, pod_ready, text};
use crate::{Flavour, World};

fn world(nodes: usize) -> World {
    let mut registry = RegistryServer::new();
    push(&mut registry, "app", "1", &image("one"));
    push(&mut registry, "app", "2", &image("two"));
    let never = described(&json!({
        "layers": [{"files": {"/a": "b"}}], "labels": {"scantling.dev/sandbox-ready-after": "never"},
    }));
    push(&mut registry, "app", "never", &never);
    world_of(Flavour::Kubernetes, nodes, registry)
}

fn template(tag: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{
            "name": "main", "image": format!("{R}/app:{tag}"), "readinessProbe": {"httpGet": {"port": 80}},
        }]},
    })
}

fn workload(kind: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template("1")},
    });
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

fn key(kind: &str) -> ObjectKey {
    ObjectKey::namespaced("apps", kind, "default", "d")
}

/// Tags of the pods' images, sorted; only of pods that are ready.
fn ready_tags(world: &World) -> Vec<String> {
    let mut tags: Vec<String> = world
        .list("", "Pod", Some("default"))
        .iter()
        .filter(|(_, pod)| pod_ready(pod) && !crate::value::deleting(pod))
        .map(|(_, pod)| {
            let image = text(pod, "/spec/containers/0/image").unwrap();
            image.rsplit(':').next().unwrap().to_owned()
        })
        .collect();
    tags.sort();
    tags
}

fn set_tag(world: &mut World, kind: &str, tag: &str) {
    world.change("user", &key(kind), |object| object["spec"]["template"] = template(tag));
}

#[test]
fn a_rolling_update_keeps_its_pods_available() {
    let mut world = world(2);
    world.put(workload(
        "Deployment",
        &json!({"replicas": 4, "strategy": {"type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}),
    ));
    world.pass(20);
    assert_eq!(ready_tags(&world), ["1"; 4], "{}", world.story());
    let deployment = world.object(&key("Deployment")).unwrap();
    assert_eq!(condition(deployment, "Available"), Some("True"));
    assert_eq!(condition(deployment, "Progressing"), Some("True"));
    assert_eq!(int(deployment, "/status/availableReplicas"), Some(4));
    set_tag(&mut world, "Deployment", "2");
    let end = world.now().plus_millis(60_000);
    while world.now() < end {
        let next = world.now().plus_millis(100);
        world.run_until(next);
        let ready = ready_tags(&world).len();
        assert!(ready >= 3, "{ready} ready\n{}", world.story());
        assert!(
            world
                .list("", "Pod", Some("default"))
                .iter()
                .filter(|(_, pod)| !crate::value::deleting(pod))
                .count()
                <= 5
        );
    }
    assert_eq!(ready_tags(&world), ["2"; 4]);
    let deployment = world.object(&key("Deployment")).unwrap();
    assert_eq!(int(deployment, "/status/updatedReplicas"), Some(4));
    let reason = list(deployment, "/status/conditions")
        .iter()
        .find(|c| text(c, "/type") == Some("Progressing"))
        .unwrap();
    assert_eq!(text(reason, "/reason"), Some("NewReplicaSetAvailable"));
    assert_eq!(
        deployment.pointer("/metadata/annotations/deployment.kubernetes.io~1revision"),
        Some(&json!("2"))
    );
    // Back: the first replica set is used again.
    set_tag(&mut world, "Deployment", "1");
    world.pass(60);
    assert_eq!(ready_tags(&world), ["1"; 4]);
    assert_eq!(world.list("apps", "ReplicaSet", Some("default")).len(), 2);
}

#[test]
fn a_rollout_that_never_gets_ready_keeps_the_old_pods_and_says_so() {
    let mut world = world(1);
    world.put(workload(
        "Deployment",
        &json!({"replicas": 2, "progressDeadlineSeconds": 60,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}),
    ));
    world.pass(20);
    set_tag(&mut world, "Deployment", "never");
    world.pass(120);
    assert_eq!(ready_tags(&world), ["1"; 2], "{}", world.story());
    let deployment = world.object(&key("Deployment")).unwrap();
    let progressing = list(deployment, "/status/conditions")
        .iter()
        .find(|c| text(c, "/type") == Some("Progressing"))
        .unwrap();
    assert_eq!(text(progressing, "/reason"), Some("ProgressDeadlineExceeded"), "{progressing}");
    assert_eq!(condition(deployment, "Available"), Some("True"));
}

#[test]
fn recreate_has_a_gap_and_no_mixture() {
    let mut world = world(1);
    world.put(workload("Deployment", &json!({"replicas": 2, "strategy": {"type": "Recreate"}})));
    world.pass(20);
    set_tag(&mut world, "Deployment", "2");
    let mut gap = false;
    for _ in 0..300 {
        let next = world.now().plus_millis(100);
        world.run_until(next);
        let tags = ready_tags(&world);
        gap |= tags.is_empty();
        assert!(tags.windows(2).all(|pair| pair[0] == pair[1]), "{tags:?}");
    }
    assert!(gap);
    assert_eq!(ready_tags(&world), ["2"; 2], "{}", world.story());
}

#[test]
fn scaling_and_deleting_a_deployment() {
    let mut world = world(1);
    world.put(workload("Deployment", &json!({"replicas": 1})));
    world.pass(10);
    for replicas in [3, 0, 2] {
        world.change("user", &key("Deployment"), |object| object["spec"]["replicas"] = json!(replicas));
        world.pass(15);
        assert_eq!(ready_tags(&world).len(), replicas, "{}", world.story());
    }
    world.delete_as_user(&key("Deployment"));
    world.pass(15);
    assert!(world.pod_names().is_empty(), "{}", world.story());
    assert!(world.list("apps", "ReplicaSet", None).is_empty());
}

#[test]
fn a_stateful_set_starts_in_order_and_updates_backwards() {
    for (strategy, updated) in [("RollingUpdate", "2"), ("OnDelete", "1")] {
        let mut world = world(1);
        world.put(workload(
            "StatefulSet",
            &json!({"replicas": 3, "serviceName": "d",
            "updateStrategy": {"type": strategy},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}),
        ));
        let mut before = Vec::new();
        while world.pod_names().len() < 3 {
            let names = world.pod_names();
            if names != before && names.len() > 1 {
                let older = world.pod(&format!("d-{}", names.len() - 2));
                assert!(pod_ready(&older), "{}", world.story());
            }
            before = names;
            let next = world.now().plus_millis(100);
            world.run_until(next);
        }
        world.pass(20);
        assert_eq!(world.pod_names(), ["d-0", "d-1", "d-2"], "{}", world.story());
        assert_eq!(ready_tags(&world), ["1"; 3], "{}", world.story());
        set_tag(&mut world, "StatefulSet", "2");
        world.pass(40);
        assert_eq!(ready_tags(&world), [updated; 3], "{}", world.story());
        // With OnDelete whatever deletes a pod, a drain for example, upgrades it.
        world.delete_as_user(&super::pod_key("d-1"));
        world.pass(10);
        let image = world.pod("d-1");
        assert!(text(&image, "/spec/containers/0/image").unwrap().ends_with(":2"));
        assert_eq!(world.list("", "PersistentVolumeClaim", Some("default")).len(), 3);
    }
}

#[test]
fn a_daemon_set_has_a_pod_on_every_node() {
    let mut world = world(3);
    let node = ObjectKey::cluster("", "Node", "node-2");
    world.change("user", &node, |node| {
        node["spec"]["taints"] = json!([{"key": "gpu", "effect": "NoSchedule"}]);
    });
    world.put(workload("DaemonSet", &json!({})));
    world.pass(10);
    let nodes = |world: &World| {
        let mut nodes: Vec<String> = world
            .list("", "Pod", Some("default"))
            .iter()
            .filter_map(|(_, pod)| text(pod, "/spec/nodeName").map(str::to_owned))
            .collect();
        nodes.sort();
        nodes
    };
    assert_eq!(nodes(&world), ["node-1", "node-3"], "{}", world.story());
    world.change("user", &node, |node| node["spec"]["taints"] = json!([]));
    world.pass(10);
    assert_eq!(nodes(&world), ["node-1", "node-2", "node-3"]);
    set_tag(&mut world, "DaemonSet", "2");
    world.pass(40);
    assert_eq!(ready_tags(&world), ["2"; 3], "{}", world.story());
    assert_eq!(int(world.object(&key("DaemonSet")).unwrap(), "/status/updatedNumberScheduled"), Some(3));
}

#[test]
fn jobs_end_well_or_after_too_many_failures() {
    for (command, limit, condition_type, pods) in [("true", 2, "Complete", 2), ("false", 1, "Failed", 2)] {
        let mut world = world(1);
        world.put(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"},
            "spec": {
                "completions": if command == "true" { 2 } else { 1 }, "parallelism": 1, "backoffLimit": limit,
                "template": {"spec": {"restartPolicy": "Never", "containers": [
                    {"name": "main", "image": format!("{R}/app:1"), "command": [command]}]}},
            },
        }));
        world.pass(120);
        let job = ObjectKey::namespaced("batch", "Job", "default", "j");
        let job = world.object(&job).unwrap();
        assert_eq!(condition(job, condition_type), Some("True"), "{command}\n{}", world.story());
        assert_eq!(world.pod_names().len(), pods, "{command}\n{}", world.story());
    }
}

#[test]
fn a_service_has_the_ready_pods_behind_it() {
    let mut world = world(1);
    world.put(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default"},
        "spec": {"selector": {"app": "d"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }));
    world.put(workload("Deployment", &json!({"replicas": 2})));
    world.pass(15);
    let slice = ObjectKey::namespaced("discovery.k8s.io", "EndpointSlice", "default", "s");
    let slice = world.object(&slice).unwrap();
    assert_eq!(list(slice, "/endpoints").len(), 2, "{slice}");
    assert_eq!(slice.pointer("/ports/0/port"), Some(&json!(8080)));
}
