//! What a service asks for: read, and refused where it cannot be had.

use std::fmt::Write as _;

use scantling_api::kserve::{InferenceServiceSpec, ModelSpec, PredictorSpec};
use scantling_api::object;
use scantling_observed::View as _;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::fields::{self, ANNOTATIONS, DEPLOYMENT_MODE, LABELS, Use};
use super::refusal::Refusal;
use super::{MAX_REPLICAS, MAX_SERVICE_NAME, One, invalid};

/// Most sentences about one spec that a message has.
const MAX_SENTENCES: usize = 10;

impl<'a> One<'a> {
    /// The spec, if it asks for what can be had.
    pub(super) fn readable(self) -> Result<(PredictorSpec, ModelSpec), Refusal> {
        let service = self.service;
        let name = service.name();
        if name.len() > MAX_SERVICE_NAME {
            return Err(invalid(
                "NameTooLong",
                format!(
                    "the name has {} characters; labels of its pods need at most {MAX_SERVICE_NAME}: make the service anew under a shorter name",
                    name.len()
                ),
            ));
        }
        if name.contains('.') || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(invalid(
                "NameInvalid",
                format!(
                    "the name {name:?} cannot be that of a Service, which begins with a letter and has no dots: make the service anew under another name"
                ),
            ));
        }
        self.mode()?;
        for (key, value) in object::annotations(service.object()) {
            let field = ANNOTATIONS.iter().find(|field| field.path == key && field.used == Use::Refused);
            if let Some(field) = field.filter(|_| value == "true") {
                return Err(invalid(
                    "NotSupported",
                    format!("annotation {key} is not supported: {}", field.note),
                ));
            }
        }
        for label in LABELS {
            if service.label(label.path) == Some("exposed") {
                return Err(invalid(
                    "NotSupported",
                    format!(
                        "label {}: exposed is not supported: make an Ingress or a Route for the Service {}",
                        label.path,
                        self.name()
                    ),
                ));
            }
        }
        let raw = service.object().get("spec").unwrap_or(&Value::Null);
        let checked = fields::check_service(raw);
        if !checked.refused.is_empty() {
            return Err(invalid("NotSupported", sentences(&checked.refused)));
        }
        let spec = service.spec().map_err(|error| {
            invalid("SpecMalformed", format!("the spec does not parse: {error}; correct the field"))
        })?;
        let model = model_of(&spec)?;
        if model.model_format.name.is_empty() {
            return Err(invalid(
                "SpecMalformed",
                "spec.predictor.model.modelFormat.name is empty: write the format of the model",
            ));
        }
        if spec.predictor.min_replicas == Some(0) {
            return Err(invalid(
                "NotSupported",
                "spec.predictor.minReplicas: 0 is not supported, since nothing wakes a predictor: stop it with the annotation serving.kserve.io/stop: \"true\"",
            ));
        }
        if spec.predictor.min_replicas.is_some_and(|replicas| !(1..=MAX_REPLICAS).contains(&replicas)) {
            return Err(invalid(
                "SpecMalformed",
                format!("spec.predictor.minReplicas must be between 1 and {MAX_REPLICAS}"),
            ));
        }
        Ok((spec.predictor, model))
    }

    /// The mode of deployment: what the status remembers, else what the annotation says.
    pub(super) fn mode(self) -> Result<&'a str, Refusal> {
        let remembered = Some(self.service.status_text("deploymentMode")).filter(|mode| !mode.is_empty());
        let mode = remembered.or_else(|| self.service.annotation(DEPLOYMENT_MODE)).unwrap_or("Standard");
        match mode {
            "Standard" | "RawDeployment" => Ok(mode),
            mode if remembered.is_some() => Err(invalid(
                "ModeNotSupported",
                format!(
                    "the service was made in mode {mode}, which stays with it; only Standard is supported: make it anew with annotation {DEPLOYMENT_MODE}: Standard"
                ),
            )),
            mode => Err(invalid(
                "ModeNotSupported",
                format!(
                    "annotation {DEPLOYMENT_MODE}: {mode} is not supported: write Standard (or its older name RawDeployment)"
                ),
            )),
        }
    }
}

/// The account of the pods.
pub(super) fn account_of(predictor: &PredictorSpec) -> &str {
    let account = predictor.pod.get("serviceAccountName").and_then(Value::as_str);
    account.filter(|account| !account.is_empty()).unwrap_or("default")
}

/// The model: `model`, or the one field that is short for it.
pub(super) fn model_of(spec: &InferenceServiceSpec) -> Result<ModelSpec, Refusal> {
    let short: Vec<(&str, &Value)> = fields::FORMATS
        .iter()
        .filter_map(|format| Some((*format, spec.predictor.pod.get(*format)?)))
        .filter(|(_, value)| !value.is_null())
        .collect();
    match (&spec.predictor.model, short.as_slice()) {
        (Some(model), []) => Ok(model.clone()),
        (None, [(format, value)]) => {
            let mut value = (*value).clone();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("modelFormat".to_owned(), json!({"name": format}));
            }
            ModelSpec::deserialize(&value).map_err(|error| {
                invalid(
                    "SpecMalformed",
                    format!("spec.predictor.{format} does not parse: {error}; correct the field"),
                )
            })
        }
        (None, []) => {
            Err(invalid("SpecMalformed", "spec.predictor has no model: write spec.predictor.model"))
        }
        _ => Err(invalid(
            "SpecMalformed",
            "spec.predictor has several models: write one, in spec.predictor.model",
        )),
    }
}

pub(super) fn sentences(all: &[String]) -> String {
    let mut text = all.iter().take(MAX_SENTENCES).cloned().collect::<Vec<_>>().join("; ");
    let more = all.len().saturating_sub(MAX_SENTENCES);
    if more > 0 {
        let _ = write!(text, "; and {more} more");
    }
    text
}
