//! The same seed gives the same bytes of trace; another seed gives others.

use scantling_registry_server::RegistryServer;
use serde_json::json;

use super::{R, image, pod, push};
use crate::{Flavour, NodeConfig, World, WorldConfig, trace};
use scantling_image::Platform;

fn story(seed: u64) -> String {
    let mut registry = RegistryServer::new();
    for (name, tag) in [("app", "1"), ("app", "2"), ("web", "1")] {
        push(&mut registry, name, tag, &image(&format!("{name} {tag}")));
    }
    let mut config = WorldConfig::new(seed, Flavour::Kubernetes);
    config.nodes = (1..=3).map(|n| NodeConfig::new(format!("n{n}"), Platform::linux_amd64())).collect();
    let mut world = World::new(config, registry);
    world.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "replicas": 5, "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "main", "image": format!("{R}/app:1")}]}},
        },
    }));
    world.put(pod("missing", &format!("{R}/app:9"), "Always"));
    world.put(pod("web", &format!("{R}/web:1"), "Always"));
    world.pass(30);
    let key = scantling_api::ObjectKey::namespaced("apps", "Deployment", "default", "d");
    world.change("user", &key, |object| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("{R}/app:2"));
    });
    world.pass(120);
    world.delete_as_user(&key);
    world.pass(60);
    trace::render(world.trace())
}

#[test]
fn same_seed_same_bytes() {
    let first = story(11);
    assert_eq!(first, story(11));
    assert_ne!(first, story(12));
    assert!(first.lines().count() > 200);
}
