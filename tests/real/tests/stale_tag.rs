//! The first incident on real nodes: what a tag means depends on the node, a digest means the same everywhere.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::time::Duration;

use scantling_image::{Digest, Reference};
use scantling_real_tests::{RealCluster, image, pusher};
use serde_json::{Value, json};

/// Pushes an image whose program prints a text and then sleeps.
fn push(to: &str, text: &str) -> Digest {
    let files = BTreeMap::from([("/text".to_owned(), format!("{text}\n"))]);
    let script = "cat /text; trap 'exit 0' TERM; while :; do sleep 3600 & wait; done";
    let built = image(&files, &["/bin/sh", "-c", script]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let to = Reference::parse(to).unwrap();
    runtime.block_on(pusher().unwrap().push(&built, &to)).unwrap().digest
}

/// What a pod of an image runs on a node: what it prints, and the digest that the node reports.
fn runs(cluster: &RealCluster, name: &str, node: &str, image: &str, policy: &str) -> (String, Digest) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": image, "imagePullPolicy": policy}],
        },
    });
    let file = cluster.folder().join("pod.json");
    std::fs::write(&file, pod.to_string()).unwrap();
    cluster.run(&["create", "-f", file.to_str().unwrap()]).unwrap();
    cluster.run(&["wait", "--for=condition=Ready", "--timeout=120s", "pod", name]).unwrap();
    let pod: Value =
        serde_json::from_str(&cluster.run(&["get", "pod", name, "-o", "json"]).unwrap()).unwrap();
    let id = pod["status"]["containerStatuses"][0]["imageID"].as_str().unwrap();
    let (_, digest) = id.split_once('@').expect("a digest");
    // Its first line is written soon after the container started.
    for _ in 0..50 {
        let text = cluster.run(&["logs", name]).unwrap();
        if !text.is_empty() {
            return (text.trim().to_owned(), Digest::parse(digest).unwrap());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{name} prints nothing");
}

#[test]
fn a_tag_is_what_the_node_has_and_a_digest_is_what_it_says() {
    let Some(cluster) = RealCluster::up(2).unwrap() else { return };
    assert_eq!(cluster.nodes(), ["node-1", "node-2"]);
    let tag = format!("{}/app:2.7", cluster.registry());

    let old = push(&tag, "old");
    assert_eq!(runs(&cluster, "first", "node-1", &tag, "IfNotPresent"), ("old".to_owned(), old.clone()));

    let new = push(&tag, "new");
    assert_ne!(old, new);
    // The incident: the tag moved, and the node that has it does not ask.
    assert_eq!(runs(&cluster, "stale", "node-1", &tag, "IfNotPresent"), ("old".to_owned(), old.clone()));
    // Which is why it depends on where a pod lands.
    assert_eq!(runs(&cluster, "lucky", "node-2", &tag, "IfNotPresent"), ("new".to_owned(), new.clone()));

    // A digest decides, on either node, whatever the tag beside it says.
    let pinned = format!("{}/app@{new}", cluster.registry());
    assert_eq!(runs(&cluster, "pinned", "node-1", &pinned, "IfNotPresent"), ("new".to_owned(), new));
    let both = format!("{tag}@{old}");
    assert_eq!(runs(&cluster, "both", "node-2", &both, "IfNotPresent"), ("old".to_owned(), old));
}
