//! `InferenceService`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Raw;

/// A model that is served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct InferenceServiceSpec {
    /// What answers.
    pub predictor: PredictorSpec,
    /// What changes requests and answers. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformer: Option<Raw>,
    /// What explains answers. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explainer: Option<Raw>,
}

/// What answers requests: a model in a runtime.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PredictorSpec {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSpec>,
    /// How many pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Up to how many pods an autoscaler may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// Labels of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// How pods are replaced, as a Deployment has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_strategy: Option<Raw>,
    /// Fields of a pod (`serviceAccountName`, `nodeSelector`, `tolerations` …) and of KServe that are ignored or refused.
    #[serde(flatten)]
    pub pod: Raw,
}

/// A model and where it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ModelSpec {
    /// Its format.
    pub model_format: ModelFormat,
    /// The runtime, by name: a `ServingRuntime` of the namespace, else a `ClusterServingRuntime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The protocol to speak; `v1` where none is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Where it is: `pvc://CLAIM/PATH`, `http(s)://…`, `s3://BUCKET/PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_uri: Option<String>,
    /// Where it is, by a data connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageSpec>,
    /// Fields of the container (`args`, `env`, `resources` …), which are merged over those of the runtime's.
    #[serde(flatten)]
    pub container: Raw,
}

/// A format of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelFormat {
    /// Its name, such as `sklearn`.
    pub name: String,
    /// Its version; without one, any version of the name is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A place of a data connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageSpec {
    /// The data connection: a key of the secret `storage-config`, or the name of a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The path in the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Path of a schema. Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_path: Option<String>,
    /// `type` and `bucket`, over those of the data connection.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}
