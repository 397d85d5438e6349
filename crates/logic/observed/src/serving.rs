//! Model serving (serving.kserve.io).

use scantling_api::kserve::{InferenceServiceSpec, ServingRuntimeSpec};
use scantling_api::object;
use serde_json::Value;

use crate::view::{View as _, view};

view!(
    /// A runtime of one namespace.
    ServingRuntime, "serving.kserve.io", "ServingRuntime"
);

view!(
    /// A runtime for every namespace.
    ClusterServingRuntime, "serving.kserve.io", "ClusterServingRuntime"
);

view!(
    /// A model that is served.
    InferenceService, "serving.kserve.io", "InferenceService"
);

fn spec<'a, T: serde::Deserialize<'a>>(object: &'a Value) -> Result<T, serde_json::Error> {
    T::deserialize(object.get("spec").unwrap_or(&Value::Null))
}

impl ServingRuntime<'_> {
    /// Its spec.
    pub fn spec(self) -> Result<ServingRuntimeSpec, serde_json::Error> {
        spec(self.object())
    }
}

impl ClusterServingRuntime<'_> {
    /// Its spec.
    pub fn spec(self) -> Result<ServingRuntimeSpec, serde_json::Error> {
        spec(self.object())
    }
}

impl<'a> InferenceService<'a> {
    /// Its spec.
    pub fn spec(self) -> Result<InferenceServiceSpec, serde_json::Error> {
        spec(self.object())
    }

    /// `metadata.generation`: grows with every change of the spec. 0 where none is written.
    pub fn generation(self) -> i64 {
        self.object().pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
    }

    /// A text of its status, empty if there is none.
    pub fn status_text(self, name: &str) -> &'a str {
        object::text(self.object(), &format!("/status/{name}"))
    }
}
