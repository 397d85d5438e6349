//! Public bug reports about what nodes say of their images, and which nodes need them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use scantling_image::Digest;
use scantling_plan::{NodeFacts, pulls};
use serde_json::{Value, json};

fn node(name: &str, labels: &Value, taints: &Value, images: &[Vec<String>]) -> NodeFacts {
    let images: Vec<Value> = images.iter().map(|names| json!({"names": names, "sizeBytes": 1000})).collect();
    NodeFacts::read(&json!({
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "images": images,
            "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64"}},
    }))
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn pulled(nodes: &[NodeFacts], spec: &Value, image: &str) -> Vec<String> {
    let wanted = [(spec, BTreeSet::from([image.to_owned()]))];
    pulls(nodes, &wanted).into_iter().filter(|n| !n.pulls.is_empty()).map(|n| n.node).collect()
}

/// kubernetes/kubernetes#93488: a node reports fifty images and is taken not to have the others.
#[test]
fn fifty_images_are_not_all() {
    let wanted = format!("registry.example.com/nb/minimal@{}", digest("minimal"));
    let other =
        |number: usize| vec![format!("registry.example.com/o/{number}@{}", digest(&number.to_string()))];
    for (count, all) in [(50, false), (49, true)] {
        let images: Vec<Vec<String>> = (0..count).map(other).collect();
        let node = node("n", &json!({}), &json!([]), &images);
        assert_eq!(node.reports_all(), all, "{count}");
        assert!(!node.digests.contains(&digest("minimal")));
        // It is asked for: that costs nothing where it is there.
        assert_eq!(pulled(&[node], &json!({}), &wanted), ["n"], "{count}");
    }
}

/// kubernetes/kubernetes#32908: an image has more names than a node reports of it.
#[test]
fn a_name_that_is_not_shown_does_not_matter() {
    let names = ["t1", "t2", "t3", "t4"].map(|tag| format!("registry.example.com/x/y:{tag}"));
    let mut names = names.to_vec();
    names.insert(0, format!("registry.example.com/x/y@{}", digest("y")));
    let node = node("n", &json!({}), &json!([]), &[names]);
    // What was written as :t7 is asked for by its digest.
    let wanted = format!("registry.example.com/x/y@{}", digest("y"));
    assert_eq!(pulled(&[node], &json!({}), &wanted), Vec::<String>::new());
}

/// jupyterhub/zero-to-jupyterhub-k8s#766: images are brought to nodes that the pods never reach, and not to those they do.
#[test]
fn images_go_where_the_pods_can_go() {
    let gpu = json!({"key": "nvidia.com/gpu", "effect": "NoSchedule"});
    let maintenance = json!({"key": "maint", "effect": "NoExecute"});
    let nodes = [
        node("cpu1", &json!({"pool": "cpu"}), &json!([]), &[]),
        node("gpu1", &json!({"pool": "gpu"}), &json!([gpu]), &[]),
        node("gpu2", &json!({"pool": "gpu"}), &json!([gpu, maintenance]), &[]),
    ];
    let spec = json!({"nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]});
    let image = format!("registry.example.com/nb/cuda@{}", digest("cuda"));
    assert_eq!(pulled(&nodes, &spec, &image), ["gpu1"]);
}
