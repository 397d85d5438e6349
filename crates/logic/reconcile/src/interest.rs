//! Which objects reconcilers look at. A cluster has far more pods than the platform has.

use std::collections::BTreeSet;

use scantling_api::object;
use scantling_image::Reference;
use scantling_observed::{Observed, Pod, View as _, annotations, devices};
use serde_json::Value;

use crate::catalogue::Catalogue;

/// Labels of pods that belong to notebooks and models, whoever made them.
const LABELS: [&str; 3] = ["notebook-name", "statefulset", "serving.kserve.io/inferenceservice"];

/// What makes a pod one that reconcilers look at: a label of notebooks or models, a mark, a device that it holds, or an image that the
/// catalogue names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interest {
    names: BTreeSet<String>,
}

impl Interest {
    /// Follows from the catalogue.
    pub fn of(observed: &Observed) -> Self {
        Self { names: Catalogue::of(observed).names().map(ToOwned::to_owned).collect() }
    }

    /// Is everything that another one includes included?
    pub fn covers(&self, other: &Self) -> bool {
        self.names.is_superset(&other.names)
    }

    /// Whether it can change when an object of this kind does.
    pub fn depends_on(group: &str, kind: &str) -> bool {
        (group, kind) == ("scantling.dev", "NotebookImage")
    }

    /// Whether it chooses among objects of this kind. All objects of other kinds are looked at.
    pub fn chooses(group: &str, kind: &str) -> bool {
        (group, kind) == ("", "Pod")
    }

    /// Does somebody look at this pod?
    pub fn includes(&self, pod: &Value) -> bool {
        let view = Pod::of(pod);
        // Who holds a device leaves less of it for models.
        let holds_device = pod.get("spec").is_some_and(|spec| !devices(spec).is_empty());
        holds_device
            || LABELS.iter().any(|label| view.label(label).is_some())
            || view.annotation(annotations::UPDATE_PENDING).is_some()
            || object::controller(pod).is_some_and(|owner| owner.gvk.kind == "Notebook")
            || view.containers().iter().any(|container| {
                Reference::parse(container.image).is_ok_and(|image| self.names.contains(&image.canonical()))
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_of_notebooks_of_models_and_of_images_in_the_catalogue() {
        let observed = Observed::from_objects([json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": "a", "namespace": "p"},
            "spec": {"selection": "a:1", "image": format!("registry.example/a@sha256:{}", "1".repeat(64)),
                "aliases": ["registry.example/a:1"]},
        })])
        .unwrap();
        let interest = Interest::of(&observed);
        let pod = |metadata: Value, image: &str| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {"containers": [{"name": "c", "image": image}]}})
        };
        for (metadata, image, expected) in [
            (json!({"name": "x"}), "registry.example/b:1", false),
            (json!({"name": "x", "labels": {"app": "a"}}), "%", false),
            (json!({"name": "x"}), "registry.example/a:1", true),
            (json!({"name": "x"}), "registry.example/a:2", false),
            (json!({"name": "x", "labels": {"notebook-name": "a"}}), "b", true),
            (json!({"name": "x", "labels": {"serving.kserve.io/inferenceservice": "a"}}), "b", true),
            (json!({"name": "x", "annotations": {"scantling.dev/update-pending": "a"}}), "b", true),
        ] {
            assert_eq!(interest.includes(&pod(metadata.clone(), image)), expected, "{metadata} {image}");
        }
        let mut holder = pod(json!({"name": "x"}), "b");
        holder["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": 1}});
        assert!(interest.includes(&holder));
        assert!(interest.covers(&Interest::default()) && !Interest::default().covers(&interest));
    }
}
