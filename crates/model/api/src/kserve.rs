//! KServe's kinds for serving one model (`serving.kserve.io`), as far as they are honoured, ignored or refused here.
//!
//! Fields of a pod or a container are kept as they came ([`PredictorSpec::pod`], [`ModelSpec::container`],
//! [`ServingRuntimeSpec::pod`]): Kubernetes checks them. What becomes of each field is in one table, in `scantling-reconcile`.

mod runtime;
mod service;

pub use runtime::{ServingRuntimeSpec, SupportedModelFormat};
pub use service::{InferenceServiceSpec, ModelFormat, ModelSpec, PredictorSpec, StorageSpec};

use serde_json::{Map, Value};

/// The group of the kinds.
pub const GROUP: &str = "serving.kserve.io";
/// Version of `ServingRuntime` and `ClusterServingRuntime`.
pub const RUNTIME_VERSION: &str = "v1alpha1";
/// Version of `InferenceService`.
pub const SERVICE_VERSION: &str = "v1beta1";

/// Fields whose types are those of Kubernetes, as they came.
pub type Raw = Map<String, Value>;
