//! Pulls that fail, wait, are refused, or go another way.

use base64::Engine as _;
use scantling_image::Platform;
use scantling_registry_server::{Access, Account, Effect, Fault, RegistryServer, Requests, Rights, Subject};
use serde_json::json;

use super::{R, described, field, image, pod, pod_key, push, seconds, world_of};
use crate::trace::What;
use crate::value::text;
use crate::{Flavour, NodeConfig, World, WorldConfig};

/// The times, in whole seconds after the first, at which the node began to pull.
fn pull_times(world: &World) -> Vec<u64> {
    let times: Vec<u64> = world
        .trace()
        .iter()
        .filter(|event| matches!(event.what, What::PullStarted { .. }))
        .map(|event| event.time.as_millis() / 1000)
        .collect();
    times.iter().map(|time| time - times[0]).collect()
}

#[test]
fn a_missing_image_is_asked_for_with_growing_waits() {
    let mut registry = RegistryServer::new();
    push(&mut registry, "app", "1", &image("content"));
    let mut world = world_of(Flavour::Kubernetes, 1, registry);
    let written = format!("{R}/app:9");
    world.put(pod("p", &written, "IfNotPresent"));
    world.run_until(seconds(1));
    let object = world.pod("p");
    let error = format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image \"{written}\": failed to resolve reference \"{written}\": {written}: not found"
    );
    assert_eq!(field(&object, "/state/waiting/reason"), "ErrImagePull", "{}", world.story());
    assert_eq!(field(&object, "/state/waiting/message"), error);
    world.run_until(seconds(5));
    let object = world.pod("p");
    assert_eq!(field(&object, "/state/waiting/reason"), "ImagePullBackOff");
    assert_eq!(
        field(&object, "/state/waiting/message"),
        format!("Back-off pulling image \"{written}\": ErrImagePull: {error}")
    );
    world.run_until(seconds(1100));
    let times = pull_times(&world);
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits.iter().map(|wait| wait / 10 * 10).collect::<Vec<_>>(), [10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(
        world
            .events_of("p", &["Pulling", "Failed", "BackOff"])
            .iter()
            .map(String::as_str)
            .collect::<std::collections::BTreeSet<_>>(),
        [
            format!("Back-off pulling image \"{written}\"").as_str(),
            "Error: ErrImagePull",
            "Error: ImagePullBackOff",
            &format!("Failed to pull image \"{written}\": {error}"),
            &format!("Pulling image \"{written}\""),
        ]
        .into()
    );
    // Published at last, it is pulled at the next attempt.
    push(world.registry(), "app", "9", &image("late"));
    world.pass(310);
    assert_eq!(text(&world.pod("p"), "/status/phase"), Some("Running"));
}

#[test]
fn policies_decide_what_a_node_asks_for() {
    // Policy, image on the node before, registry up: what the container's state says.
    for (policy, cached, up, expected) in [
        ("IfNotPresent", true, false, "running"),
        ("IfNotPresent", false, false, "ErrImagePull"),
        ("Always", true, false, "ErrImagePull"),
        ("Always", true, true, "running"),
        ("Never", true, false, "running"),
        ("Never", false, true, "ErrImageNeverPull"),
    ] {
        let mut registry = RegistryServer::new();
        push(&mut registry, "app", "1", &image("content"));
        let mut world = world_of(Flavour::Kubernetes, 1, registry);
        if cached {
            world.preload("node-1", &format!("{R}/app:1")).unwrap();
        }
        if !up {
            world.registry().faults().add(Fault {
                requests: Requests { host: Some(R.to_owned()), ..Requests::default() },
                effect: Effect::Outage,
                after: 0,
                times: None,
            });
        }
        world.put(pod("p", &format!("{R}/app:1"), policy));
        world.run_until(seconds(1));
        let object = world.pod("p");
        let state = match field(&object, "/state/waiting/reason") {
            reason if reason.is_empty() => "running".to_owned(),
            reason => reason,
        };
        assert_eq!(state, expected, "{policy} cached={cached} up={up}\n{}", world.story());
    }
}

#[test]
fn failures_have_the_runtimes_words() {
    let one = image("content");
    let layer = one.platforms[0].layers[0].0.to_string();
    let arm =
        described(&json!({"platforms": ["linux/arm64"], "index": true, "layers": [{"files": {"/a": "b"}}]}));
    let fault = |subject, effect| Fault {
        requests: Requests { subject: Some(subject), ..Requests::default() },
        effect,
        after: 0,
        times: None,
    };
    for (written, fault, contains) in [
        (format!("{R}/arm:1"), None, "no match for platform in manifest: not found"),
        ("nowhere.example/app:1".to_owned(), None, "dial tcp: lookup nowhere.example: no such host"),
        (format!("{R}/app:1"), Some(fault(Subject::Manifest, Effect::Outage)), "connect: connection refused"),
        (
            format!("{R}/app:1"),
            Some(fault(Subject::Manifest, Effect::Status { status: 429, retry_after: None })),
            "429 Too Many Requests",
        ),
        (
            format!("{R}/app:1"),
            Some(Fault {
                requests: Requests { reference: Some(layer.clone()), ..Requests::default() },
                effect: Effect::Missing,
                after: 0,
                times: None,
            }),
            "failed to copy: httpReadSeeker: failed open: content at",
        ),
        (
            format!("{R}/app:1"),
            Some(Fault {
                requests: Requests { reference: Some(layer.clone()), ..Requests::default() },
                effect: Effect::Truncate { bytes: 3 },
                after: 0,
                times: None,
            }),
            "unexpected commit digest",
        ),
    ] {
        let mut registry = RegistryServer::new();
        push(&mut registry, "app", "1", &one);
        push(&mut registry, "arm", "1", &arm);
        if let Some(fault) = fault {
            registry.faults().add(fault);
        }
        let mut world = world_of(Flavour::Kubernetes, 1, registry);
        world.put(pod("p", &written, "IfNotPresent"));
        world.run_until(seconds(1));
        let message = field(&world.pod("p"), "/state/waiting/message");
        assert!(message.contains(contains), "{written}: {message}");
    }
}

#[test]
fn an_outage_in_the_middle_of_a_pull_fails_it() {
    let mut registry = RegistryServer::new();
    push(&mut registry, "app", "1", &image("content"));
    registry.faults().add(Fault {
        requests: Requests::default(),
        effect: Effect::Outage,
        // Manifest HEAD and GET and the config are served.
        after: 3,
        times: Some(1),
    });
    let mut world = world_of(Flavour::Kubernetes, 1, registry);
    world.put(pod("p", &format!("{R}/app:1"), "IfNotPresent"));
    world.run_until(seconds(1));
    assert_eq!(field(&world.pod("p"), "/state/waiting/reason"), "ErrImagePull", "{}", world.story());
    world.pass(15);
    assert_eq!(text(&world.pod("p"), "/status/phase"), Some("Running"));
}

#[test]
fn a_full_disk_fails_the_pull_and_unused_images_are_collected() {
    let noise = |seed: u64| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let text: String = (0..6000).map(|_| rng.alphanumeric()).collect();
        described(&json!({"layers": [{"files": {"/noise": text}}]}))
    };
    let (one, two) = (noise(1), noise(2));
    let mut registry = RegistryServer::new();
    push(&mut registry, "one", "1", &one);
    push(&mut registry, "two", "1", &two);
    let mut config = WorldConfig::new(1, Flavour::Kubernetes);
    let mut node = NodeConfig::new("node-1", Platform::linux_amd64());
    let size = |built: &scantling_contents::BuiltImage| {
        built.blobs.values().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
    };
    node.disk_bytes = size(&one) * 110 / 100;
    config.nodes = vec![node];
    let mut world = World::new(config, registry);
    world.put(pod("a", &format!("{R}/one:1"), "IfNotPresent"));
    world.pass(5);
    assert_eq!(text(&world.pod("a"), "/status/phase"), Some("Running"), "{}", world.story());
    world.put(pod("b", &format!("{R}/two:1"), "IfNotPresent"));
    world.pass(2);
    let message = field(&world.pod("b"), "/state/waiting/message");
    assert!(message.contains("no space left on device"), "{message}");
    // In use, it is not collected; afterwards it is, and the other pod starts.
    world.pass(700);
    assert_eq!(world.node_images("node-1").len(), 1);
    world.delete_as_user(&pod_key("a"));
    world.pass(1000);
    assert_eq!(text(&world.pod("b"), "/status/phase"), Some("Running"), "{}", world.story());
    assert_eq!(world.node_images("node-1").len(), 1);
}

fn secret(name: &str, user: &str, password: &str) -> serde_json::Value {
    let config = json!({"auths": {R: {"username": user, "password": password}}}).to_string();
    let data = base64::engine::general_purpose::STANDARD.encode(config);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": name, "namespace": "default"},
        "data": {".dockerconfigjson": data},
    })
}

fn with_secret(mut pod: serde_json::Value, secret: &str) -> serde_json::Value {
    pod["spec"]["imagePullSecrets"] = json!([{"name": secret}]);
    pod
}

#[test]
fn private_images_need_the_pods_credential_even_when_they_are_on_the_node() {
    for token in [false, true] {
        for (flavour, second) in [(Flavour::Kubernetes, "ErrImagePull"), (Flavour::OpenShift, "")] {
            let accounts =
                || [("anna".to_owned(), Account { password: "right".into(), rights: Rights::Pull })].into();
            let mut registry = RegistryServer::new();
            push(&mut registry, "app", "1", &image("content"));
            let access = if token {
                Access::Token { accounts: accounts(), anonymous_pull: false }
            } else {
                Access::Basic { accounts: accounts() }
            };
            registry.access(R, "", access);
            let mut world = world_of(flavour, 1, registry);
            world.put(secret("good", "anna", "right"));
            world.put(secret("bad", "anna", "wrong"));
            let written = format!("{R}/app:1");
            world.put(pod("none", &written, "IfNotPresent"));
            world.put(with_secret(pod("wrong", &written, "IfNotPresent"), "bad"));
            world.pass(2);
            for name in ["none", "wrong"] {
                let reason = field(&world.pod(name), "/state/waiting/reason");
                assert!(
                    reason == "ErrImagePull" || reason == "ImagePullBackOff",
                    "{name}: {reason}\n{}",
                    world.story()
                );
                world.delete_as_user(&pod_key(name));
            }
            world.put(with_secret(pod("right", &written, "IfNotPresent"), "good"));
            world.pass(2);
            assert_eq!(text(&world.pod("right"), "/status/phase"), Some("Running"), "{}", world.story());
            // The image is on the node now, but another pod's credential brought it.
            world.put(pod("later", &written, "IfNotPresent"));
            world.run_until(world.now().plus_millis(800));
            assert_eq!(
                field(&world.pod("later"), "/state/waiting/reason"),
                second,
                "{flavour:?}\n{}",
                world.story()
            );
            world.put(pod("never", &written, "Never"));
            world.run_until(world.now().plus_millis(800));
            let never = field(&world.pod("never"), "/state/waiting/reason");
            assert_eq!(never.is_empty(), flavour == Flavour::OpenShift, "{never}");
            // A preloaded image has no record: everyone may use it.
            let mut world = world_of(flavour, 1, std::mem::take(world.registry()));
            world.registry().access(R, "", Access::Anonymous);
            world.preload("node-1", &written).unwrap();
            world.put(pod("any", &written, "Never"));
            world.pass(2);
            assert_eq!(text(&world.pod("any"), "/status/phase"), Some("Running"));
        }
    }
}

#[test]
fn removing_a_cached_image_makes_the_node_ask_again() {
    let mut registry = RegistryServer::new();
    push(&mut registry, "app", "1", &image("old"));
    let mut world = world_of(Flavour::Kubernetes, 1, registry);
    let written = format!("{R}/app:1");
    world.preload("node-1", &written).unwrap();
    let new = image("new");
    push(world.registry(), "app", "1", &new);
    world.remove_cached_image("node-1", &written).unwrap();
    assert!(world.remove_cached_image("node-1", &written).is_err());
    world.put(pod("p", &written, "IfNotPresent"));
    world.pass(5);
    assert_eq!(field(&world.pod("p"), "/imageID"), format!("{R}/app@{}", new.root));
}

#[test]
fn a_kubelet_pulls_one_image_after_the_other() {
    let mut registry = RegistryServer::new();
    for name in ["a", "b", "c"] {
        push(&mut registry, name, "1", &image(name));
    }
    let mut world = world_of(Flavour::Kubernetes, 1, registry);
    for name in ["a", "b", "c"] {
        world.put(pod(name, &format!("{R}/{name}:1"), "IfNotPresent"));
    }
    world.pass(10);
    let mut waits: Vec<bool> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let message = world.events_of(name, &["Pulled"]).pop().unwrap();
            let (alone, with_waiting) = message.split_once(" in ").unwrap().1.split_once(" (").unwrap();
            !with_waiting.starts_with(&format!("{alone} including waiting"))
        })
        .collect();
    waits.sort_unstable();
    assert_eq!(waits, [false, true, true], "{}", world.story());
}
