//! The definitions of the kinds of model serving.

use scantling_api::kserve::{self, InferenceServiceSpec, ServingRuntimeSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::{Column, Definition, Scope, schema_of};

const RUNTIME_COLUMNS: &[Column] = &[
    Column { name: "Disabled", kind: "boolean", path: ".spec.disabled", wide: false },
    Column::text("ModelType", ".spec.supportedModelFormats[*].name"),
    Column::text("Containers", ".spec.containers[*].name"),
    Column::age("Age", ".metadata.creationTimestamp"),
    Column::text("Image", ".spec.containers[*].image").wide(),
];

/// The definition of `ServingRuntime`.
pub(crate) const RUNTIME_DEFINITION: Definition = Definition {
    about: "How models of some formats are served in one namespace: the pod that does it.",
    group: kserve::GROUP,
    version: kserve::RUNTIME_VERSION,
    kind: "ServingRuntime",
    plural: "servingruntimes",
    short_names: &[],
    categories: &["scantling"],
    scope: Scope::Namespaced,
    columns: RUNTIME_COLUMNS,
    rules: &[],
    spec: schema_of::<ServingRuntimeSpec>,
    status: None,
};

/// The definition of `ClusterServingRuntime`.
pub(crate) const CLUSTER_RUNTIME_DEFINITION: Definition = Definition {
    about: "How models of some formats are served in every namespace: the pod that does it.",
    kind: "ClusterServingRuntime",
    plural: "clusterservingruntimes",
    scope: Scope::Cluster,
    ..RUNTIME_DEFINITION
};

/// The definition of `InferenceService`. What is not supported is refused in a condition, which can say what to use instead.
pub(crate) const SERVICE_DEFINITION: Definition = Definition {
    about: "A model that is served: where it is, what serves it, and how many pods do.",
    group: kserve::GROUP,
    version: kserve::SERVICE_VERSION,
    kind: "InferenceService",
    plural: "inferenceservices",
    short_names: &["isvc"],
    categories: &["scantling"],
    scope: Scope::Namespaced,
    columns: &[
        Column::text("URL", ".status.url"),
        Column::text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#),
        Column::text("Reason", r#".status.conditions[?(@.type=="Ready")].reason"#),
        Column::text("Rollout", r#".status.conditions[?(@.type=="RolloutPending")].reason"#),
        Column::age("Age", ".metadata.creationTimestamp"),
        Column::text("Runtime", ".status.runtimeChosenFor").wide(),
        Column::text("Image", r#".status.conditions[?(@.type=="ImageResolved")].message"#).wide(),
    ],
    rules: &[],
    spec: schema_of::<InferenceServiceSpec>,
    status: Some(schema_of::<InferenceServiceStatus>),
};

/// What is, as clients of KServe read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InferenceServiceStatus {
    /// The generation of the service that this was said about.
    pub observed_generation: Option<i64>,
    /// `Standard`, or its older name `RawDeployment`.
    pub deployment_mode: Option<String>,
    /// Where pods of the cluster reach it.
    pub url: Option<String>,
    /// The same, for clients that look here.
    pub address: Option<Address>,
    /// The same, for clients that look here.
    pub components: Option<Components>,
    /// KServe's conditions and those of this platform.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<ServiceCondition>,
    /// The state of the model.
    pub model_status: Option<ModelStatus>,
    /// The runtime of the namespace that serves it.
    pub serving_runtime_name: Option<String>,
    /// The runtime of the cluster that serves it.
    pub cluster_serving_runtime_name: Option<String>,
    /// What the runtime was chosen for: format, protocol, and the name where one was written. While that stays, the runtime stays.
    pub runtime_chosen_for: Option<String>,
}

/// An address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Address {
    /// Its URL.
    pub url: Option<String>,
}

/// The parts of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Components {
    /// What answers.
    pub predictor: Option<Address>,
}

/// A condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    #[serde(default)]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default)]
    pub message: Option<String>,
    /// When `status` last changed.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
}

/// The state of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelStatus {
    /// `UpToDate`, `InProgress`, `BlockedByFailedLoad` or `InvalidSpec`.
    pub transition_status: Option<String>,
    /// What answers now, and what is to answer.
    pub states: Option<ModelStates>,
    /// How many pods have it.
    pub copies: Option<ModelCopies>,
    /// What went wrong last.
    pub last_failure_info: Option<FailureInfo>,
}

/// States of the model: `Pending`, `Loading`, `Loaded` or `FailedToLoad`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelStates {
    /// What answers now.
    pub active_model_state: Option<String>,
    /// What is declared.
    pub target_model_state: Option<String>,
}

/// How many pods have the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCopies {
    /// Those that failed.
    pub failed_copies: i64,
    /// All.
    pub total_copies: i64,
}

/// What went wrong last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureInfo {
    /// The pod.
    pub location: Option<String>,
    /// KServe's class of it.
    pub reason: Option<String>,
    /// A sentence.
    pub message: Option<String>,
    /// With which code the container ended.
    pub exit_code: Option<i64>,
}
