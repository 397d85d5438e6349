//! The plan of an upgrade: a step for every object, images, nodes.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::{ObjectKey, object};
use scantling_image::Digest;
use scantling_reconcile::Forecast;
use scantling_release::Wave;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::node::NodeFacts;
use crate::object::{Frame, Sides, blank, decide};
use crate::on_offer::OnOffer;
use crate::people::PlannedNotebook;
use crate::pin::Adjusted;
use crate::step::{Outcome, Step};
use crate::trace::Traces;

/// Why no plan can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A value of the release is no object of the API.
    #[error("{object} is not an object of the Kubernetes API: {reason}")]
    NotAnObject {
        /// The object as far as it has a name.
        object: String,
        /// What is missing.
        reason: String,
    },
    /// An object cannot be merged with the one in the cluster.
    #[error("{object} cannot be merged with what the cluster has: {reason}")]
    CannotMerge {
        /// The object.
        object: String,
        /// The merge's own words.
        reason: String,
    },
}

/// How an object came to be in the inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// We created it; it may be pruned.
    Created,
    /// It was there; it is never deleted.
    Adopted,
}

/// The objects of the release last applied, and how each came to us.
pub type Inventory = BTreeMap<ObjectKey, Origin>;

/// What was applied before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Previous {
    /// The version of that release; none if it was not installed by Scantling.
    pub version: Option<String>,
    /// Its objects as they were applied, Secrets without values (`null`).
    pub objects: BTreeMap<ObjectKey, Value>,
    /// What is ours. Empty if the platform was installed by other means.
    pub inventory: Inventory,
    /// What runs have made of fields since, if they did not end.
    pub traces: BTreeMap<ObjectKey, Traces>,
}

/// One object that the release wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    /// Its key.
    pub key: ObjectKey,
    /// When it is written.
    pub wave: Wave,
    /// The object: images by digest, generated values filled in. May hold the values of Secrets.
    pub value: Value,
    /// Where it differs from what the release declares.
    pub adjusted: Vec<Adjusted>,
}

/// An image that the release uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedImage {
    /// The reference as the release writes it.
    pub written: String,
    /// The same by digest; none for what is built on the cluster later.
    pub pinned: Option<String>,
    /// Bytes to download for one platform, if known.
    pub size_bytes: Option<u64>,
    /// The objects that name it.
    pub used_by: Vec<ObjectKey>,
}

/// What a node is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNode {
    /// The node.
    pub node: String,
    /// Its platform, `linux/amd64`.
    pub platform: Option<String>,
    /// References by digest that pods landing here need and that the node does not report.
    pub pulls: Vec<String>,
    /// Why it gets nothing, if so.
    pub left_out: Option<String>,
}

/// The plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Name of the release.
    pub release: String,
    /// Its version.
    pub version: String,
    /// The version that it follows on this cluster, if Scantling installed one.
    pub from: Option<String>,
    /// A step for every object, in the order of writing; what is pruned comes last.
    pub steps: Vec<Step>,
    /// The images.
    pub images: Vec<PlannedImage>,
    /// The nodes.
    pub nodes: Vec<PlannedNode>,
    /// The notebooks for which something changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notebooks: Vec<PlannedNotebook>,
    /// The models for which something changes, and how their pods get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Forecast>,
    /// Components that fit the cluster and that nobody has asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_offer: Vec<OnOffer>,
}

/// How many steps end in each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Objects that are created.
    pub created: usize,
    /// Objects that are updated.
    pub updated: usize,
    /// Objects that are deleted and created again.
    pub replaced: usize,
    /// Objects that are adopted.
    pub adopted: usize,
    /// Objects that stay as they are.
    pub unchanged: usize,
    /// Objects that stay as they are although the release has or had them otherwise.
    pub kept: usize,
    /// Objects that stop the run.
    pub conflicts: usize,
    /// Objects that are deleted.
    pub pruned: usize,
}

impl Plan {
    /// What tells this plan from another one that a person would judge differently: what happens to which object and field,
    /// and with which images. What merely was read is not part of it.
    pub fn digest(&self) -> Digest {
        let steps: Vec<_> =
            self.steps.iter().map(|s| (&s.key, s.outcome, &s.changes, &s.taken, &s.conflicts)).collect();
        let images: Vec<_> = self.images.iter().map(|i| (&i.written, &i.pinned)).collect();
        // Keys are structs and enums of strings: they can always be written.
        Digest::of(&serde_json::to_vec(&(&self.release, &self.version, steps, images)).unwrap_or_default())
    }

    /// How many steps end in each outcome.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for step in &self.steps {
            let count = match step.outcome {
                Outcome::Created => &mut counts.created,
                Outcome::Updated => &mut counts.updated,
                Outcome::Adopted => &mut counts.adopted,
                Outcome::Unchanged => &mut counts.unchanged,
                Outcome::Replaced => &mut counts.replaced,
                Outcome::KeptByUser | Outcome::Kept => &mut counts.kept,
                Outcome::Conflict | Outcome::Failed => &mut counts.conflicts,
                Outcome::Pruned => &mut counts.pruned,
            };
            *count += 1;
        }
        counts
    }
}

/// Decides every object: what the release wants, and what only the previous one had.
///
/// # Errors
/// The first object that cannot be decided.
pub fn steps(
    frame: &Frame<'_>,
    desired: &[Desired],
    previous: &Previous,
    live: &BTreeMap<ObjectKey, Value>,
) -> Result<Vec<Step>, PlanError> {
    let mut steps = Vec::new();
    for wanted in desired {
        let sides = Sides {
            desired: &wanted.value,
            base: previous.objects.get(&wanted.key),
            traces: previous.traces.get(&wanted.key),
            live: live.get(&wanted.key),
            ours: previous.inventory.contains_key(&wanted.key),
            created: previous.inventory.get(&wanted.key) == Some(&Origin::Created),
        };
        let step = decide(frame, &wanted.key, wanted.wave, sides)?;
        steps.push(Step { adjusted: wanted.adjusted.clone(), ..step });
    }
    steps.sort_by(|a, b| (a.wave, &a.key).cmp(&(b.wave, &b.key)));
    let keys: BTreeSet<&ObjectKey> = desired.iter().map(|d| &d.key).collect();
    steps.extend(leftovers(previous, &keys, live));
    Ok(steps)
}

/// Kinds that hold what belongs to people even when we made them: deleting them deletes data.
fn holds_data(key: &ObjectKey) -> Option<&'static str> {
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "PersistentVolumeClaim" | "PersistentVolume") => Some("it holds data"),
        ("", "Secret") => Some("it holds credentials that others may use"),
        ("", "Namespace") | ("project.openshift.io", "Project") => Some("it may hold objects of users"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some("objects of users would go with it"),
        _ => None,
    }
}

/// Why an object that the release no longer has is not taken away yet: notebooks use the image of the catalogue that it
/// is, as its status says.
pub fn still_used(object: &Value) -> Option<String> {
    if object.get("kind").and_then(Value::as_str) != Some("NotebookImage") {
        return None;
    }
    let users = object.pointer("/status/inUse").and_then(Value::as_u64).filter(|users| *users > 0)?;
    Some(format!(
        "the release no longer offers it, but {users} notebooks use it; it goes with a run after they are gone"
    ))
}

/// What happens to objects that only the previous release had.
fn leftovers(
    previous: &Previous,
    wanted: &BTreeSet<&ObjectKey>,
    live: &BTreeMap<ObjectKey, Value>,
) -> Vec<Step> {
    let keys: BTreeSet<&ObjectKey> = previous.inventory.keys().chain(previous.objects.keys()).collect();
    let mut steps: Vec<Step> = keys
        .into_iter()
        .filter(|key| !wanted.contains(key))
        .filter_map(|key| Some((key, live.get(key)?)))
        .map(|(key, object)| {
            let (outcome, cause) = match (previous.inventory.get(key), holds_data(key)) {
                (Some(Origin::Created), _) if let Some(why) = still_used(object) => (Outcome::Kept, why),
                (Some(Origin::Created), None) => (Outcome::Pruned, "the release no longer has it".to_owned()),
                (Some(Origin::Created), Some(why)) => {
                    (Outcome::KeptByUser, format!("the release no longer has it, but {why}"))
                }
                _ => (
                    Outcome::KeptByUser,
                    "the release no longer has it, but Scantling did not create it".to_owned(),
                ),
            };
            Step {
                outcome,
                cause,
                body: object.clone(),
                ..blank(key, Wave::Resources, Digest::of(object::uid(object).as_bytes()))
            }
        })
        .collect();
    // What came last goes first: nothing may lose what it stands on.
    steps.reverse();
    steps
}

/// Which of the images that pods name each node is given.
///
/// `needs` are pod specs, each with the references by digest that a pod made of it would pull.
pub fn pulls(nodes: &[NodeFacts], needs: &[(&Value, BTreeSet<String>)]) -> Vec<PlannedNode> {
    nodes
        .iter()
        .map(|node| {
            let left_out = if !node.ready {
                Some("the node is not ready".to_owned())
            } else if node.disk_pressure {
                Some("the node reports disk pressure".to_owned())
            } else {
                None
            };
            let wanted: BTreeSet<String> = needs
                .iter()
                .filter(|(spec, _)| left_out.is_none() && node.admits(spec))
                .flat_map(|(_, images)| images.iter().cloned())
                .filter(|image| !holds(node, image))
                .collect();
            PlannedNode {
                node: node.name.clone(),
                platform: node.platform.as_ref().map(ToString::to_string),
                pulls: wanted.into_iter().collect(),
                left_out,
            }
        })
        .collect()
}

/// Whether a node reports the digest of a reference.
pub fn holds(node: &NodeFacts, reference: &str) -> bool {
    reference
        .rsplit_once('@')
        .and_then(|(_, digest)| Digest::parse(digest).ok())
        .is_some_and(|digest| node.digests.contains(&digest))
}
