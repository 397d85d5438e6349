//! The objects of a predictor.

use std::collections::BTreeSet;

use scantling_api::kserve::{ModelSpec, PredictorSpec, Raw};
use scantling_api::object;
use scantling_api::schema::Schema;
use scantling_image::{Digest, Reference};
use scantling_merge::strategic_merge_patch;
use scantling_observed::{InferenceService, View as _};
use serde_json::{Map, Value, json};

use super::fields::{FORMATS, SERVICE_FIELDS, STOP, Use};
use super::placeholder;
use super::refusal::{Failure, Refusal};
use super::rollout::ROLL;
use super::select::Runtime;
use super::status::{IMAGE_RESOLVED, RUNTIME_RESOLVED};
use super::storage::{MODEL_FOLDER, Storage};
use crate::applied::sealed;
use crate::isolation::network_policy;

/// The container of a runtime that serves the model.
pub(crate) const CONTAINER: &str = "kserve-container";
/// On the pods: the digest of the template that they were made from.
pub(crate) const TEMPLATE: &str = "scantling.dev/template";
/// On the Deployment: what the owner had written when the template was written last.
pub(crate) const WRITTEN_FOR: &str = "scantling.dev/written-for";
/// On a Deployment that was stopped for its owner, so that a start is known from an autoscaler's zero.
pub(crate) const STOPPED: &str = "scantling.dev/stopped";
/// The port of a container that declares none, as KServe has it.
const PORT: u16 = 8080;
/// The name of a port that has none. A Service finds it by its name, so a runtime whose number changes is found before and after.
const PORT_NAME: &str = "serving";
/// How long a pod that is to go still answers. Nodes and clients hear of its end a little later than it does.
const LEAVE_SECONDS: u64 = 10;
/// Fields of a runtime that go into the pod.
const RUNTIME_POD_FIELDS: &[&str] = &[
    "volumes",
    "nodeSelector",
    "affinity",
    "tolerations",
    "imagePullSecrets",
    "schedulerName",
    "resourceClaims",
];

/// The pod's template and what is said about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    /// `spec.template` of the Deployment, with its digest among the annotations.
    pub(crate) value: Value,
    /// The image that serves.
    pub(crate) image: String,
    /// Images that can change under their names.
    pub(crate) unpinned: Vec<String>,
}

/// The port that serves, of a pod's template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Port {
    /// As the Service calls it.
    name: String,
    /// As the Service finds it: by its name, if it has one.
    pub(crate) target: Value,
    /// Its number.
    pub(crate) number: Value,
}

/// The port that serves.
pub(crate) fn port_of(template: &Value) -> Port {
    let containers = template.get("spec").map(object::pod_containers).unwrap_or_default();
    let server = containers.into_iter().find(|container| container.name() == CONTAINER);
    let port = server.and_then(|server| server.value.pointer("/ports/0"));
    let number = port.and_then(|port| port.get("containerPort")).cloned().unwrap_or_else(|| json!(PORT));
    match port.map(|port| object::text(port, "/name")).unwrap_or_default() {
        "" => Port { name: "http".to_owned(), target: number.clone(), number },
        PORT_NAME => Port { name: "http".to_owned(), target: json!(PORT_NAME), number },
        written => Port { name: written.to_owned(), target: json!(written), number },
    }
}

/// The digest that a template carries, empty if it carries none.
pub(crate) fn digest_of(template: &Value) -> &str {
    let annotations = template.pointer("/metadata/annotations");
    annotations.and_then(|annotations| annotations.get(TEMPLATE)).and_then(Value::as_str).unwrap_or_default()
}

fn malformed(reason: &'static str, message: String) -> Refusal {
    Refusal { condition: RUNTIME_RESOLVED, reason, failure: Failure::InvalidPredictorSpec, message }
}

/// The name of a service's Deployment, Service and policy.
pub(crate) fn name(service: InferenceService<'_>) -> String {
    format!("{}-predictor", service.name())
}

/// What selects the pods.
pub(crate) fn selector(service: InferenceService<'_>) -> Value {
    json!({"app": format!("isvc.{}", name(service))})
}

/// The template: the runtime's pod, with what the service writes merged over it, and its storage.
pub(crate) fn template(
    service: InferenceService<'_>,
    predictor: &PredictorSpec,
    model: &ModelSpec,
    runtime: &Runtime<'_>,
    storage: Storage,
) -> Result<Template, Refusal> {
    let mut spec = pod(predictor, runtime)?;
    let mut containers: Vec<Value> = runtime.spec.containers.iter().cloned().map(Value::Object).collect();
    let is_server = |container: &Value| object::text(container, "/name") == CONTAINER;
    let Some(server) = containers.iter_mut().find(|container| is_server(container)) else {
        return Err(malformed(
            "RuntimeMalformed",
            format!(
                "{} has no container {CONTAINER:?}, which is the one that serves: add it",
                runtime.described()
            ),
        ));
    };
    *server = merged("Container", server, &container_of(model))?;
    if let Some(args) = joined(runtime, model) {
        server["args"] = args;
    }
    let place = format!("{} cannot be used for this model", runtime.described());
    for container in &mut containers {
        placeholder::fill(container, service.object())
            .map_err(|error| malformed("PlaceholderUnknown", format!("{place}: {error}")))?;
    }
    let mut unpinned = Vec::new();
    for container in &mut containers {
        pin(container, &mut unpinned).map_err(|error| Refusal {
            condition: IMAGE_RESOLVED,
            reason: "ImageMalformed",
            failure: Failure::InvalidPredictorSpec,
            message: format!("{place}: {error}"),
        })?;
    }
    let server = containers.iter_mut().find(|container| is_server(container));
    let Some(server) = server.and_then(Value::as_object_mut) else {
        return Err(malformed("RuntimeMalformed", format!("{place}: its containers are no mappings")));
    };
    let image = server.get("image").and_then(Value::as_str).unwrap_or_default().to_owned();
    let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_u64);
    complete(server, storage.mounts, grace, &place)?;
    let fields = spec.as_object_mut();
    if let Some(fields) = fields {
        fields.insert("containers".to_owned(), Value::Array(containers));
        if let Some(init) = storage.init {
            fields.insert("initContainers".to_owned(), json!([init]));
        }
        append(fields, "volumes", storage.volumes);
    }
    let annotations: Map<String, Value> = [&runtime.spec.annotations, &predictor.annotations]
        .into_iter()
        .flatten()
        .map(|(key, text)| (key.clone(), json!(text)))
        .collect();
    let mut value = json!({
        "metadata": {"labels": labels(service, predictor, runtime), "annotations": annotations},
        "spec": spec,
    });
    let digest = Digest::of(value.to_string().as_bytes());
    value["metadata"]["annotations"][TEMPLATE] = json!(format!("{:.16}", digest.hex()));
    Ok(Template { value, image, unpinned })
}

fn merged(kind: &str, below: &Value, over: &Value) -> Result<Value, Refusal> {
    let type_name = format!("io.k8s.api.core.v1.{kind}");
    strategic_merge_patch(Schema::kubernetes(), &type_name, below, over).map_err(|error| {
        malformed(
            "InvalidPredictorSpec",
            format!("what the service writes cannot be merged over its runtime: {error}"),
        )
    })
}

fn pod(predictor: &PredictorSpec, runtime: &Runtime<'_>) -> Result<Value, Refusal> {
    let own = |fields: &Raw, keep: &dyn Fn(&str) -> bool| {
        let kept = fields.iter().filter(|(name, _)| keep(name));
        Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let below = own(&runtime.spec.pod, &|name| RUNTIME_POD_FIELDS.contains(&name));
    let over = own(&predictor.pod, &|name| {
        let honoured = SERVICE_FIELDS
            .iter()
            .any(|field| field.used == Use::Honoured && field.path.strip_prefix("predictor.") == Some(name));
        honoured && !FORMATS.contains(&name)
    });
    merged("PodSpec", &below, &over)
}

/// The fields of a model that are merged over the runtime's container.
fn container_of(model: &ModelSpec) -> Value {
    let own = model.container.iter().filter(|(name, _)| !matches!(name.as_str(), "name" | "args"));
    Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The runtime's arguments, and the model's after them.
fn joined(runtime: &Runtime<'_>, model: &ModelSpec) -> Option<Value> {
    let own = runtime
        .spec
        .containers
        .iter()
        .find(|container| container.get("name").and_then(Value::as_str) == Some(CONTAINER));
    let args = |container: Option<&Raw>| {
        container.and_then(|container| container.get("args")).and_then(Value::as_array).cloned()
    };
    let mut all = args(own).unwrap_or_default();
    all.extend(args(Some(&model.container)).unwrap_or_default());
    (!all.is_empty()).then_some(Value::Array(all))
}

/// Writes an image so that equal content has equal text: with a digest, a tag says nothing.
fn pin(container: &mut Value, unpinned: &mut Vec<String>) -> Result<(), String> {
    let name = object::text(container, "/name").to_owned();
    let written = object::text(container, "/image").to_owned();
    if written.is_empty() {
        return Err(format!("container {name:?} has no image"));
    }
    let reference = Reference::parse(&written)
        .map_err(|error| format!("the image {written:?} of container {name:?} does not parse: {error}"))?;
    let Some(fields) = container.as_object_mut() else { return Ok(()) };
    match reference.digest() {
        Some(digest) => {
            let name = reference.tag().and_then(|tag| {
                let (before, _) = written.split_once('@')?;
                before.strip_suffix(tag)?.strip_suffix(':')
            });
            if let Some(name) = name {
                fields.insert("image".to_owned(), json!(format!("{name}@{digest}")));
            }
            // A digest cannot be stale, so a node that has it need not ask the registry.
            fields.entry("imagePullPolicy").or_insert_with(|| json!("IfNotPresent"));
        }
        None => unpinned.push(written),
    }
    Ok(())
}

/// Adds to the container that serves what it lacks: a port with a name, a probe, time to leave, and its model.
fn complete(
    server: &mut Map<String, Value>,
    mounts: Vec<Value>,
    grace: Option<u64>,
    place: &str,
) -> Result<(), Refusal> {
    let mounted = server.get("volumeMounts").and_then(Value::as_array).into_iter().flatten();
    if !mounts.is_empty()
        && mounted
            .into_iter()
            .any(|mount| object::text(mount, "/mountPath").trim_end_matches('/') == MODEL_FOLDER)
    {
        return Err(malformed(
            "RuntimeMalformed",
            format!("{place}: it mounts a volume of its own on {MODEL_FOLDER}, where the model goes"),
        ));
    }
    append(server, "volumeMounts", mounts);
    let has_port = server.get("ports").and_then(Value::as_array).is_some_and(|ports| !ports.is_empty());
    if !has_port {
        server.insert("ports".to_owned(), json!([{"containerPort": PORT, "protocol": "TCP"}]));
    }
    let first = server.get_mut("ports").and_then(|ports| ports.get_mut(0)).and_then(Value::as_object_mut);
    let number = first.map(|first| {
        first.entry("name").or_insert_with(|| json!(PORT_NAME));
        first.get("containerPort").cloned().unwrap_or_else(|| json!(PORT))
    });
    let number = number.unwrap_or_else(|| json!(PORT));
    server
        .entry("readinessProbe")
        .or_insert_with(|| json!({"tcpSocket": {"port": number}, "periodSeconds": 5, "timeoutSeconds": 1}));
    // The server refuses a sleep that is longer than the pod may take to end, and the program needs time, too.
    let leave = grace.map_or(LEAVE_SECONDS, |grace| (grace / 2).min(LEAVE_SECONDS));
    if leave > 0
        && let Some(lifecycle) = server.entry("lifecycle").or_insert_with(|| json!({})).as_object_mut()
    {
        lifecycle.entry("preStop").or_insert_with(|| json!({"sleep": {"seconds": leave}}));
    }
    Ok(())
}

fn append(fields: &mut Map<String, Value>, name: &str, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    if let Some(list) = fields.entry(name).or_insert_with(|| json!([])).as_array_mut() {
        list.extend(more);
    }
}

fn labels(service: InferenceService<'_>, predictor: &PredictorSpec, runtime: &Runtime<'_>) -> Value {
    let mut labels = Map::new();
    for (key, value) in &runtime.spec.labels {
        labels.insert(key.clone(), json!(value));
    }
    for (key, value) in object::labels(service.object()) {
        labels.insert(key.to_owned(), json!(value));
    }
    for (key, value) in &predictor.labels {
        labels.insert(key.clone(), json!(value));
    }
    labels.extend(own_labels(service));
    Value::Object(labels)
}

/// Labels by which clients of KServe find what belongs to a service.
fn own_labels(service: InferenceService<'_>) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert("app".to_owned(), json!(format!("isvc.{}", name(service))));
    labels.insert("component".to_owned(), json!("predictor"));
    labels.insert("serving.kserve.io/inferenceservice".to_owned(), json!(service.name()));
    labels
}

fn metadata(service: InferenceService<'_>) -> Value {
    json!({
        "name": name(service),
        "namespace": service.namespace(),
        "labels": own_labels(service),
        "ownerReferences": [{
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "name": service.name(),
            "uid": service.uid(),
            "controller": true,
        }],
    })
}

/// The Deployment, sealed but for the number of its pods, which others may change.
pub(crate) fn deployment(
    service: InferenceService<'_>,
    template: &Value,
    replicas: i64,
    strategy: &Value,
    written_for: &str,
    roll: Option<&str>,
) -> Value {
    let mut metadata = metadata(service);
    metadata["annotations"] = json!({WRITTEN_FOR: written_for});
    if service.annotation(STOP) == Some("true") {
        metadata["annotations"][STOPPED] = json!("true");
    }
    if let Some(roll) = roll {
        metadata["annotations"][ROLL] = json!(roll);
    }
    let mut object = sealed(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": selector(service)},
            "strategy": strategy,
            "template": template,
        },
    }));
    object["spec"]["replicas"] = json!(replicas);
    object
}

/// The Service of pods of a template, sealed.
pub(crate) fn service(service: InferenceService<'_>, template: &Value) -> Value {
    let Port { name, target, .. } = port_of(template);
    sealed(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(service),
        "spec": {
            "selector": selector(service),
            "ports": [{"name": name, "port": 80, "targetPort": target, "protocol": "TCP"}],
        },
    }))
}

/// The policy, sealed: by numbers, since not every network knows names of ports.
pub(crate) fn policy(
    service: InferenceService<'_>,
    ports: &[Value],
    platform_namespace: &str,
    allowed: &BTreeSet<String>,
) -> Value {
    sealed(network_policy(&metadata(service), &selector(service), ports, platform_namespace, allowed))
}
