//! Hardware profiles: how much of a node a notebook gets, and on which nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::view::{View as _, view};

view!(
    /// A hardware profile.
    HardwareProfile, "infrastructure.opendatahub.io", "HardwareProfile"
);

/// What a profile gives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareProfileSpec {
    /// The resources.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["identifier"]))]
    pub identifiers: Vec<HardwareResource>,
    /// Where its pods go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<HardwareScheduling>,
}

/// How much there is of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareResource {
    /// What screens show.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The resource as nodes name it: `cpu`, `memory`, `nvidia.com/gpu`.
    pub identifier: String,
    /// The least that can be asked for.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(extend("x-kubernetes-int-or-string" = true))]
    pub min_count: Value,
    /// The most that can be asked for.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(extend("x-kubernetes-int-or-string" = true))]
    pub max_count: Value,
    /// What is given to those who ask for nothing.
    #[schemars(extend("x-kubernetes-int-or-string" = true))]
    pub default_count: Value,
    /// `CPU`, `Memory` or `Accelerator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
}

/// Where pods go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareScheduling {
    /// `Node`: to nodes, as `node` says. `Queue`: through a queue of Kueue, as `kueue` says.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// To which nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodePlacement>,
    /// Through which queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kueue: Option<QueuePlacement>,
}

/// To which nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlacement {
    /// Labels that the node has.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pod stands, as pods write them.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub tolerations: Vec<Value>,
}

/// Through which queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuePlacement {
    /// The queue in the notebook's namespace.
    #[serde(default)]
    pub local_queue_name: String,
    /// The class of its priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class: Option<String>,
}

impl HardwareProfile<'_> {
    /// Its spec. The error says what cannot be read.
    pub fn spec(self) -> Result<HardwareProfileSpec, serde_json::Error> {
        match self.object().get("spec") {
            Some(spec) => HardwareProfileSpec::deserialize(spec),
            None => Ok(HardwareProfileSpec::default()),
        }
    }
}

impl HardwareResource {
    /// What is given, as pods write it.
    pub fn quantity(&self) -> Option<String> {
        match &self.default_count {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}
