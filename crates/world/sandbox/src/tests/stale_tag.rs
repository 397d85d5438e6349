//! The incident on a real node, step by step: kubelet 1.35.4 with containerd 1.6.20 was given these pods in
//! this order, and said what the table says. The model must say the same.

use scantling_registry_server::RegistryServer;

use super::{R, described, field, image, pod, push, status, world_of};
use crate::Flavour;
use crate::value::int;

/// What a step of the transcript does.
enum Step {
    /// A pod is made: name, what follows the repository in its image, policy.
    Run(&'static str, &'static str, &'static str),
    /// The tag 2.7 is moved to the second content.
    Move,
    /// The container of a pod ends and is started again in the same pod.
    Restart(&'static str),
}

#[test]
fn the_transcript_of_a_real_node() {
    let (v1, v2) = (image("content v1"), image("content v2"));
    let mut registry = RegistryServer::new();
    push(&mut registry, "app", "2.7", &v1);
    let (digest1, digest2) = (v1.root.to_string(), v2.root.to_string());
    let config1 = v1.platforms[0].config.to_string();
    let mut world = world_of(Flavour::Kubernetes, 1, registry);
    let tagged = format!("{R}/app:2.7");
    let by_both = format!(":2.7@{digest1}");
    let present = |image: &str| {
        format!("Container image \"{image}\" already present on machine and can be accessed by the pod")
    };
    // Step, pulled (else found present), digest of imageID, status.image.
    let table: Vec<(Step, bool, &str, &str)> = vec![
        (Step::Run("first", ":2.7", "IfNotPresent"), true, &digest1, &tagged),
        (Step::Move, false, "", ""),
        (Step::Run("second", ":2.7", "IfNotPresent"), false, &digest1, &tagged),
        (Step::Run("third", ":2.7", "Always"), true, &digest2, &tagged),
        (Step::Run("fourth", ":2.7", "IfNotPresent"), false, &digest2, &tagged),
        (Step::Restart("first"), false, &digest2, &tagged),
        (Step::Run("fifth", "BOTH", "IfNotPresent"), false, &digest1, &config1),
    ];
    for (step, pulled, digest, status_image) in table {
        let (name, restarts) = match step {
            Step::Run(name, suffix, policy) => {
                let suffix = if suffix == "BOTH" { by_both.as_str() } else { suffix };
                world.put(pod(name, &format!("{R}/app{suffix}"), policy));
                (name, 0)
            }
            Step::Move => {
                push(world.registry(), "app", "2.7", &v2);
                continue;
            }
            Step::Restart(name) => {
                world.end_container(&super::pod_key(name), "main", 0);
                (name, 1)
            }
        };
        world.pass(5);
        let object = world.pod(name);
        assert_eq!(field(&object, "/imageID"), format!("{R}/app@{digest}"), "{name}: {}", world.story());
        assert_eq!(field(&object, "/image"), status_image, "{name}");
        assert_eq!(int(&status(&object), "/restartCount"), Some(restarts), "{name}");
        let last = world.events_of(name, &["Pulled"]).pop().unwrap();
        if pulled {
            assert!(
                last.starts_with(&format!("Successfully pulled image \"{tagged}\" in ")),
                "{name}: {last}"
            );
        } else {
            let written = if name == "fifth" { format!("{R}/app{by_both}") } else { tagged.clone() };
            assert_eq!(last, present(&written), "{name}");
        }
    }
    // What the node lists afterwards: v1 has its digest and no tag any more, the tag is v2's.
    world.pass(10);
    let node = world.object(&scantling_api::ObjectKey::cluster("", "Node", "node-1")).unwrap();
    let mut listed: Vec<Vec<String>> = crate::value::list(node, "/status/images")
        .iter()
        .map(|image| {
            let names = crate::value::list(image, "/names");
            names.iter().filter_map(serde_json::Value::as_str).map(str::to_owned).collect()
        })
        .collect();
    listed.sort();
    let mut expected =
        vec![vec![format!("{R}/app@{digest1}")], vec![format!("{R}/app@{digest2}"), tagged.clone()]];
    expected.sort();
    assert_eq!(listed, expected);
}

#[test]
fn what_the_fields_say_for_each_way_of_writing_an_image() {
    let one = image("content");
    let many = described(&serde_json::json!({
        "platforms": ["linux/amd64", "linux/arm64"], "layers": [{"files": {"/content": "multi"}}],
    }));
    let (digest, config) = (one.root.to_string(), one.platforms[0].config.to_string());
    for (written, status_image, image_id) in [
        (format!("{R}/app:2.7"), format!("{R}/app:2.7"), format!("{R}/app@{digest}")),
        (format!("{R}/app@{digest}"), config.clone(), format!("{R}/app@{digest}")),
        (format!("{R}/app:2.7@{digest}"), config.clone(), format!("{R}/app@{digest}")),
        (format!("{R}/multi:i"), format!("{R}/multi:i"), format!("{R}/multi@{}", many.root)),
    ] {
        let mut registry = RegistryServer::new();
        push(&mut registry, "app", "2.7", &one);
        push(&mut registry, "multi", "i", &many);
        let mut world = world_of(Flavour::Kubernetes, 1, registry);
        world.put(pod("p", &written, "IfNotPresent"));
        world.pass(5);
        let object = world.pod("p");
        assert_eq!(field(&object, "/image"), status_image, "{written}");
        assert_eq!(field(&object, "/imageID"), image_id, "{written}");
    }
}

#[test]
fn an_image_id_can_name_another_repository_and_another_digest_than_was_asked_for() {
    // One config with two manifests: the second has one more annotation.
    let base = image("content");
    let manifest = &base.blobs[&base.root];
    let mut document: serde_json::Value = serde_json::from_slice(&manifest.1).unwrap();
    document["annotations"] = serde_json::json!({"one": "more"});
    let bytes = serde_json::to_vec(&document).unwrap();
    let mut other = base.clone();
    other.root = scantling_image::Digest::of(&bytes);
    other.blobs.insert(other.root.clone(), (manifest.0.clone(), bytes));
    for (first, second, image_id) in [
        (("web", &base), ("aaa", &base), format!("{R}/aaa@{}", base.root)),
        (("web", &base), ("other", &other), format!("{R}/other@{}", other.root)),
        (("aaa", &base), ("web", &base), format!("{R}/aaa@{}", base.root)),
    ] {
        let mut registry = RegistryServer::new();
        push(&mut registry, first.0, "1", first.1);
        push(&mut registry, second.0, "1", second.1);
        let mut world = world_of(Flavour::Kubernetes, 1, registry);
        world.put(pod("tagged", &format!("{R}/{}:1", second.0), "IfNotPresent"));
        world.pass(5);
        let by_digest = format!("{R}/{}@{}", first.0, first.1.root);
        world.put(pod("pinned", &by_digest, "IfNotPresent"));
        world.pass(5);
        let object = world.pod("pinned");
        assert_eq!(field(&object, "/imageID"), image_id, "{} then {}", second.0, first.0);
        assert_eq!(field(&object, "/image"), format!("{R}/{}:1", second.0));
    }
}
