//! What becomes of each field of the kinds of model serving: one table, for the check of a spec and for the page about compatibility.

use serde_json::Value;

use Use::{Honoured, Ignored, Refused};

use crate::isolation::ALLOW_FROM;

/// The mode of deployment that a client asks for.
pub(crate) const DEPLOYMENT_MODE: &str = "serving.kserve.io/deploymentMode";
/// `true` on a service or a runtime makes updates of the runtime wait; `false` on a service lets them come whatever the platform says.
pub(crate) const DISABLE_AUTO_UPDATE: &str = "serving.kserve.io/disable-auto-update";
/// `true` stops a service.
pub(crate) const STOP: &str = "serving.kserve.io/stop";
/// `external` leaves the number of pods to somebody else.
pub(crate) const AUTOSCALER_CLASS: &str = "serving.kserve.io/autoscalerClass";
/// A change of its value takes what waits, and the newest image that fetches. The Deployment remembers the value that it was written for.
pub(crate) const ROLL: &str = "scantling.dev/roll";

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It does what KServe documents.
    Honoured,
    /// It changes nothing, and a condition says so.
    Ignored,
    /// The service is not made, and a condition says what to use instead.
    Refused,
}

/// A field and what becomes of it.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Where it is, `[]` for each element of a list.
    pub path: &'static str,
    /// What becomes of it.
    pub used: Use,
    /// What it does here, or what to use instead.
    pub note: &'static str,
}

const fn field(path: &'static str, used: Use, note: &'static str) -> Field {
    Field { path, used, note }
}

const MODEL_OF_FORMAT: &str = "short for `model` with this format";
const AS_POD: &str = "as in a pod";
const AS_CONTAINER: &str = "merged over the runtime's container";
const MANY: &str = "belongs to serving many models in one pod; give every model its own InferenceService";
const HOST: &str = "the platform's pods keep off the node's own namespaces; leave it out";

/// Fields of `spec` of an `InferenceService`.
pub const SERVICE_FIELDS: &[Field] = &[
    field("predictor", Honoured, "what answers"),
    field("predictor.model", Honoured, "the model"),
    field("predictor.model.modelFormat", Honoured, "the format that a runtime has to support"),
    field("predictor.model.modelFormat.name", Honoured, ""),
    field("predictor.model.modelFormat.version", Honoured, "compared as text"),
    field(
        "predictor.model.runtime",
        Honoured,
        "a ServingRuntime of the namespace, else a ClusterServingRuntime",
    ),
    field("predictor.model.protocolVersion", Honoured, "`v1` where none is written"),
    field(
        "predictor.model.storageUri",
        Honoured,
        "`pvc://`, `http://`, `https://` and `s3://`; others are refused",
    ),
    field("predictor.model.storage", Honoured, "a data connection"),
    field(
        "predictor.model.storage.key",
        Honoured,
        "a key of the secret `storage-config`, else the name of a secret with `AWS_*` keys; in the same namespace",
    ),
    field("predictor.model.storage.path", Honoured, ""),
    field("predictor.model.storage.parameters", Honoured, "`type` (only `s3`) and `bucket`"),
    field("predictor.model.storage.schemaPath", Ignored, "no runtime of this platform reads a schema"),
    field(
        "predictor.model.runtimeVersion",
        Refused,
        "a runtime's image is written by digest; name a runtime that has the version in `model.runtime`",
    ),
    field("predictor.model.name", Ignored, "the container is always called `kserve-container`"),
    field(
        "predictor.model.image",
        Honoured,
        "instead of the runtime's image; without a digest the condition `Pinned` is false",
    ),
    field("predictor.model.args", Honoured, "after those of the runtime"),
    field("predictor.model.command", Honoured, AS_CONTAINER),
    field("predictor.model.workingDir", Honoured, AS_CONTAINER),
    field("predictor.model.ports", Honoured, AS_CONTAINER),
    field("predictor.model.env", Honoured, AS_CONTAINER),
    field("predictor.model.envFrom", Honoured, AS_CONTAINER),
    field("predictor.model.resources", Honoured, AS_CONTAINER),
    field("predictor.model.volumeMounts", Honoured, AS_CONTAINER),
    field("predictor.model.volumeDevices", Honoured, AS_CONTAINER),
    field("predictor.model.livenessProbe", Honoured, AS_CONTAINER),
    field("predictor.model.readinessProbe", Honoured, AS_CONTAINER),
    field("predictor.model.startupProbe", Honoured, AS_CONTAINER),
    field("predictor.model.lifecycle", Honoured, AS_CONTAINER),
    field("predictor.model.imagePullPolicy", Honoured, AS_CONTAINER),
    field("predictor.model.securityContext", Honoured, AS_CONTAINER),
    field("predictor.model.terminationMessagePath", Honoured, AS_CONTAINER),
    field("predictor.model.terminationMessagePolicy", Honoured, AS_CONTAINER),
    field("predictor.model.resizePolicy", Honoured, AS_CONTAINER),
    field(
        "predictor.model.restartPolicy",
        Refused,
        "a Deployment always restarts its containers; leave it out",
    ),
    field(
        "predictor.model.restartPolicyRules",
        Refused,
        "a Deployment always restarts its containers; leave it out",
    ),
    field("predictor.model.stdin", Refused, "nobody types into a predictor; leave it out"),
    field("predictor.model.stdinOnce", Refused, "nobody types into a predictor; leave it out"),
    field("predictor.model.tty", Refused, "nobody types into a predictor; leave it out"),
    field("predictor.sklearn", Honoured, MODEL_OF_FORMAT),
    field("predictor.xgboost", Honoured, MODEL_OF_FORMAT),
    field("predictor.lightgbm", Honoured, MODEL_OF_FORMAT),
    field("predictor.tensorflow", Honoured, MODEL_OF_FORMAT),
    field("predictor.pytorch", Honoured, MODEL_OF_FORMAT),
    field("predictor.onnx", Honoured, MODEL_OF_FORMAT),
    field("predictor.pmml", Honoured, MODEL_OF_FORMAT),
    field("predictor.paddle", Honoured, MODEL_OF_FORMAT),
    field("predictor.triton", Honoured, MODEL_OF_FORMAT),
    field("predictor.huggingface", Honoured, MODEL_OF_FORMAT),
    field(
        "predictor.minReplicas",
        Honoured,
        "how many pods, 1 where none is written; to stop a service, use the annotation `serving.kserve.io/stop`",
    ),
    field(
        "predictor.maxReplicas",
        Ignored,
        "no autoscaler is made; make a HorizontalPodAutoscaler for the Deployment and set the annotation `serving.kserve.io/autoscalerClass: external`",
    ),
    field("predictor.scaleTarget", Ignored, "as `maxReplicas`"),
    field("predictor.scaleMetric", Ignored, "as `maxReplicas`"),
    field("predictor.scaleMetricType", Ignored, "as `maxReplicas`"),
    field("predictor.autoScaling", Ignored, "as `maxReplicas`"),
    field(
        "predictor.containerConcurrency",
        Ignored,
        "nothing stands before the pods that could count requests; limit them in the runtime",
    ),
    field(
        "predictor.timeout",
        Ignored,
        "nothing stands before the pods that could end requests; limit them in the client",
    ),
    field("predictor.labels", Honoured, "on the pods"),
    field("predictor.annotations", Honoured, "on the pods"),
    field("predictor.deploymentStrategy", Honoured, "instead of the strategy that has no gap"),
    field(
        "predictor.canaryTrafficPercent",
        Refused,
        "traffic is not split; make a second InferenceService for the new model",
    ),
    field("predictor.logger", Refused, "requests are not copied; log them in the client or the runtime"),
    field(
        "predictor.batcher",
        Refused,
        "requests are not joined; use a runtime that does it itself, such as MLServer",
    ),
    field(
        "predictor.workerSpec",
        Refused,
        "a model is served by one pod; use a runtime and a node with enough memory",
    ),
    field("predictor.storageUris", Refused, "one model, one place; use `model.storageUri`"),
    field(
        "predictor.containers",
        Refused,
        "write a ServingRuntime with these containers and name it in `model.runtime`",
    ),
    field("predictor.initContainers", Refused, "write a ServingRuntime whose container does this"),
    field("predictor.ephemeralContainers", Refused, "use `kubectl debug` on a pod"),
    field("predictor.serviceAccountName", Honoured, "its secrets give access to storage"),
    field("predictor.serviceAccount", Refused, "an old name; use `serviceAccountName`"),
    field("predictor.automountServiceAccountToken", Honoured, AS_POD),
    field(
        "predictor.imagePullSecrets",
        Honoured,
        "added to those of the runtime; secrets of the service's namespace",
    ),
    field("predictor.volumes", Honoured, "added to those of the runtime"),
    field("predictor.nodeSelector", Honoured, "merged over that of the runtime"),
    field("predictor.affinity", Honoured, "merged over that of the runtime"),
    field("predictor.tolerations", Honoured, "instead of those of the runtime"),
    field("predictor.topologySpreadConstraints", Honoured, AS_POD),
    field("predictor.schedulerName", Honoured, AS_POD),
    field("predictor.priorityClassName", Honoured, AS_POD),
    field("predictor.preemptionPolicy", Honoured, AS_POD),
    field("predictor.runtimeClassName", Honoured, AS_POD),
    field("predictor.terminationGracePeriodSeconds", Honoured, AS_POD),
    field("predictor.securityContext", Honoured, AS_POD),
    field("predictor.dnsPolicy", Honoured, AS_POD),
    field("predictor.dnsConfig", Honoured, AS_POD),
    field("predictor.hostAliases", Honoured, AS_POD),
    field("predictor.readinessGates", Honoured, AS_POD),
    field("predictor.enableServiceLinks", Honoured, AS_POD),
    field("predictor.shareProcessNamespace", Honoured, AS_POD),
    field("predictor.overhead", Honoured, AS_POD),
    field("predictor.os", Honoured, AS_POD),
    field("predictor.hostUsers", Honoured, AS_POD),
    field("predictor.resourceClaims", Honoured, AS_POD),
    field("predictor.resources", Honoured, AS_POD),
    field("predictor.workloadRef", Refused, "its pods belong to a Deployment; leave it out"),
    field("predictor.restartPolicy", Ignored, "a Deployment always restarts its pods"),
    field("predictor.priority", Refused, "set by Kubernetes; use `priorityClassName`"),
    field("predictor.activeDeadlineSeconds", Refused, "a Deployment's pods have no deadline; leave it out"),
    field("predictor.nodeName", Refused, "goes round the scheduler; use `nodeSelector`"),
    field("predictor.schedulingGates", Refused, "nothing here opens them; leave it out"),
    field("predictor.hostname", Refused, "pods of a Deployment have names of their own; leave it out"),
    field("predictor.subdomain", Refused, "pods of a Deployment have names of their own; leave it out"),
    field(
        "predictor.setHostnameAsFQDN",
        Refused,
        "pods of a Deployment have names of their own; leave it out",
    ),
    field(
        "predictor.hostnameOverride",
        Refused,
        "pods of a Deployment have names of their own; leave it out",
    ),
    field("predictor.hostNetwork", Refused, HOST),
    field("predictor.hostPID", Refused, HOST),
    field("predictor.hostIPC", Refused, HOST),
    field("transformer", Refused, "change requests in the client, or in a runtime of your own"),
    field("explainer", Refused, "ask for explanations in a notebook"),
];

/// Fields of `spec` of a `ServingRuntime` and a `ClusterServingRuntime`.
pub const RUNTIME_FIELDS: &[Field] = &[
    field("supportedModelFormats", Honoured, "what it serves"),
    field("supportedModelFormats[].name", Honoured, ""),
    field("supportedModelFormats[].version", Honoured, "compared as text"),
    field("supportedModelFormats[].autoSelect", Honoured, ""),
    field("supportedModelFormats[].priority", Honoured, "the highest is taken"),
    field(
        "multiModel",
        Honoured,
        "with `true`, the runtime is not used; give every model its own InferenceService",
    ),
    field("disabled", Honoured, "with `true`, the runtime is not used"),
    field("protocolVersions", Honoured, ""),
    field("containers", Honoured, "`kserve-container` serves the model; others run beside it"),
    field("labels", Honoured, "on the pods"),
    field("annotations", Honoured, "on the pods"),
    field("volumes", Honoured, AS_POD),
    field("nodeSelector", Honoured, AS_POD),
    field("affinity", Honoured, AS_POD),
    field("tolerations", Honoured, AS_POD),
    field("imagePullSecrets", Honoured, "secrets of the service's namespace"),
    field("schedulerName", Honoured, AS_POD),
    field("resourceClaims", Honoured, AS_POD),
    field("hostIPC", Refused, "use a volume `emptyDir` with `medium: Memory` on `/dev/shm`"),
    field("workerSpec", Refused, "a model is served by one pod; use a runtime without it"),
    field("grpcEndpoint", Ignored, MANY),
    field("grpcDataEndpoint", Ignored, MANY),
    field("httpDataEndpoint", Ignored, MANY),
    field("builtInAdapter", Ignored, MANY),
    field("storageHelper", Ignored, MANY),
    field("replicas", Ignored, "use `predictor.minReplicas` of the service"),
];

/// Annotations of an `InferenceService` (and, where said, of a runtime) that mean something here.
pub const ANNOTATIONS: &[Field] = &[
    field(DEPLOYMENT_MODE, Honoured, "`Standard` or `RawDeployment`; others are refused"),
    field(
        DISABLE_AUTO_UPDATE,
        Honoured,
        "on a service or a runtime: `true` makes updates of the runtime wait; `false` on a service lets them come whatever the platform's policy says",
    ),
    field(STOP, Honoured, "`true`: no pods"),
    field(AUTOSCALER_CLASS, Honoured, "`external`: the number of pods is left to an autoscaler of yours"),
    field(
        ROLL,
        Honoured,
        "ours: a change of its value takes an update that waits, and the newest image that fetches models",
    ),
    field(
        ALLOW_FROM,
        Honoured,
        "ours: names of namespaces whose pods get an answer, with commas between them",
    ),
    field(
        "serving.kserve.io/enable-auth",
        Refused,
        "no proxy stands before a predictor; `scantling.dev/allow-from` says who gets answers",
    ),
    field(
        "security.opendatahub.io/enable-auth",
        Refused,
        "no proxy stands before a predictor; `scantling.dev/allow-from` says who gets answers",
    ),
];

/// Labels of an `InferenceService` that mean something here.
pub const LABELS: &[Field] = &[
    field(
        "networking.kserve.io/visibility",
        Honoured,
        "`cluster-local`; `exposed` is refused: make an Ingress or a Route for the Service",
    ),
    field("networking.knative.dev/visibility", Honoured, "as `networking.kserve.io/visibility`"),
];

/// What the check of a spec found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Sentences about fields that are refused.
    pub(crate) refused: Vec<String>,
    /// Sentences about fields that are ignored.
    pub(crate) ignored: Vec<String>,
}

impl Checked {
    fn note(&mut self, path: &str, found: Option<&Field>) {
        match found.map(|field| (field.used, field.note)) {
            Some((Honoured, _)) => {}
            Some((Ignored, note)) => self.ignored.push(format!("spec.{path}: {note}")),
            Some((Refused, note)) => self.refused.push(format!("spec.{path} is not supported: {note}")),
            None => self.refused.push(format!("spec.{path} is not known")),
        }
    }
}

/// Fields below these are looked at one by one; everything below others belongs to Kubernetes, or to nobody.
const OPENED: &[&str] = &["predictor", "predictor.model", "predictor.model.storage"];

/// Formats for which a predictor has a field of its own, which is short for `model`.
pub(crate) const FORMATS: &[&str] = &[
    "sklearn",
    "xgboost",
    "lightgbm",
    "tensorflow",
    "pytorch",
    "onnx",
    "pmml",
    "paddle",
    "triton",
    "huggingface",
];

/// Holds a service's `spec` against the table. What is there but empty counts as absent.
pub(crate) fn check_service(spec: &Value) -> Checked {
    let mut checked = Checked::default();
    walk(spec, "", "", &mut checked);
    checked
}

fn walk(value: &Value, shown: &str, known: &str, checked: &mut Checked) {
    let join = |parent: &str, name: &str| {
        if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
    };
    for (name, value) in value.as_object().into_iter().flatten() {
        if is_empty(value) {
            continue;
        }
        let (shown, mut known) = (join(shown, name), join(known, name));
        checked.note(&shown, SERVICE_FIELDS.iter().find(|field| field.path == known));
        if known.strip_prefix("predictor.").is_some_and(|name| FORMATS.contains(&name)) {
            "predictor.model".clone_into(&mut known);
        }
        if OPENED.contains(&known.as_str()) {
            walk(value, &shown, &known, checked);
        }
    }
}

/// Holds a runtime's `spec` against the table.
pub(crate) fn check_runtime(spec: &Value) -> Checked {
    let mut checked = Checked::default();
    for (name, value) in spec.as_object().into_iter().flatten() {
        if !is_empty(value) {
            checked.note(name, RUNTIME_FIELDS.iter().find(|field| field.path == name));
        }
    }
    checked
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::fmt::Write as _;

    use super::*;
    use serde_json::json;

    #[test]
    fn no_field_stands_twice() {
        for table in [SERVICE_FIELDS, RUNTIME_FIELDS, ANNOTATIONS, LABELS] {
            let mut paths: Vec<&str> = table.iter().map(|field| field.path).collect();
            paths.sort_unstable();
            let all = paths.len();
            paths.dedup();
            assert_eq!(paths.len(), all);
        }
    }

    #[test]
    fn every_field_of_a_pod_and_a_container_is_decided_about() {
        let schema = scantling_api::schema::Schema::kubernetes();
        let fields = |name: &str| {
            let root = scantling_api::schema::TypeRef::named(name);
            let map = schema.resolve(&root).and_then(|found| found.map.as_ref()).unwrap();
            map.fields.keys().cloned().collect::<Vec<_>>()
        };
        let pod = fields("io.k8s.api.core.v1.PodSpec").into_iter().map(|name| format!("predictor.{name}"));
        let container =
            fields("io.k8s.api.core.v1.Container").into_iter().map(|name| format!("predictor.model.{name}"));
        for path in pod.chain(container) {
            assert!(SERVICE_FIELDS.iter().any(|field| field.path == path), "{path} is not in the table");
        }
    }

    #[test]
    fn every_field_gets_its_verdict() {
        for field in SERVICE_FIELDS {
            let value = field.path.rsplit('.').fold(json!(1), |value, name| json!({name: value}));
            let found = check_service(&value);
            let count = |used| usize::from(field.used == used);
            assert_eq!(
                (found.refused.len(), found.ignored.len()),
                (count(Refused), count(Ignored)),
                "{}",
                field.path
            );
        }
        for field in RUNTIME_FIELDS.iter().filter(|field| !field.path.contains("[]")) {
            let found = check_runtime(&json!({field.path: 1}));
            let count = |used| usize::from(field.used == used);
            assert_eq!(
                (found.refused.len(), found.ignored.len()),
                (count(Refused), count(Ignored)),
                "{}",
                field.path
            );
        }
        let found = check_service(
            &json!({"predictor": {"model": {"wings": 2}, "hostIPC": false, "sklearn": {"runtimeVersion": "1"}}}),
        );
        assert_eq!(found.refused.len(), 2, "{found:?}");
        assert_eq!(found.refused[0], "spec.predictor.model.wings is not known");
        assert!(found.refused[1].starts_with("spec.predictor.sklearn.runtimeVersion is not supported"));
    }

    /// The part of the page about compatibility that this table says.
    fn page() -> String {
        let mut text = String::new();
        for (head, prefix, table) in [
            ("InferenceService (`serving.kserve.io/v1beta1`)", "spec.", SERVICE_FIELDS),
            (
                "ServingRuntime and ClusterServingRuntime (`serving.kserve.io/v1alpha1`)",
                "spec.",
                RUNTIME_FIELDS,
            ),
            ("Annotations of model serving", "", ANNOTATIONS),
            ("Labels of model serving", "", LABELS),
        ] {
            let _ = write!(text, "\n## {head}\n\n| field | | |\n|---|---|---|\n");
            for field in table {
                let word = match field.used {
                    Honoured => "honoured",
                    Ignored => "ignored, with a warning",
                    Refused => "refused",
                };
                let _ = writeln!(text, "| `{prefix}{}` | {word} | {} |", field.path, field.note);
            }
        }
        text
    }

    #[test]
    fn the_page_about_compatibility_says_what_the_table_says() {
        const BEGIN: &str = "<!-- model serving: written by a test of crates/logic/reconcile/src/serving/fields.rs with UPDATE_GOLDEN=1 -->\n";
        const END: &str = "<!-- end of model serving -->";
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/compatibility.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (own, after) = rest.split_once(END).unwrap();
        let wanted = format!("{}\n", page());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
            return;
        }
        assert!(own == wanted, "run the test with UPDATE_GOLDEN=1");
    }
}
