//! `ServingRuntime` and `ClusterServingRuntime`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Raw;

/// How models of some formats are served: the pod that does it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ServingRuntimeSpec {
    /// Formats of models that it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supported_model_formats: Vec<SupportedModelFormat>,
    /// Serves many models in one pod. Such runtimes are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_model: Option<bool>,
    /// Not to be used for any model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Protocols that it speaks: `v1`, `v2`, `grpc-v1`, `grpc-v2`. None means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocol_versions: Vec<String>,
    /// Labels of its pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of its pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Containers of its pods, as Kubernetes has them; the one called `kserve-container` serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Raw>,
    /// Several pods for one model. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_spec: Option<Raw>,
    /// Fields of a pod: `volumes`, `nodeSelector`, `affinity`, `tolerations`, `imagePullSecrets` …; and fields for serving many models.
    #[serde(flatten)]
    pub pod: Raw,
}

/// A format of models that a runtime serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportedModelFormat {
    /// Its name, such as `sklearn`.
    pub name: String,
    /// Its version, as the model has to write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether models of this format may get this runtime without naming it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_select: Option<bool>,
    /// Among runtimes for the same format, the highest is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

impl ServingRuntimeSpec {
    /// May it not be used?
    pub fn is_disabled(&self) -> bool {
        self.disabled == Some(true)
    }

    /// Does it serve many models in one pod?
    pub fn is_multi_model(&self) -> bool {
        self.multi_model == Some(true)
    }

    /// Does it speak this protocol? One that names none speaks all.
    pub fn speaks(&self, protocol: &str) -> bool {
        self.protocol_versions.is_empty() || self.protocol_versions.iter().any(|own| own == protocol)
    }
}
