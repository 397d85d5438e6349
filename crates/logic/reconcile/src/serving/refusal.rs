//! Why a model is not served, or not as it should be.

/// KServe's classes of failures, as clients of `status.modelStatus.lastFailureInfo` know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    ModelLoadFailed,
    RuntimeUnhealthy,
    RuntimeDisabled,
    NoSupportingRuntime,
    RuntimeNotRecognized,
    InvalidPredictorSpec,
}

impl Failure {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::ModelLoadFailed => "ModelLoadFailed",
            Self::RuntimeUnhealthy => "RuntimeUnhealthy",
            Self::RuntimeDisabled => "RuntimeDisabled",
            Self::NoSupportingRuntime => "NoSupportingRuntime",
            Self::RuntimeNotRecognized => "RuntimeNotRecognized",
            Self::InvalidPredictorSpec => "InvalidPredictorSpec",
        }
    }
}

/// Why a predictor is not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The condition that says it.
    pub(crate) condition: &'static str,
    /// A word for the condition and the event.
    pub(crate) reason: &'static str,
    /// For clients of KServe.
    pub(crate) failure: Failure,
    /// What is wrong, where, and what to do.
    pub(crate) message: String,
}
