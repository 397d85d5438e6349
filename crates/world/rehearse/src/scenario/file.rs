//! What `rehearsal.yaml` says, as written: the types that it is decoded into.

use std::collections::BTreeMap;

use scantling_release::Settings;
use serde::Deserialize;

use super::steps::StepFile;
use super::{Advisory, Before, ClusterDescription, Deploy, Event, Installer, Open, duration};
use crate::promises::Promise;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScenarioFile {
    /// Always `scantling.dev/v1alpha1`.
    pub(super) api_version: String,
    /// Always `Rehearsal`.
    pub(super) kind: String,
    /// What the incident is called.
    pub(super) title: String,
    /// What happened, in a sentence or two.
    #[serde(default)]
    pub(super) about: String,
    /// The cluster that it happens on.
    pub(super) cluster: ClusterDescription,
    /// The file that says what registries hold and builds make, relative to this one.
    pub(super) images: String,
    /// Where Scantling's spawner keeps people's notebooks; the release's own namespace if not given.
    #[serde(default)]
    pub(super) notebooks_namespace: Option<String>,
    /// Folders of releases, relative to this file, by the names that the story uses. Such a folder may lie outside of the
    /// example's: `../../releases/2026.1`.
    pub(super) releases: BTreeMap<String, String>,
    /// What is decided about the releases, where they leave something to their admin.
    #[serde(default)]
    pub(super) settings: Settings,
    /// What is known to be wrong with which versions; shown beside what runs.
    #[serde(default)]
    pub(super) advisories: Vec<Advisory>,
    /// Who does what, in this order; each entry is one of these.
    pub(super) story: Vec<EventFile>,
    /// The vendor's way of doing things, as lists of API calls.
    pub(super) shipped: ShippedFile,
    /// Ways round the incident, by name.
    #[serde(default)]
    pub(super) variants: BTreeMap<String, VariantFile>,
    /// What decides the exit code.
    pub(super) must_hold: Vec<Promise>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ShippedFile {
    /// Installs a release on an empty cluster.
    #[serde(default)]
    pub(super) install: Vec<StepFile>,
    /// Upgrades to a release; also what `--fresh` runs on an empty cluster.
    #[serde(default)]
    pub(super) upgrade: Vec<StepFile>,
    /// Opens a notebook (`${person}`, `${image}`, `${node}`).
    #[serde(default)]
    pub(super) open: Vec<StepFile>,
    /// Closes one (`${person}`).
    #[serde(default)]
    pub(super) close: Vec<StepFile>,
    /// Deploys a model (`${person}`, `${project}`, `${model}`).
    #[serde(default)]
    pub(super) deploy: Vec<StepFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VariantFile {
    /// What is done, in the report's words.
    pub(super) about: String,
    /// When it is done.
    pub(super) before: Before,
    /// What is done, as API calls.
    pub(super) steps: Vec<StepFile>,
    /// What decides the exit code when this variant is taken.
    pub(super) must_hold: Vec<Promise>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EventFile {
    /// A release, by its name under `releases`, is installed on the empty cluster.
    pub(super) install: Option<String>,
    /// Beside `install`: always by the vendor's own way, whoever does the upgrade.
    pub(super) by: Option<Installer>,
    /// The cluster is upgraded to a release, by its name under `releases`. There is exactly one upgrade.
    pub(super) upgrade: Option<String>,
    /// The release that is taken instead when Scantling refuses the first; beside `upgrade`.
    pub(super) if_refused: Option<String>,
    /// A person opens a notebook.
    pub(super) open: Option<Open>,
    /// A person closes a notebook.
    pub(super) close: Option<PersonFile>,
    /// A person makes a project (a namespace) of their own.
    pub(super) project: Option<ProjectFile>,
    /// A person deploys a model.
    pub(super) deploy: Option<Deploy>,
    /// A person changes something by hand.
    pub(super) edit: Option<EditFile>,
    /// Nothing happens for so long, such as `8h` or `30m`; 90 days at most.
    pub(super) wait: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PersonFile {
    /// Whose.
    pub(super) person: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProjectFile {
    /// Whose.
    pub(super) person: String,
    /// The namespace.
    pub(super) name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// Who.
    pub(super) person: String,
    /// What, as API calls.
    pub(super) steps: Vec<StepFile>,
}

impl EventFile {
    pub(super) fn check(self) -> Result<Event, String> {
        let mut found = Vec::new();
        if let Some(release) = self.install {
            found.push(Event::Install { release, by: self.by.unwrap_or(Installer::Vendor) });
        } else if self.by.is_some() {
            return Err("by belongs to install".to_owned());
        }
        if let Some(release) = self.upgrade {
            found.push(Event::Upgrade { release, if_refused: self.if_refused });
        } else if self.if_refused.is_some() {
            return Err("ifRefused belongs to upgrade".to_owned());
        }
        if let Some(open) = self.open {
            found.push(Event::Open(open));
        }
        if let Some(close) = self.close {
            found.push(Event::Close { person: close.person });
        }
        if let Some(project) = self.project {
            found.push(Event::Project { person: project.person, name: project.name });
        }
        if let Some(deploy) = self.deploy {
            found.push(Event::Deploy(deploy));
        }
        if let Some(edit) = self.edit {
            let steps = edit
                .steps
                .into_iter()
                .enumerate()
                .map(|(index, step)| step.check().map_err(|error| format!("edit.steps[{index}]: {error}")))
                .collect::<Result<_, _>>()?;
            found.push(Event::Edit { person: edit.person, steps });
        }
        if let Some(wait) = self.wait {
            found.push(Event::Wait(duration(&wait)?));
        }
        match <[Event; 1]>::try_from(found) {
            Ok([event]) => Ok(event),
            Err(found) if found.is_empty() => {
                Err("it is empty; write one of install, upgrade, open, close, project, deploy, edit, wait"
                    .to_owned())
            }
            Err(_) => Err("it does two things; write one thing an entry".to_owned()),
        }
    }
}
