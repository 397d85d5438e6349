//! What a run tells while it works.

use std::fmt;

use jiff::Timestamp;
use scantling_api::ObjectKey;
use scantling_image::Digest;
use scantling_plan::Outcome;
use scantling_release::Wave;
use serde::Serialize;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEvent {
    /// When, by the run's clock.
    pub at: Timestamp,
    /// In which stage.
    pub stage: Stage,
    /// What.
    pub what: What,
}

/// The stages of a run, in order. Prepull and apply alternate: images come before the workloads that use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Reading the cluster.
    Read,
    /// Asking registries for everything that the release can reach.
    Gate,
    /// Deciding what happens to each object.
    Plan,
    /// Writing objects, wave by wave.
    Apply,
    /// Imports and builds on the cluster.
    Images,
    /// Bringing images to nodes before anything needs them.
    Prepull,
    /// Comparing claims with contents and offering the images to users.
    Catalogue,
    /// Holding what runs against the lock.
    Verify,
    /// Removing what only the previous release had.
    Prune,
    /// Storing what was done.
    State,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Gate => "gate",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Images => "images",
            Self::Prepull => "prepull",
            Self::Catalogue => "catalogue",
            Self::Verify => "verify",
            Self::Prune => "prune",
            Self::State => "state",
        })
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum What {
    /// The run started.
    Started {
        /// The release.
        release: String,
        /// Its version.
        version: String,
        /// The version that the cluster has, if Scantling installed one.
        from: Option<String>,
    },
    /// A run that did not end is continued.
    Continued {
        /// When that run started.
        started: String,
        /// The stage that it had reached.
        reached: String,
    },
    /// The cluster has been read.
    ClusterRead {
        /// Nodes.
        nodes: usize,
        /// The platforms of the nodes, `linux/amd64`.
        platforms: Vec<String>,
        /// Objects read.
        objects: usize,
    },
    /// A reference has been asked for.
    Probed {
        /// The reference as written.
        reference: String,
        /// The verdict, `ok from here`.
        verdict: String,
        /// The digest that it means, if it could be resolved.
        digest: Option<Digest>,
    },
    /// The run is refused and nothing has been written.
    Refused {
        /// Why.
        why: String,
    },
    /// The plan is made.
    Planned {
        /// Objects that will be created.
        create: usize,
        /// Objects that will be updated.
        update: usize,
        /// Objects that will be deleted and created again.
        #[serde(skip_serializing_if = "is_zero")]
        replace: usize,
        /// Objects that will be adopted.
        adopt: usize,
        /// Objects that stay as they are.
        unchanged: usize,
        /// Objects that will be pruned.
        prune: usize,
    },
    /// A wave begins.
    Wave {
        /// Which.
        wave: Wave,
        /// How many objects of it are written.
        objects: usize,
    },
    /// An object has ended in its outcome.
    Object {
        /// The object.
        key: ObjectKey,
        /// How it ended.
        outcome: Outcome,
        /// Why, or what was written.
        cause: String,
    },
    /// Something is waited for.
    Waiting {
        /// What, usually an object.
        on: String,
        /// What is missing.
        until: String,
    },
    /// What was waited for has come.
    Ready {
        /// What.
        on: String,
        /// In which state.
        state: String,
    },
    /// A pod was deleted, so that one of the newest template takes its place.
    PodReplaced {
        /// The pod.
        pod: String,
        /// The workload that it belongs to.
        of: String,
        /// Why it would not have been replaced without that.
        why: String,
    },
    /// A build was started.
    BuildStarted {
        /// The `BuildConfig`.
        config: String,
        /// Why: no build of the current source, or the base image moved.
        why: String,
    },
    /// An image exists on the cluster.
    ImageRecorded {
        /// The image stream tag, `ns/name:tag`.
        tag: String,
        /// Its digest.
        digest: Digest,
        /// `built` or `imported`.
        how: String,
    },
    /// Images are brought to a node.
    Pulling {
        /// The node.
        node: String,
        /// How many images.
        images: usize,
    },
    /// A node has an image.
    Pulled {
        /// The node.
        node: String,
        /// The reference, by digest.
        image: String,
    },
    /// A node is left out.
    NodeSkipped {
        /// The node.
        node: String,
        /// Why.
        why: String,
    },
    /// The contents of an image have been read and compared with what is claimed of it.
    ContentsRead {
        /// The image stream tag.
        tag: String,
        /// Claims that hold.
        hold: usize,
        /// Claims that do not.
        differ: usize,
    },
    /// An image is offered to users.
    Published {
        /// Its name in the catalogue.
        name: String,
        /// The reference that new notebooks get, by digest.
        image: String,
    },
    /// A workload's pods have been held against the lock.
    Verified {
        /// The workload.
        workload: String,
        /// Containers that run what the release says.
        same: usize,
        /// Containers that do not.
        different: usize,
    },
    /// Somebody else did something that concerns the run.
    Meanwhile {
        /// The object.
        object: ObjectKey,
        /// What it was, and what the run did about it.
        did: String,
    },
    /// The run ended.
    Finished {
        /// Writes in all.
        writes: usize,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { release, version, from: Some(from) } => {
                write!(f, "{release} {from} to {version}")
            }
            Self::Started { release, version, from: None } => {
                write!(f, "{release} {version}, nothing installed yet by Scantling")
            }
            Self::Continued { started, reached } => {
                write!(f, "continuing the run that was started at {started} and reached {reached}")
            }
            Self::ClusterRead { nodes, platforms, objects } => {
                write!(f, "{nodes} nodes ({}), {objects} objects", platforms.join(", "))
            }
            Self::Probed { reference, verdict, .. } => write!(f, "{reference}: {verdict}"),
            Self::Refused { why } => write!(f, "refused, nothing written: {why}"),
            Self::Planned { create, update, replace, adopt, unchanged, prune } => {
                write!(f, "create {create}, update {update}, ")?;
                if *replace > 0 {
                    write!(f, "replace {replace}, ")?;
                }
                write!(f, "adopt {adopt}, unchanged {unchanged}, prune {prune}")
            }
            Self::Wave { wave, objects } => write!(f, "wave {wave}: {objects} to write"),
            Self::Object { key, outcome, cause } if cause.is_empty() => write!(f, "{key} {outcome}"),
            Self::Object { key, outcome, cause } => write!(f, "{key} {outcome}: {cause}"),
            Self::Waiting { on, until } => write!(f, "waiting for {on}: {until}"),
            Self::Ready { on, state } => write!(f, "{on}: {state}"),
            Self::PodReplaced { pod, of, why } => {
                write!(f, "{of}: pod {pod} deleted, for it holds up the newest template: {why}")
            }
            Self::BuildStarted { config, why } => write!(f, "build of {config} started: {why}"),
            Self::ImageRecorded { tag, digest, how } => write!(f, "{tag} {how} as {}", digest.short()),
            Self::Pulling { node, images } => write!(f, "{node}: pulling {images} images"),
            Self::Pulled { node, image } => write!(f, "{node}: has {image}"),
            Self::NodeSkipped { node, why } => write!(f, "{node}: left out: {why}"),
            Self::ContentsRead { tag, hold, differ: 0 } => write!(f, "{tag}: all {hold} claims hold"),
            Self::ContentsRead { tag, hold, differ } => {
                write!(f, "{tag}: {hold} claims hold, {differ} do not")
            }
            Self::Published { name, image } => write!(f, "{name} offered as {image}"),
            Self::Verified { workload, same, different: 0 } => {
                write!(f, "{workload}: {same} containers run what the release says")
            }
            Self::Verified { workload, same, different } => {
                write!(f, "{workload}: {same} containers run what the release says, {different} do not")
            }
            Self::Meanwhile { object, did } => write!(f, "meanwhile, {object}: {did}"),
            Self::Finished { writes } => write!(f, "finished, {writes} writes"),
        }
    }
}

impl fmt::Display for RunEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:<9} {}", self.at, self.stage, self.what)
    }
}
