//! Which runtime serves a model.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use scantling_api::kserve::{ModelSpec, ServingRuntimeSpec};
use scantling_api::object;
use scantling_observed::{ClusterServingRuntime, InferenceService, Observed, ServingRuntime, View as _};
use serde_json::Value;

use super::refusal::{Failure, Refusal};
use super::status::RUNTIME_RESOLVED;

/// Most names that a message lists.
const MAX_LISTED: usize = 20;
/// The protocol of a service that writes none.
const DEFAULT_PROTOCOL: &str = "v1";
/// Protocols in the order in which runtimes that speak them are preferred; a runtime that names none comes last.
const PROTOCOLS: &[&str] = &["v1", "v2", "grpc-v1", "grpc-v2"];

/// A runtime.
#[derive(Debug, Clone)]
pub(crate) struct Runtime<'a> {
    pub(crate) object: &'a Value,
    pub(crate) spec: ServingRuntimeSpec,
}

impl Runtime<'_> {
    pub(crate) fn name(&self) -> &str {
        object::name(self.object)
    }

    pub(crate) fn is_of_cluster(&self) -> bool {
        object::namespace(self.object).is_none()
    }

    /// `ServingRuntime NAME` or `ClusterServingRuntime NAME`.
    pub(crate) fn described(&self) -> String {
        format!("{} {}", object::text(self.object, "/kind"), self.name())
    }
}

/// The runtime of a service.
#[derive(Debug, Clone)]
pub(crate) struct Chosen<'a> {
    pub(crate) runtime: Runtime<'a>,
    /// It was not the one that the status remembers; that one, if there was one.
    pub(crate) instead_of: Option<String>,
}

/// What a choice depends on besides the runtimes. While it stays, a resolved runtime stays.
pub(crate) fn chosen_for(model: &ModelSpec) -> String {
    let format = &model.model_format;
    let version = format.version.as_deref().map(|version| format!(":{version}")).unwrap_or_default();
    let named = model.runtime.as_deref().map(|name| format!(" by {name}")).unwrap_or_default();
    format!("{}{version} {}{named}", format.name, protocol(model))
}

fn protocol(model: &ModelSpec) -> &str {
    model.protocol_version.as_deref().unwrap_or(DEFAULT_PROTOCOL)
}

/// Chooses: the named runtime; else the one that the status remembers, while it still serves the model; else by the rules of KServe.
pub(crate) fn choose<'a>(
    observed: &'a Observed,
    service: InferenceService<'a>,
    model: &ModelSpec,
) -> Result<Chosen<'a>, Refusal> {
    let namespace = service.namespace();
    if let Some(name) = model.runtime.as_deref().filter(|name| !name.is_empty()) {
        let runtime = named(observed, namespace, name)?;
        fits_named(&runtime, model)?;
        return Ok(Chosen { runtime, instead_of: None });
    }
    let candidates = candidates(observed, namespace, model);
    let remembered = remembered(service).filter(|_| {
        let chosen_for = service.status_text("runtimeChosenFor");
        chosen_for.is_empty() || chosen_for == self::chosen_for(model)
    });
    if let Some((of_cluster, name)) = remembered {
        let same = |runtime: &&Runtime<'a>| runtime.name() == name && runtime.is_of_cluster() == of_cluster;
        if let Some(runtime) = candidates.iter().find(same) {
            return Ok(Chosen { runtime: runtime.clone(), instead_of: None });
        }
    }
    match candidates.into_iter().next() {
        Some(runtime) => Ok(Chosen { runtime, instead_of: remembered.map(|(_, name)| name.to_owned()) }),
        None => Err(nobody(observed, namespace, model, remembered.map(|(_, name)| name))),
    }
}

/// The runtime that the status names: whether it is one of the cluster, and its name.
pub(crate) fn remembered(service: InferenceService<'_>) -> Option<(bool, &str)> {
    let [own, cluster] =
        ["servingRuntimeName", "clusterServingRuntimeName"].map(|name| service.status_text(name));
    match (own, cluster) {
        ("", "") => None,
        ("", cluster) => Some((true, cluster)),
        (own, _) => Some((false, own)),
    }
}

/// Runtimes that serve the model without being named, the one to take first.
///
/// Rules: `https://kserve.github.io/website/docs/concepts/resources/servingruntime`, and `GetSupportingRuntimes` in KServe's source for what
/// that page leaves open: those of the namespace before those of the cluster; among them by the lowest protocol, the newest, the name; then
/// by priority, those without one last.
fn candidates<'a>(observed: &'a Observed, namespace: &str, model: &ModelSpec) -> Vec<Runtime<'a>> {
    let fits = |runtime: &Runtime<'a>| {
        let spec = &runtime.spec;
        !spec.is_disabled()
            && !spec.is_multi_model()
            && supports(spec, model, true)
            && spec.speaks(protocol(model))
    };
    let mut own: Vec<Runtime<'a>> =
        runtimes(observed, namespace).into_iter().filter_map(Result::ok).filter(fits).collect();
    let rank = |runtime: &Runtime<'a>| {
        let spoken = runtime.spec.protocol_versions.iter();
        let lowest = spoken.filter_map(|spoken| PROTOCOLS.iter().position(|known| known == spoken)).min();
        let priority = runtime
            .spec
            .supported_model_formats
            .iter()
            .find(|format| format.name == model.model_format.name)
            .and_then(|format| format.priority);
        (
            runtime.is_of_cluster(),
            Reverse(priority),
            lowest.unwrap_or(PROTOCOLS.len()),
            Reverse(object::text(runtime.object, "/metadata/creationTimestamp").to_owned()),
            runtime.name().to_owned(),
        )
    };
    own.sort_by_cached_key(rank);
    own
}

/// Does a runtime serve a model's format? Without being named only with `autoSelect`.
fn supports(spec: &ServingRuntimeSpec, model: &ModelSpec, auto: bool) -> bool {
    spec.supported_model_formats.iter().any(|format| {
        format.name == model.model_format.name
            && (!auto || format.auto_select == Some(true))
            && (model.model_format.version.is_none() || format.version == model.model_format.version)
    })
}

/// Every runtime that a namespace sees. One whose spec does not parse: its name and why.
fn runtimes<'a>(observed: &'a Observed, namespace: &str) -> Vec<Result<Runtime<'a>, (String, String)>> {
    let read = |object: &'a Value, spec: Result<ServingRuntimeSpec, serde_json::Error>| match spec {
        Ok(spec) => Ok(Runtime { object, spec }),
        Err(error) => Err((object::name(object).to_owned(), error.to_string())),
    };
    let own = observed.all::<ServingRuntime<'_>>().filter(|runtime| runtime.namespace() == namespace);
    let own = own.filter(|runtime| !runtime.is_being_deleted());
    let own = own.map(|runtime| read(runtime.object(), runtime.spec()));
    let cluster = observed.all::<ClusterServingRuntime<'_>>();
    let cluster = cluster.filter(|runtime| !runtime.is_being_deleted());
    own.chain(cluster.map(|runtime| read(runtime.object(), runtime.spec()))).collect()
}

fn refuse(reason: &'static str, failure: Failure, message: String) -> Refusal {
    Refusal { condition: RUNTIME_RESOLVED, reason, failure, message }
}

/// The runtime of that name: of the namespace, else of the cluster.
fn named<'a>(observed: &'a Observed, namespace: &str, name: &str) -> Result<Runtime<'a>, Refusal> {
    let own: Option<ServingRuntime<'a>> = observed.one(namespace, name);
    let (object, spec) = match own.filter(|runtime| !runtime.is_being_deleted()) {
        Some(runtime) => (runtime.object(), runtime.spec()),
        None => match observed.one::<ClusterServingRuntime<'a>>("", name) {
            Some(runtime) if !runtime.is_being_deleted() => (runtime.object(), runtime.spec()),
            _ => {
                let known: BTreeSet<String> = runtimes(observed, namespace)
                    .into_iter()
                    .filter_map(Result::ok)
                    .filter(|runtime| !runtime.spec.is_disabled() && !runtime.spec.is_multi_model())
                    .map(|runtime| runtime.name().to_owned())
                    .collect();
                let message = format!(
                    "there is no runtime {name:?}, neither in namespace {namespace} nor for the cluster; {}",
                    listed(&known, "there is none to name", "name one of")
                );
                return Err(refuse("RuntimeNotFound", Failure::RuntimeNotRecognized, message));
            }
        },
    };
    match spec {
        Ok(spec) => Ok(Runtime { object, spec }),
        Err(error) => Err(refuse(
            "RuntimeMalformed",
            Failure::InvalidPredictorSpec,
            format!("the spec of runtime {name:?} does not parse: {error}; correct the runtime"),
        )),
    }
}

fn fits_named(runtime: &Runtime<'_>, model: &ModelSpec) -> Result<(), Refusal> {
    let (described, spec) = (runtime.described(), &runtime.spec);
    if spec.is_disabled() {
        let message = format!("{described} is disabled: enable it, or name another");
        return Err(refuse("RuntimeDisabled", Failure::RuntimeDisabled, message));
    }
    if spec.is_multi_model() {
        let message = format!(
            "{described} serves many models in one pod (multiModel), which is not supported: name another"
        );
        return Err(refuse("RuntimeNotSupported", Failure::NoSupportingRuntime, message));
    }
    if !supports(spec, model, false) {
        let formats: BTreeSet<String> = spec.supported_model_formats.iter().map(format_text).collect();
        let message = format!(
            "{described} does not serve the format {}; {}",
            wanted_text(model),
            listed(&formats, "it serves none", "it serves")
        );
        return Err(refuse("NoSupportingRuntime", Failure::NoSupportingRuntime, message));
    }
    if let Some(protocol) = model.protocol_version.as_deref().filter(|protocol| !spec.speaks(protocol)) {
        let message =
            format!("{described} does not speak {protocol}; it speaks {}", spec.protocol_versions.join(", "));
        return Err(refuse("NoSupportingRuntime", Failure::NoSupportingRuntime, message));
    }
    Ok(())
}

/// Why nobody serves the model, and the nearest thing that would help.
fn nobody(observed: &Observed, namespace: &str, model: &ModelSpec, gone: Option<&str>) -> Refusal {
    let all: Vec<Runtime<'_>> = runtimes(observed, namespace).into_iter().filter_map(Result::ok).collect();
    let usable =
        || all.iter().filter(|runtime| !runtime.spec.is_disabled() && !runtime.spec.is_multi_model());
    let gone = gone
        .map(|name| format!("the runtime {name} that it had is gone or no longer serves it; "))
        .unwrap_or_default();
    let wanted = wanted_text(model);
    let other_protocol = usable().find(|runtime| supports(&runtime.spec, model, true));
    let unselected = usable().find(|runtime| supports(&runtime.spec, model, false));
    let help = if let Some(runtime) = other_protocol {
        format!(
            "{} serves it by protocol {}: write that into model.protocolVersion",
            runtime.described(),
            runtime.spec.protocol_versions.join(" or ")
        )
    } else if let Some(runtime) = unselected {
        format!("{} serves it, but only when it is named: write it into model.runtime", runtime.described())
    } else {
        let formats: BTreeSet<String> = usable()
            .flat_map(|runtime| runtime.spec.supported_model_formats.iter().map(format_text))
            .collect();
        listed(&formats, "there is no runtime that could be used", "formats that are served here")
    };
    let message =
        format!("{gone}no runtime serves the format {wanted} by protocol {}: {help}", protocol(model));
    refuse("NoSupportingRuntime", Failure::NoSupportingRuntime, message)
}

fn wanted_text(model: &ModelSpec) -> String {
    let version =
        model.model_format.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("{}{version}", model.model_format.name)
}

fn format_text(format: &scantling_api::kserve::SupportedModelFormat) -> String {
    let version = format.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("{}{version}", format.name)
}

fn listed(names: &BTreeSet<String>, none: &str, some: &str) -> String {
    if names.is_empty() {
        return none.to_owned();
    }
    let shown: Vec<&str> = names.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = names.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{some} {}{more}", shown.join(", "))
}
