//! Workloads under random trouble: whatever happened, when it is over they come to rest as declared.

use proptest::prelude::*;
use scantling_api::ObjectKey;
use scantling_registry_server::{Effect, Fault, RegistryServer, Requests};
use serde_json::{Value, json};

use super::{R, image, push, world_of};
use crate::value::{int, pod_ready, text};
use crate::{Flavour, World};

#[derive(Debug, Clone)]
enum Trouble {
    /// A template's tag.
    Tag(usize, usize),
    /// A number of replicas.
    Scale(usize, i64),
    /// One of the pods is deleted, with or without its grace period.
    Kill(usize, bool),
    /// One of the containers ends.
    Crash(usize),
    /// A node goes or comes.
    Node(usize, bool),
    /// A node is cordoned or not.
    Cordon(usize, bool),
    /// The registry goes or comes.
    Outage(bool),
    /// Time passes, in seconds.
    Wait(u64),
}

fn troubles() -> impl Strategy<Value = Vec<Trouble>> {
    let trouble = prop_oneof![
        3 => (0..3_usize, 1..4_usize).prop_map(|(kind, tag)| Trouble::Tag(kind, tag)),
        2 => (0..2_usize, 0..5_i64).prop_map(|(kind, replicas)| Trouble::Scale(kind, replicas)),
        2 => (0..20_usize, any::<bool>()).prop_map(|(which, at_once)| Trouble::Kill(which, at_once)),
        2 => (0..20_usize).prop_map(Trouble::Crash),
        1 => (1..4_usize, any::<bool>()).prop_map(|(node, up)| Trouble::Node(node, up)),
        1 => (1..4_usize, any::<bool>()).prop_map(|(node, on)| Trouble::Cordon(node, on)),
        1 => any::<bool>().prop_map(Trouble::Outage),
        4 => prop_oneof![Just(0_u64), 1..5_u64, Just(60_u64), Just(400_u64)].prop_map(Trouble::Wait),
    ];
    proptest::collection::vec(trouble, 1..20)
}

const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

fn key(kind: &str) -> ObjectKey {
    ObjectKey::namespaced("apps", kind, "default", kind.to_lowercase())
}

fn template(kind: &str, tag: usize) -> Value {
    json!({
        "metadata": {"labels": {"app": kind}},
        "spec": {"terminationGracePeriodSeconds": 10, "containers": [
            {"name": "main", "image": format!("{R}/app:{tag}"), "readinessProbe": {"httpGet": {"port": 80}}}]},
    })
}

fn start() -> World {
    let mut registry = RegistryServer::new();
    for tag in 1..4 {
        push(&mut registry, "app", &tag.to_string(), &image(&format!("content {tag}")));
    }
    let mut world = world_of(Flavour::Kubernetes, 3, registry);
    world.pass(1);
    for kind in KINDS {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": kind.to_lowercase(), "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": kind}}, "template": template(kind, 1)},
        });
        if kind != "DaemonSet" {
            object["spec"]["replicas"] = json!(2);
        }
        world.put(object);
    }
    world
}

fn pods(world: &World) -> Vec<(ObjectKey, Value)> {
    world.list("", "Pod", Some("default")).into_iter().map(|(key, pod)| (key, pod.clone())).collect()
}

fn act(world: &mut World, trouble: &Trouble) {
    match *trouble {
        Trouble::Tag(kind, tag) => {
            let kind = KINDS[kind];
            world.change("user", &key(kind), |object| object["spec"]["template"] = template(kind, tag));
        }
        Trouble::Scale(kind, replicas) => {
            world.change("user", &key(KINDS[kind]), |object| object["spec"]["replicas"] = json!(replicas));
        }
        Trouble::Kill(which, at_once) => {
            let pods = pods(world);
            if let Some((pod, _)) = pods.get(which % pods.len().max(1)) {
                if at_once {
                    world.delete_now("user", pod);
                } else {
                    world.delete_as_user(pod);
                }
            }
        }
        Trouble::Crash(which) => {
            let pods = pods(world);
            if let Some((pod, _)) = pods.get(which % pods.len().max(1)) {
                world.end_container(pod, "main", 1);
            }
        }
        Trouble::Node(node, up) => world.set_node_up(&format!("node-{node}"), up).unwrap(),
        Trouble::Cordon(node, on) => {
            let node = ObjectKey::cluster("", "Node", format!("node-{node}"));
            world.change("user", &node, |node| node["spec"]["unschedulable"] = json!(on));
        }
        Trouble::Outage(on) => {
            world.registry().faults().clear_all();
            if on {
                world.registry().faults().add(Fault {
                    requests: Requests::default(),
                    effect: Effect::Outage,
                    after: 0,
                    times: None,
                });
            }
        }
        Trouble::Wait(seconds) => world.pass(seconds),
    }
}

/// What is not as declared.
fn unrest(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for kind in KINDS {
        let object = world.object(&key(kind)).unwrap();
        let wanted = match kind {
            "DaemonSet" => 3,
            _ => int(object, "/spec/replicas").unwrap(),
        };
        let image = text(object, "/spec/template/spec/containers/0/image").unwrap();
        let own: Vec<(ObjectKey, Value)> = pods(world)
            .into_iter()
            .filter(|(_, pod)| text(pod, "/metadata/labels/app") == Some(kind))
            .collect();
        if i64::try_from(own.len()).unwrap() != wanted {
            found.push(format!("{kind}: {} pods, not {wanted}", own.len()));
        }
        for (key, pod) in own {
            if text(&pod, "/spec/containers/0/image") != Some(image) || !pod_ready(&pod) {
                found.push(format!("{key}: {}", pod["status"]));
            }
        }
        let status = match kind {
            "DaemonSet" => int(object, "/status/updatedNumberScheduled"),
            _ => int(object, "/status/updatedReplicas"),
        };
        if status.unwrap_or(0) != wanted {
            found.push(format!("{kind}: {}", object["status"]));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn workloads_come_to_rest(troubles in troubles()) {
        let mut world = start();
        world.pass(3);
        for trouble in &troubles {
            act(&mut world, trouble);
        }
        for node in 1..4 {
            act(&mut world, &Trouble::Node(node, true));
            act(&mut world, &Trouble::Cordon(node, false));
        }
        act(&mut world, &Trouble::Outage(false));
        world.pass(3600);
        let found = unrest(&world);
        prop_assert!(found.is_empty(), "{found:#?}\n{}", world.story());
        // At rest nothing is written any more, and nothing was put off.
        let before = world.trace().len();
        world.pass(600);
        prop_assert_eq!(world.trace().len(), before, "{}", world.story());
        let put_off = world.trace().iter().any(|event| event.actor == "world");
        prop_assert!(!put_off, "{}", world.story());
        prop_assert_eq!(world.next_event(), None);
    }
}
