//! The first incident on real nodes: what a tag means depends on the node, a digest means the same everywhere.

use std::time::Duration;

use scantling_image::Digest;
use scantling_real_tests::RealCluster;
use serde_json::json;

use crate::common::{get, kubectl, push};

/// What a pod of an image runs on a node: what it prints, and the digest that the node reports.
fn runs(cluster: &RealCluster, name: &str, node: &str, image: &str, policy: &str) -> (String, Digest) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": image, "imagePullPolicy": policy}],
        },
    });
    kubectl(cluster, "create", &pod);
    cluster.run(&["wait", "--for=condition=Ready", "--timeout=120s", "pod", name]).unwrap();
    let pod = get(cluster, &["pod", name]);
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
