//! Pods from their beginning to their end, and what becomes of what they belong to.

use scantling_api::ObjectKey;
use scantling_registry_server::RegistryServer;
use serde_json::{Value, json};

use super::{R, described, field, image, pod, pod_key, push, status, world_of};
use crate::api::Propagation;
use crate::value::{condition, int, list, text};
use crate::{Flavour, World};

fn world(nodes: usize) -> World {
    let mut registry = RegistryServer::new();
    push(&mut registry, "app", "1", &image("content"));
    world_of(Flavour::Kubernetes, nodes, registry)
}

fn running(name: &str, command: &[&str], policy: &str) -> Value {
    let mut object = pod(name, &format!("{R}/app:1"), "IfNotPresent");
    object["spec"]["containers"][0]["command"] = json!(command);
    object["spec"]["restartPolicy"] = json!(policy);
    object
}

#[test]
fn a_pod_goes_from_pending_to_running() {
    let mut world = world(2);
    world.put(pod("p", &format!("{R}/app:1"), "IfNotPresent"));
    world.pass(5);
    let object = world.pod("p");
    assert_eq!(text(&object, "/status/phase"), Some("Running"), "{}", world.story());
    for kind in ["PodScheduled", "Initialized", "ContainersReady", "Ready", "PodReadyToStartContainers"] {
        assert_eq!(condition(&object, kind), Some("True"), "{kind}");
    }
    assert!(text(&object, "/status/podIP").is_some());
    assert_eq!(world.events_of("p", &["Created", "Started"]), ["Container created", "Container started"]);
    assert_eq!(world.events_of("p", &["Scheduled"]), ["Successfully assigned default/p to node-1"]);
}

#[test]
fn restart_policies() {
    for (command, policy, phase, restarts) in [
        (&["true"][..], "Never", "Succeeded", 0),
        (&["false"], "Never", "Failed", 0),
        (&["true"], "OnFailure", "Succeeded", 0),
        (&["false"], "OnFailure", "Running", 3),
        (&["true"], "Always", "Running", 3),
        (&["serve"], "Always", "Running", 0),
    ] {
        let mut world = world(1);
        world.put(running("p", command, policy));
        world.pass(50);
        let object = world.pod("p");
        assert_eq!(text(&object, "/status/phase"), Some(phase), "{command:?} {policy}\n{}", world.story());
        assert_eq!(int(&status(&object), "/restartCount"), Some(restarts), "{command:?} {policy}");
        if restarts > 0 {
            assert_eq!(field(&object, "/state/waiting/reason"), "CrashLoopBackOff");
        }
    }
}

#[test]
fn init_containers_run_in_order_and_sidecars_stay() {
    let mut world = world(1);
    let mut object = running("p", &["serve"], "Always");
    let image = format!("{R}/app:1");
    object["spec"]["initContainers"] = json!([
        {"name": "one", "image": image, "command": ["sleep", "3"]},
        {"name": "side", "image": image, "restartPolicy": "Always", "command": ["serve"]},
        {"name": "two", "image": image, "command": ["sleep", "3"]},
    ]);
    world.put(object);
    world.pass(3);
    assert_eq!(condition(&world.pod("p"), "Initialized"), Some("False"), "{}", world.story());
    assert_eq!(text(&world.pod("p"), "/status/phase"), Some("Pending"));
    world.pass(10);
    let object = world.pod("p");
    assert_eq!(text(&object, "/status/phase"), Some("Running"), "{}", world.story());
    let states: Vec<(&str, bool)> = list(&object, "/status/initContainerStatuses")
        .iter()
        .map(|status| (text(status, "/name").unwrap(), status.pointer("/state/running").is_some()))
        .collect();
    assert_eq!(states, [("one", false), ("side", true), ("two", false)]);
    assert_eq!(condition(&object, "Ready"), Some("True"));
}

#[test]
fn a_failed_init_container_holds_the_pod_or_fails_it() {
    for (policy, phase) in [("Never", "Failed"), ("Always", "Pending")] {
        let mut world = world(1);
        let mut object = running("p", &["serve"], policy);
        object["spec"]["initContainers"] =
            json!([{"name": "one", "image": format!("{R}/app:1"), "command": ["false"]}]);
        world.put(object);
        world.pass(8);
        assert_eq!(text(&world.pod("p"), "/status/phase"), Some(phase), "{}", world.story());
        assert!(world.events_of("p", &["Started"]).iter().all(|message| message == "Container started"));
    }
}

#[test]
fn a_deleted_pod_stops_within_its_grace_period() {
    for (ignores, least, most) in [("false", 0, 2), ("true", 29, 32)] {
        let mut registry = RegistryServer::new();
        let stubborn = described(&json!({
            "layers": [{"files": {"/a": "b"}}], "labels": {"scantling.dev/sandbox-ignores-stop": ignores},
        }));
        push(&mut registry, "app", "1", &stubborn);
        let mut world = world_of(Flavour::Kubernetes, 1, registry);
        world.put(pod("p", &format!("{R}/app:1"), "IfNotPresent"));
        world.pass(5);
        world.delete_as_user(&pod_key("p"));
        assert!(text(&world.pod("p"), "/metadata/deletionTimestamp").is_some());
        world.pass(least);
        let before = world.object(&pod_key("p")).is_some();
        world.pass(most - least);
        assert!(before && world.object(&pod_key("p")).is_none(), "{ignores}\n{}", world.story());
        assert_eq!(world.events_of("p", &["Killing"]), ["Stopping container main"]);
    }
}

#[test]
fn pods_wait_for_what_they_refer_to() {
    let mut world = world(1);
    let mut object = pod("p", &format!("{R}/app:1"), "IfNotPresent");
    object["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "s"}}]);
    object["spec"]["containers"][0]["env"] =
        json!([{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]);
    world.put(object);
    world.pass(5);
    assert_eq!(
        world.events_of("p", &["FailedMount"]),
        ["MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found"]
    );
    world.put(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}),
    );
    world.pass(5);
    let object = world.pod("p");
    assert_eq!(field(&object, "/state/waiting/reason"), "CreateContainerConfigError", "{}", world.story());
    assert_eq!(field(&object, "/state/waiting/message"), "configmap \"m\" not found");
    world.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}, "data": {"x": ""}}));
    world.pass(5);
    assert_eq!(
        field(&world.pod("p"), "/state/waiting/message"),
        "couldn't find key k in ConfigMap default/m"
    );
    let key = ObjectKey::namespaced("", "ConfigMap", "default", "m");
    world.change("user", &key, |map| map["data"] = json!({"k": "v"}));
    world.pass(5);
    assert_eq!(text(&world.pod("p"), "/status/phase"), Some("Running"), "{}", world.story());
}

#[test]
fn pods_spread_and_wait_for_room() {
    let mut world = world(2);
    for name in ["a", "b", "c", "d"] {
        let mut object = pod(name, &format!("{R}/app:1"), "IfNotPresent");
        object["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "6"}});
        world.put(object);
    }
    let mut fifth = pod("e", &format!("{R}/app:1"), "IfNotPresent");
    fifth["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "6"}});
    world.pass(3);
    world.put(fifth);
    world.pass(3);
    let mut nodes: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| text(&world.pod(name), "/spec/nodeName").unwrap_or_default().to_owned())
        .collect();
    nodes.sort();
    assert_eq!(nodes, ["node-1", "node-1", "node-2", "node-2"]);
    let events = world.events_of("e", &["FailedScheduling"]);
    assert!(events[0].starts_with("0/2 nodes are available: 2 Insufficient cpu."), "{events:?}");
    world.delete_as_user(&pod_key("a"));
    world.pass(5);
    assert_eq!(text(&world.pod("e"), "/status/phase"), Some("Running"), "{}", world.story());
}

#[test]
fn cordons_and_node_selectors_are_heeded() {
    let mut world = world(2);
    let node = ObjectKey::cluster("", "Node", "node-1");
    world.change("user", &node, |node| node["spec"]["unschedulable"] = json!(true));
    world.put(pod("a", &format!("{R}/app:1"), "IfNotPresent"));
    let mut object = pod("b", &format!("{R}/app:1"), "IfNotPresent");
    object["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "node-1"});
    world.put(object);
    world.pass(3);
    assert_eq!(text(&world.pod("a"), "/spec/nodeName"), Some("node-2"));
    assert_eq!(condition(&world.pod("b"), "PodScheduled"), Some("False"));
    world.change("user", &node, |node| {
        node["spec"].as_object_mut().unwrap().remove("unschedulable");
    });
    world.pass(3);
    assert_eq!(text(&world.pod("b"), "/status/phase"), Some("Running"), "{}", world.story());
}

#[test]
fn a_silent_node_loses_its_pods_after_five_minutes() {
    let mut world = world(2);
    world.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "main", "image": format!("{R}/app:1")}]},
            },
        },
    }));
    world.pass(10);
    world.set_node_up("node-1", false).unwrap();
    world.pass(60);
    let node = world.object(&ObjectKey::cluster("", "Node", "node-1")).unwrap();
    assert_eq!(condition(node, "Ready"), Some("Unknown"));
    world.pass(400);
    let on_second = world
        .list("", "Pod", Some("default"))
        .iter()
        .filter(|(_, pod)| text(pod, "/spec/nodeName") == Some("node-2"))
        .count();
    assert_eq!(on_second, 2, "{}", world.story());
    world.set_node_up("node-1", true).unwrap();
    world.pass(60);
    assert_eq!(world.pod_names().len(), 2, "{}", world.story());
    let node = world.object(&ObjectKey::cluster("", "Node", "node-1")).unwrap();
    assert_eq!(condition(node, "Ready"), Some("True"));
    assert!(list(node, "/spec/taints").is_empty());
}

fn owned_map(name: &str, owner: &Value) -> Value {
    let mut reference = crate::value::controller_reference(owner);
    reference["kind"] = json!("ConfigMap");
    reference["apiVersion"] = json!("v1");
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [reference]},
    })
}

#[test]
fn the_collector_deletes_what_was_owned_as_it_was_told() {
    for (propagation, owner_left_at_once, children_left) in [
        (Some(Propagation::Background), false, false),
        (Some(Propagation::Foreground), true, false),
        (Some(Propagation::Orphan), true, true),
    ] {
        let mut world = world(0);
        let owner = world.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "default"}}));
        let child = world.put(owned_map("child", &owner));
        world.put(owned_map("grandchild", &child));
        let key = |name: &str| ObjectKey::namespaced("", "ConfigMap", "default", name);
        world.pass(1);
        world.delete("user", &key("owner"), propagation);
        assert_eq!(world.object(&key("owner")).is_some(), owner_left_at_once, "{propagation:?}");
        world.pass(5);
        assert!(world.object(&key("owner")).is_none(), "{propagation:?}\n{}", world.story());
        for name in ["child", "grandchild"] {
            assert_eq!(
                world.object(&key(name)).is_some(),
                children_left,
                "{propagation:?} {name}\n{}",
                world.story()
            );
        }
    }
}

#[test]
fn namespaces_get_their_defaults_and_go_with_everything_in_them() {
    let mut world = world(1);
    world.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}));
    world.pass(1);
    assert!(world.object(&ObjectKey::namespaced("", "ServiceAccount", "team", "default")).is_some());
    let mut object = pod("p", &format!("{R}/app:1"), "IfNotPresent");
    object["metadata"]["namespace"] = json!("team");
    world.put(object);
    world.pass(5);
    world.delete_as_user(&ObjectKey::cluster("", "Namespace", "team"));
    world.pass(30);
    assert!(world.object(&ObjectKey::cluster("", "Namespace", "team")).is_none(), "{}", world.story());
    assert!(world.objects().all(|(key, _)| key.namespace.as_deref() != Some("team")));
}

#[test]
fn claims_are_bound_and_pods_wait_for_them() {
    let mut world = world(1);
    let mut object = pod("p", &format!("{R}/app:1"), "IfNotPresent");
    object["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    world.put(object);
    world.pass(3);
    assert_eq!(text(&world.pod("p"), "/status/phase").unwrap_or("Pending"), "Pending");
    world.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }));
    world.pass(5);
    assert_eq!(text(&world.pod("p"), "/status/phase"), Some("Running"), "{}", world.story());
    let claim = ObjectKey::namespaced("", "PersistentVolumeClaim", "default", "c");
    assert_eq!(text(world.object(&claim).unwrap(), "/status/phase"), Some("Bound"));
}
