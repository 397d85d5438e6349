//! Recordings of a real cluster whose nodes had a stale tag.
//!
//! The folder is given by the variable `SCANTLING_REAL_INPUTS`; without it the test says so and ends.

use std::path::PathBuf;

use scantling_image::{Digest, ImageIdentity};
use scantling_observed::Observed;
use scantling_reconcile::{Action, Context, KnownImage, KnownImages, LastUses, Met, RECONCILERS};
use serde_json::{Value, json};

use crate::small_cluster::packages;

#[test]
fn pods_of_a_real_cluster_with_a_stale_tag_are_marked() {
    let Some(folder) = std::env::var_os("SCANTLING_REAL_INPUTS").map(PathBuf::from) else {
        println!("skipped: SCANTLING_REAL_INPUTS is not set");
        return;
    };
    let folder = folder.join("snapshots/stale-tag-one-node");
    let read = |path: &str| std::fs::read(folder.join(path)).unwrap();
    let images: Value = serde_json::from_slice(&read("images.json")).unwrap();
    let reference = |name: &str| images[name].as_str().unwrap().to_owned();
    let old = reference("tensorflow 2.4.1")
        .rsplit_once('@')
        .map(|(_, digest)| Digest::parse(digest).unwrap())
        .unwrap();
    let known: KnownImages = [KnownImage {
        identity: ImageIdentity::of_manifest(old, None),
        packages: packages(&[("tensorflow", "2.4.1")]),
    }]
    .into_iter()
    .collect();
    for (when, marked) in [
        // The catalogue is already that of the new release, the tag is not: everything that runs by tag is old.
        ("before", vec!["notebook-ann"]),
        ("after-tag-moved", vec!["notebook-ann", "notebook-bob"]),
        // A pull with Always moved the node's tag, and ann's container was restarted.
        ("after-always-and-restart", vec!["notebook-bob"]),
    ] {
        let mut observed = Observed::from_list_json(&read(&format!("{when}/pods.json"))).unwrap();
        let image = reference("tensorflow 2.7.0");
        let (repository, _) = image.split_once('@').unwrap();
        observed
            .insert(json!({
                "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage", "metadata": {"name": "tf", "namespace": "p"},
                "spec": {
                    "selection": "tensorflow:py3.8", "image": image, "aliases": [format!("{repository}:py3.8")],
                    "packages": packages(&[("tensorflow", "2.7.0")]),
                },
            }))
            .unwrap();
        let context = Context {
            now: "2026-01-01T00:00:00Z",
            namespace: "p",
            images: &known,
            platform: None,
            last_uses: &LastUses::new(),
            met: &Met::default(),
        };
        let mut found = Vec::new();
        for action in RECONCILERS.iter().flat_map(|reconciler| (reconciler.reconcile)(&observed, &context)) {
            let Action::Annotate { target, annotations } = action else { panic!("{action:?}") };
            assert_eq!(
                annotations["scantling.dev/update-pending"].as_deref(),
                Some("tensorflow 2.4.1 → 2.7.0")
            );
            found.push(target.name);
        }
        assert_eq!(found, marked, "{when}");
    }
}
