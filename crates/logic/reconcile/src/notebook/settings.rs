//! What a notebook asks for besides its image: a hardware profile, a volume, who may reach it. All of it is read before anything is made.

use std::collections::{BTreeMap, BTreeSet};

use scantling_observed::{HardwareProfile, Notebook, Observed, View as _, annotations};
use serde_json::{Value, json};

use super::resolve::{MAX_LISTED, Refusal};
use crate::applied::quantity;
use crate::context::Context;
use crate::isolation::allowed_namespaces;

/// Everything that was asked for and can be given.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) profile: Profile,
    pub(super) volume: Option<Volume>,
    /// Namespaces whose pods get an answer.
    pub(super) allowed: BTreeSet<String>,
    /// Whether the pod gets a group for its volumes. Where a security context constraint hands out groups, it does not.
    pub(super) sets_group: bool,
}

/// What a hardware profile gives to a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Profile {
    /// Amounts by resource.
    pub(super) resources: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
    pub(super) tolerations: Vec<Value>,
    /// The queue that the pod goes through, and the class of its priority.
    pub(super) queue: Option<String>,
    pub(super) priority_class: Option<String>,
}

/// A volume of the notebook's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) size: String,
    pub(super) class: Option<String>,
}

/// Set by OpenShift on namespaces in which constraints hand out users and groups.
const ASSIGNED_RANGE: &str = "openshift.io/sa.scc.uid-range";

/// Reads what a notebook asks for.
pub(super) fn settings(
    notebook: Notebook<'_>,
    observed: &Observed,
    context: &Context<'_>,
) -> Result<Settings, Refusal> {
    let allowed = allowed_namespaces(notebook.annotation(crate::isolation::ALLOW_FROM))
        .map_err(|message| Refusal { reason: "InvalidAnnotation", message })?;
    let namespace = observed.get(&scantling_api::ObjectKey {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: None,
        name: notebook.namespace().to_owned(),
    });
    let assigned =
        namespace.is_some_and(|object| scantling_api::object::annotation(object, ASSIGNED_RANGE).is_some());
    Ok(Settings {
        profile: profile(notebook, observed, context)?,
        volume: volume(notebook)?,
        allowed,
        sets_group: !assigned,
    })
}

fn volume(notebook: Notebook<'_>) -> Result<Option<Volume>, Refusal> {
    let Some(size) = notebook.annotation(annotations::VOLUME_SIZE) else { return Ok(None) };
    if quantity(size).is_none_or(|thousandths| thousandths <= 0) {
        return Err(Refusal {
            reason: "InvalidAnnotation",
            message: format!(
                "the annotation {} is {size:?}, which is no size: write one such as 10Gi",
                annotations::VOLUME_SIZE
            ),
        });
    }
    let class = notebook.annotation(annotations::VOLUME_CLASS).map(str::to_owned);
    Ok(Some(Volume { size: size.to_owned(), class }))
}

fn profile(notebook: Notebook<'_>, observed: &Observed, context: &Context<'_>) -> Result<Profile, Refusal> {
    let name = notebook.annotation(annotations::PROFILE).filter(|name| !name.is_empty());
    let Some(name) = name else { return Ok(Profile::default()) };
    let namespace = notebook.annotation(annotations::PROFILE_NAMESPACE).filter(|name| !name.is_empty());
    let namespace = namespace.unwrap_or(context.namespace);
    let Some(found) = observed.one::<HardwareProfile<'_>>(namespace, name) else {
        let known: Vec<&str> = observed
            .all::<HardwareProfile<'_>>()
            .filter(|profile| profile.namespace() == namespace)
            .map(HardwareProfile::name)
            .take(MAX_LISTED)
            .collect();
        let known = if known.is_empty() { "no profile".to_owned() } else { known.join(", ") };
        return Err(Refusal {
            reason: "UnknownProfile",
            message: format!(
                "no hardware profile {name:?} in namespace {namespace}, which has {known}: choose one in the annotation {}",
                annotations::PROFILE
            ),
        });
    };
    let broken = |why: String| Refusal {
        reason: "BrokenProfile",
        message: format!(
            "HardwareProfile {namespace}/{name} cannot be used: {why}; correct it or choose another"
        ),
    };
    let spec = found.spec().map_err(|error| broken(error.to_string()))?;
    let mut profile = Profile::default();
    for resource in spec.identifiers {
        let amount = resource
            .quantity()
            .filter(|amount| quantity(amount).is_some())
            .ok_or_else(|| broken(format!("the default count of {} is no amount", resource.identifier)))?;
        profile.resources.insert(resource.identifier, amount);
    }
    let scheduling = spec.scheduling.unwrap_or_default();
    if let Some(node) = scheduling.node {
        profile.node_selector = node.node_selector;
        profile.tolerations = node.tolerations;
    }
    if let Some(kueue) = scheduling.kueue {
        profile.queue = Some(kueue.local_queue_name).filter(|name| !name.is_empty());
        profile.priority_class = kueue.priority_class;
    }
    Ok(profile)
}

/// The name of a notebook's own volume, as existing clients call the volumes that they make for a notebook.
pub(super) fn volume_name(notebook: Notebook<'_>) -> String {
    format!("{}-volume", notebook.name())
}

impl Volume {
    /// The claim. Nobody owns it, so it stays when the notebook goes, and a notebook of the same name finds it again.
    pub(super) fn claim(&self, notebook: Notebook<'_>) -> Value {
        let mut spec = json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": self.size}},
        });
        if let Some(class) = &self.class {
            spec["storageClassName"] = json!(class);
        }
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": volume_name(notebook),
                "namespace": notebook.namespace(),
                "labels": {"app": notebook.name(), "notebook-name": notebook.name()},
            },
            "spec": spec,
        })
    }
}
