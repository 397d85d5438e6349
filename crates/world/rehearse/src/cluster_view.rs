//! Looks at the objects of a sandbox as an auditor would: pods, streams, the catalogue.

use scantling_api::{ObjectKey, object};
use scantling_contents::Claim;
use scantling_image::{Digest, ImageId};
use serde_json::Value;

use crate::compare::Objects;

/// Annotations of an image stream tag that the vendor's spawner shows: lists of name and version, as JSON.
const CLAIM_ANNOTATIONS: [&str; 2] =
    ["opendatahub.io/notebook-software", "opendatahub.io/notebook-python-dependencies"];

/// The mark that Scantling puts on a pod which a newer image waits for.
pub(crate) const UPDATE_PENDING: &str = "scantling.dev/update-pending";

/// A pod, as far as images are concerned.
#[derive(Debug, Clone)]
pub(crate) struct PodView {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// The first container's image, as written.
    pub written: String,
    /// The digest in the first container's `imageID`.
    pub running: Option<Digest>,
    /// Whether the pod is Ready.
    pub ready: bool,
    /// Why a container waits.
    pub trouble: Option<Trouble>,
}

/// Reasons that every container waits for on its way.
const USUAL_WAITS: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Why a pod does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The kubelet's or the scheduler's word for it.
    pub reason: String,
    /// What it says of it.
    pub message: String,
}

impl Trouble {
    /// Whether the image is what is missing.
    pub(crate) fn is_about_the_image(&self) -> bool {
        // The kubelet's own list of reasons (`pkg/kubelet/images`).
        const REASONS: [&str; 6] = [
            "ErrImagePull",
            "ImagePullBackOff",
            "ErrImageNeverPull",
            "InvalidImageName",
            "ImageInspectError",
            "RegistryUnavailable",
        ];
        REASONS.contains(&self.reason.as_str())
    }

    /// Whether it has been tried more than once.
    pub(crate) fn is_lasting(&self) -> bool {
        self.is_about_the_image() && self.reason != "ErrImagePull"
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

/// A view of a pod.
pub(crate) fn pod(object: &Value) -> PodView {
    let status = object.pointer("/status/containerStatuses/0");
    let running = status
        .and_then(|status| status.get("imageID")?.as_str())
        .filter(|id| !id.is_empty())
        .and_then(|id| ImageId::parse(id).ok())
        .map(|id| id.digest().clone());
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let condition = |kind: &str| {
        conditions.into_iter().flatten().find(|it| it.get("type").and_then(Value::as_str) == Some(kind))
    };
    let is = |condition: Option<&Value>, status: &str| {
        condition.and_then(|it| it.get("status")).and_then(Value::as_str) == Some(status)
    };
    let statuses = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
    let waiting = statuses
        .iter()
        .filter_map(|list| object.get("status")?.get(*list)?.as_array())
        .flatten()
        .filter_map(|status| status.pointer("/state/waiting"))
        .find(|waiting| !USUAL_WAITS.contains(&object::text(waiting, "/reason")));
    let trouble = match waiting {
        Some(waiting) => Some((object::text(waiting, "/reason"), object::text(waiting, "/message"))),
        None => condition("PodScheduled")
            .filter(|it| is(Some(it), "False"))
            .map(|scheduled| ("Unschedulable", object::text(scheduled, "/message"))),
    };
    let trouble =
        trouble.map(|(reason, message)| Trouble { reason: reason.to_owned(), message: message.to_owned() });
    PodView {
        name: format!("{}/{}", object::namespace(object).unwrap_or_default(), object::name(object)),
        written: object::text(object, "/spec/containers/0/image").to_owned(),
        running,
        ready: is(condition("Ready"), "True"),
        trouble,
    }
}

/// Whether an object is a pod, or of a kind that makes pods.
pub(crate) fn is_workload(key: &ObjectKey) -> bool {
    const KINDS: [&str; 7] =
        ["Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "Notebook"];
    KINDS.contains(&key.kind.as_str())
}

/// Pods that are that object, or that controllers made for it.
pub(crate) fn pods_of<'a>(objects: &'a Objects, root: &ObjectKey) -> Vec<&'a Value> {
    objects
        .iter()
        .filter(|(key, pod)| key.kind == "Pod" && key.group.is_empty() && belongs(objects, key, pod, root))
        .map(|(_, pod)| pod)
        .collect()
}

/// Controllers of controllers are followed this far; a longer chain is a circle.
const OWNERS_MAX: usize = 8;

fn belongs(objects: &Objects, key: &ObjectKey, object: &Value, root: &ObjectKey) -> bool {
    let (mut key, mut object) = (key.clone(), object);
    for _ in 0..OWNERS_MAX {
        if key == *root {
            return true;
        }
        let Some(owner) = object::controller(object) else { return false };
        let next = ObjectKey {
            group: owner.gvk.group,
            kind: owner.gvk.kind,
            namespace: key.namespace.clone(),
            name: owner.name,
        };
        let Some(found) = objects.get(&next) else { return next == *root };
        (key, object) = (next, found);
    }
    false
}

/// What the vendor's screen says of a selection `STREAM:TAG`, from the annotations of the image stream's tag.
pub(crate) fn stream_claims(objects: &Objects, namespace: &str, selection: &str) -> Vec<Claim> {
    let Some((stream, tag)) = selection.split_once(':') else { return Vec::new() };
    let key = ObjectKey::namespaced("image.openshift.io", "ImageStream", namespace, stream);
    let Some(stream) = objects.get(&key) else { return Vec::new() };
    let tags = stream.pointer("/spec/tags").and_then(Value::as_array);
    let Some(tag) = tags.into_iter().flatten().find(|it| object::text(it, "/name") == tag) else {
        return Vec::new();
    };
    let mut claims: Vec<Claim> = Vec::new();
    for annotation in CLAIM_ANNOTATIONS {
        let text = tag.pointer("/annotations").and_then(|all| all.get(annotation)).and_then(Value::as_str);
        let list: Vec<Claim> = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        for claim in list {
            if !claims.contains(&claim) {
                claims.push(claim);
            }
        }
    }
    claims
}

/// The digest that a selection `STREAM:TAG` stands for, from the image stream's status.
pub(crate) fn stream_digest(objects: &Objects, namespace: &str, selection: &str) -> Option<Digest> {
    let (stream, tag) = selection.split_once(':')?;
    let key = ObjectKey::namespaced("image.openshift.io", "ImageStream", namespace, stream);
    let tags = objects.get(&key)?.pointer("/status/tags")?.as_array()?;
    let tag = tags.iter().find(|it| object::text(it, "/tag") == tag)?;
    Digest::parse(tag.pointer("/items/0/image")?.as_str()?).ok()
}

/// An entry of Scantling's catalogue.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    /// The image, by digest.
    pub image: String,
    /// What the screen says is in it.
    pub claims: Vec<Claim>,
}

/// Scantling's catalogue entry for a selection, if there is one.
pub(crate) fn offered(objects: &Objects, selection: &str) -> Option<Offered> {
    let entry = objects
        .iter()
        .filter(|(key, _)| key.kind == "NotebookImage")
        .map(|(_, entry)| entry)
        .find(|entry| object::text(entry, "/spec/selection") == selection)?;
    let packages = entry.pointer("/spec/packages").cloned().unwrap_or_default();
    Some(Offered {
        image: object::text(entry, "/spec/image").to_owned(),
        claims: serde_json::from_value(packages).unwrap_or_default(),
    })
}

/// The digest that a selection stands for: in Scantling's catalogue if there is one, else in the image stream.
pub(crate) fn wanted(objects: &Objects, namespace: &str, selection: &str) -> Option<Digest> {
    match offered(objects, selection) {
        Some(offered) => scantling_image::Reference::parse(&offered.image).ok()?.digest().cloned(),
        None => stream_digest(objects, namespace, selection),
    }
}
