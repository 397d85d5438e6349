//! An example as its author wrote it: `rehearsal.yaml`, the images, the releases.
//!
//! A scenario is data. It says what the cluster is, who does what in which order, and how the vendor's own way goes as a
//! list of API calls. It says nothing about what comes out of it: that is read from the sandbox.

mod error;
mod file;
mod images;
mod steps;

use std::collections::BTreeMap;

use scantling_image::Platform;
use scantling_release::{Release, Settings};
use serde::Deserialize;

pub use error::ScenarioError;
pub use images::{BuildDescription, ImageSource, Images, Source};
pub use steps::{Awaited, Condition, Read, Selection, Step, StepError, Wait, Which, Write};

use crate::promises::Promise;
use file::{ScenarioFile, VariantFile};

/// The files of a folder: path relative to it, with `/`, to bytes.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// The file that makes a folder an example.
pub const SCENARIO_FILE: &str = "rehearsal.yaml";

/// Nodes of a rehearsal; each is simulated second by second.
const NODES_MAX: usize = 200;

/// Entries of a story; each waits for the cluster.
const STORY_MAX: usize = 500;

/// A story entry may wait this long at most, so that a mistyped unit can't make a rehearsal of years.
const WAIT_MAX: jiff::SignedDuration = jiff::SignedDuration::from_hours(24 * 90);

/// An example, read and checked.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What the incident is called.
    pub title: String,
    /// What happened, in a sentence or two.
    pub about: String,
    /// The cluster that it happens on.
    pub cluster: ClusterDescription,
    /// What registries hold and builds make.
    pub images: Images,
    /// Where Scantling's spawner keeps people's notebooks.
    pub notebooks_namespace: Option<String>,
    /// The releases by the names that the story uses.
    pub releases: BTreeMap<String, ScenarioRelease>,
    /// What is known to be wrong with which versions.
    pub advisories: Vec<Advisory>,
    /// Who does what, in order.
    pub story: Vec<Event>,
    /// The vendor's way of doing each kind of thing.
    pub shipped: Shipped,
    /// Ways round the incident.
    pub variants: BTreeMap<String, Variant>,
    /// What decides whether the rehearsal ended well.
    pub must_hold: Vec<Promise>,
}

/// A release of an example with the files it was read from.
#[derive(Debug, Clone)]
pub struct ScenarioRelease {
    /// Its folder within the example.
    pub folder: String,
    /// Its files, relative to that folder.
    pub tree: Tree,
    /// What they say.
    pub release: Release,
}

/// The cluster of an example.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterDescription {
    /// Which API there is beside Kubernetes' own.
    pub flavour: FlavourName,
    /// Host and port of the registry inside the cluster, where there is one.
    #[serde(default)]
    pub internal_registry: Option<String>,
    /// The nodes that pods land on.
    pub nodes: Vec<NodeDescription>,
    /// Image mirror objects of the cluster (`ImageDigestMirrorSet` and its relatives), as they stand in it.
    #[serde(default)]
    pub mirrors: Vec<serde_json::Value>,
}

/// Names of the flavours that the sandbox knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlavourName {
    /// Kubernetes with nothing added.
    Kubernetes,
    /// With image streams, builds and the like.
    Openshift,
}

/// A node of an example.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeDescription {
    /// Its name.
    pub name: String,
    /// What it runs, as in `linux/amd64`.
    pub platform: Platform,
    /// The size of its image disk, as a Kubernetes quantity.
    pub disk: String,
    /// Its labels, beside the usual ones.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Images that are in its cache from the start, by the name that they were pulled under.
    #[serde(default)]
    pub cached: Vec<String>,
}

/// Versions that something is known to be wrong with.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Advisory {
    /// The package.
    pub package: String,
    /// The versions concerned.
    pub affected: Vec<String>,
    /// What to say of them.
    pub note: String,
}

/// One thing that somebody does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A release is installed on an empty cluster.
    Install {
        /// Its name in the scenario.
        release: String,
        /// By whose way.
        by: Installer,
    },
    /// The cluster is upgraded to a release.
    Upgrade {
        /// Its name in the scenario.
        release: String,
        /// The release that is taken instead when Scantling refuses the first.
        if_refused: Option<String>,
    },
    /// A person opens a notebook.
    Open(Open),
    /// A person closes a notebook.
    Close {
        /// Whose.
        person: String,
    },
    /// A person makes a project (a namespace) of their own.
    Project {
        /// Whose.
        person: String,
        /// The namespace.
        name: String,
    },
    /// A person deploys a model.
    Deploy(Deploy),
    /// A person changes something by hand.
    Edit {
        /// Who.
        person: String,
        /// What, as API calls.
        steps: Vec<Step>,
    },
    /// Nothing happens for a while.
    Wait(jiff::SignedDuration),
}

/// By whose way a release is installed before the upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Installer {
    /// By the script of `shipped.install`.
    Vendor,
    /// By Scantling; with `--as-shipped` by the vendor's way all the same.
    Scantling,
}

/// A person opens a notebook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Open {
    /// Who.
    pub person: String,
    /// What they choose on the spawner's screen: `STREAM:TAG`.
    pub image: String,
    /// The node that the pod is to land on; the scheduler's choice if absent.
    #[serde(default)]
    pub node: Option<String>,
}

/// A person deploys a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deploy {
    /// Who.
    pub person: String,
    /// The namespace.
    pub project: String,
    /// The model's name.
    pub model: String,
}

/// The vendor's way, each part a list of API calls.
#[derive(Debug, Clone, Default)]
pub struct Shipped {
    /// Installs a release on an empty cluster.
    pub install: Vec<Step>,
    /// Upgrades to a release.
    pub upgrade: Vec<Step>,
    /// Opens a notebook (`${person}`, `${image}`, `${node}`).
    pub open: Vec<Step>,
    /// Closes one (`${person}`).
    pub close: Vec<Step>,
    /// Deploys a model (`${person}`, `${project}`, `${model}`).
    pub deploy: Vec<Step>,
}

/// A way round the incident.
#[derive(Debug, Clone)]
pub struct Variant {
    /// What is done, in the report's words.
    pub about: String,
    /// Done just before the upgrade, or after it and before the next thing of a kind.
    pub before: Before,
    /// What is done.
    pub steps: Vec<Step>,
    /// What decides whether it ended well.
    pub must_hold: Vec<Promise>,
}

/// Before which event of the story a variant's steps run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// The upgrade.
    Upgrade,
    /// The first notebook that is opened after the upgrade.
    Open,
    /// The first model that is deployed after the upgrade.
    Deploy,
}

impl Scenario {
    /// Folders of releases that lie outside of the example's own folder, as it writes them. Their files are read by whoever
    /// reads those of the example, and put among them under these paths.
    ///
    /// # Errors
    /// When the example's file cannot be read.
    pub fn outside(files: &Tree) -> Result<Vec<String>, ScenarioError> {
        let file: ScenarioFile = decode_file(files, SCENARIO_FILE)?.ok_or(ScenarioError::NotAnExample)?;
        let mut outside: Vec<String> = file
            .releases
            .into_values()
            .map(|folder| folder.trim_end_matches('/').to_owned())
            .filter(|folder| folder.starts_with("../"))
            .collect();
        outside.sort();
        outside.dedup();
        Ok(outside)
    }

    /// Reads an example from the files of its folder.
    pub fn read(files: &Tree) -> Result<Self, ScenarioError> {
        let file: ScenarioFile = decode_file(files, SCENARIO_FILE)?.ok_or(ScenarioError::NotAnExample)?;
        let meaning = |what: String| ScenarioError::Meaning { file: SCENARIO_FILE.to_owned(), what };
        if file.api_version != "scantling.dev/v1alpha1" || file.kind != "Rehearsal" {
            return Err(meaning(format!(
                "apiVersion and kind are {} and {}; a rehearsal has scantling.dev/v1alpha1 and Rehearsal",
                file.api_version, file.kind
            )));
        }
        if file.cluster.nodes.is_empty() {
            return Err(meaning("cluster.nodes is empty: add at least one node".to_owned()));
        }
        let images = decode_file(files, &file.images)?.ok_or_else(|| ScenarioError::MissingFile {
            from: SCENARIO_FILE.to_owned(),
            path: file.images.clone(),
        })?;
        let mut releases = BTreeMap::new();
        for (name, folder) in &file.releases {
            releases.insert(name.clone(), read_release(files, folder, &file.settings)?);
        }
        let scenario = Self {
            title: file.title,
            about: file.about.trim().to_owned(),
            cluster: file.cluster,
            images,
            notebooks_namespace: file.notebooks_namespace,
            releases,
            advisories: file.advisories,
            story: file
                .story
                .into_iter()
                .enumerate()
                .map(|(index, event)| {
                    event.check().map_err(|what| meaning(format!("story[{index}]: {what}")))
                })
                .collect::<Result<_, _>>()?,
            shipped: Shipped {
                install: checked("shipped.install", file.shipped.install)?,
                upgrade: checked("shipped.upgrade", file.shipped.upgrade)?,
                open: checked("shipped.open", file.shipped.open)?,
                close: checked("shipped.close", file.shipped.close)?,
                deploy: checked("shipped.deploy", file.shipped.deploy)?,
            },
            variants: file
                .variants
                .into_iter()
                .map(|(name, variant)| {
                    let steps = checked(&format!("variants.{name}.steps"), variant.steps)?;
                    let VariantFile { about, before, must_hold, .. } =
                        VariantFile { steps: Vec::new(), ..variant };
                    Ok((name, Variant { about, before, steps, must_hold }))
                })
                .collect::<Result<_, ScenarioError>>()?,
            must_hold: file.must_hold,
        };
        scenario.check_names().map_err(meaning)?;
        let judged = scenario.variants.values().map(|variant| &variant.must_hold);
        if judged.chain([&scenario.must_hold]).any(Vec::is_empty) {
            return Err(meaning(
                "mustHold is empty: name at least one promise, or nothing decides".to_owned(),
            ));
        }
        Ok(scenario)
    }

    /// The release of that name; [`Scenario::read`] made sure that the story's names exist.
    pub fn release(&self, name: &str) -> Option<&ScenarioRelease> {
        self.releases.get(name)
    }

    /// The hosts of registries that the example publishes images in, each once.
    pub fn registries(&self) -> Vec<String> {
        let names = self.images.images.iter().flat_map(|image| &image.push);
        let mut hosts: Vec<String> = names
            .filter_map(|name| Some(scantling_image::Reference::parse(name).ok()?.registry().to_owned()))
            .collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }

    fn check_names(&self) -> Result<(), String> {
        let nodes: Vec<&str> = self.cluster.nodes.iter().map(|node| node.name.as_str()).collect();
        for (index, node) in nodes.iter().enumerate() {
            let is_label = |part: &str| {
                let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                !part.is_empty() && part.chars().all(inside) && !part.starts_with('-') && !part.ends_with('-')
            };
            if node.len() > 253 || !node.split('.').all(is_label) {
                return Err(format!("cluster.nodes[{index}]: {node:?} is not a name like worker-a"));
            }
            if nodes.iter().filter(|other| *other == node).count() > 1 {
                return Err(format!("cluster.nodes[{index}]: there are two nodes {node}"));
            }
        }
        if nodes.len() > NODES_MAX || self.story.len() > STORY_MAX {
            return Err(format!(
                "a rehearsal has at most {NODES_MAX} nodes and {STORY_MAX} entries in its story"
            ));
        }
        for (index, event) in self.story.iter().enumerate() {
            match event {
                Event::Install { release, .. }
                | Event::Upgrade { release, .. }
                | Event::Upgrade { if_refused: Some(release), .. }
                    if !self.releases.contains_key(release) =>
                {
                    let known: Vec<&str> = self.releases.keys().map(String::as_str).collect();
                    return Err(format!(
                        "story[{index}]: there is no release {release:?}; releases has {}",
                        known.join(", ")
                    ));
                }
                Event::Open(Open { node: Some(node), .. }) if !nodes.contains(&node.as_str()) => {
                    return Err(format!(
                        "story[{index}]: there is no node {node:?}; nodes are {}",
                        nodes.join(", ")
                    ));
                }
                _ => {}
            }
        }
        let upgrades = self.story.iter().filter(|event| matches!(event, Event::Upgrade { .. })).count();
        if upgrades != 1 {
            return Err(format!("story: it has {upgrades} upgrades; a rehearsal has exactly one"));
        }
        Ok(())
    }
}

pub(crate) fn duration(text: &str) -> Result<jiff::SignedDuration, String> {
    let duration: jiff::SignedDuration =
        text.parse().map_err(|_| format!("{text:?} is not a duration; write it like 8h or 30m"))?;
    if duration.is_negative() || duration > WAIT_MAX {
        return Err(format!("{text} is not between 0 and 90 days"));
    }
    Ok(duration)
}

fn checked(place: &str, steps: Vec<steps::StepFile>) -> Result<Vec<Step>, ScenarioError> {
    steps
        .into_iter()
        .enumerate()
        .map(|(index, step)| {
            step.check().map_err(|error| ScenarioError::Meaning {
                file: SCENARIO_FILE.to_owned(),
                what: format!("{place}[{index}]: {error}"),
            })
        })
        .collect()
}

fn read_release(files: &Tree, folder: &str, settings: &Settings) -> Result<ScenarioRelease, ScenarioError> {
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    let tree: Tree = files
        .iter()
        .filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?.to_owned(), bytes.clone())))
        .collect();
    if tree.is_empty() {
        return Err(ScenarioError::MissingFile { from: SCENARIO_FILE.to_owned(), path: prefix });
    }
    let release = Release::read_at(folder.trim_end_matches('/'), &tree, settings)
        .map_err(|source| ScenarioError::Release { folder: folder.to_owned(), source })?;
    Ok(ScenarioRelease { folder: folder.trim_end_matches('/').to_owned(), tree, release })
}

fn decode_file<T: serde::de::DeserializeOwned>(files: &Tree, path: &str) -> Result<Option<T>, ScenarioError> {
    let Some(bytes) = files.get(path) else { return Ok(None) };
    let documents = scantling_yaml::parse(bytes)
        .map_err(|source| ScenarioError::Yaml { file: path.to_owned(), source: Box::new(source) })?;
    let [document] = documents.as_slice() else {
        return Err(ScenarioError::Meaning {
            file: path.to_owned(),
            what: format!("it holds {} documents; it has to be one", documents.len()),
        });
    };
    scantling_yaml::decode(&document.root).map(Some).map_err(|source| {
        let text = String::from_utf8_lossy(bytes);
        let (line, column) = scantling_yaml::LineIndex::new(&text).position(source.span.start);
        ScenarioError::Form { file: path.to_owned(), line, column, source: Box::new(source) }
    })
}
