//! The types of a notebook, and its definition.

use scantling_observed::PackageVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::crds::{Column, Definition, Scope, schema_of};

/// The definition of `Notebook`. The length of a name is no rule of it: clusters may hold longer ones that were made before, and
/// nobody could change or delete those any more; a condition says what is wrong with them.
pub(crate) const NOTEBOOK_DEFINITION: Definition = Definition {
    about: "A notebook of one person: a pod with a Jupyter server, its volume and its address.",
    group: "kubeflow.org",
    version: "v1",
    kind: "Notebook",
    plural: "notebooks",
    short_names: &["nb"],
    categories: &["scantling"],
    scope: Scope::Namespaced,
    columns: &[
        Column::text("Selection", r".metadata.annotations.notebooks\.opendatahub\.io/last-image-selection"),
        Column::number("Ready", ".status.readyReplicas"),
        Column::text("Update", r#".status.conditions[?(@.type=="UpdatePending")].message"#),
        Column::age("Age", ".metadata.creationTimestamp"),
        Column::text("Node", ".status.running.node").wide(),
        Column::text("Running", ".status.running.digest").wide(),
    ],
    rules: &[],
    spec: schema_of::<NotebookSpec>,
    status: Some(schema_of::<NotebookStatus>),
};

/// What the owner wants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotebookSpec {
    /// The pod.
    #[serde(default)]
    pub template: NotebookTemplate,
}

/// The pod of a notebook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotebookTemplate {
    /// The spec of the pod. The container of the notebook's name, or the only one, is the notebook.
    #[serde(default)]
    pub spec: Map<String, Value>,
}

/// What is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotebookStatus {
    /// The pod's conditions, then those of the notebook itself.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<NotebookCondition>,
    /// 1 while the notebook answers.
    #[serde(default)]
    pub ready_replicas: i32,
    /// The state of the notebook's container, as the pod has it.
    #[serde(default)]
    pub container_state: Map<String, Value>,
    /// The generation of the notebook that this was said about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What the screen says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Claimed>,
    /// What the selection stands for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<DesiredImage>,
    /// What the pod runs, from its image ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningImage>,
    /// The image that has started since the notebook was last stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_image: Option<String>,
}

/// A condition, as clients of notebooks read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotebookCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word. Clients show a condition with a reason as a warning, so there is one only where somebody should look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When `status` last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    /// When the pod's condition was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_probe_time: Option<String>,
}

/// What the screen says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claimed {
    /// What was selected, `stream:tag`.
    pub selection: String,
    /// The title of that.
    pub title: String,
    /// Its packages, as the catalogue shows them.
    pub packages: Vec<PackageVersion>,
}

/// What the selection stands for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DesiredImage {
    /// The image, by digest.
    pub image: String,
    /// Its packages, where its contents are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<Vec<PackageVersion>>,
}

/// What the pod runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningImage {
    /// The digest in the pod's image ID.
    pub digest: String,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its packages, where its contents are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<Vec<PackageVersion>>,
}
