//! Defaults of pods, of what makes pods, and of claims.

use scantling_image::{PullPolicy, Reference};
use serde_json::{Map, Value, json};

use super::{at, each, fill, fill_in, fill_text};

/// `0644`, the mode of files in volumes made of objects.
const FILE_MODE: u32 = 0o644;

/// A pod: its spec, and what only a pod gets and no template.
pub(super) fn pod(object: &mut Value) {
    spec(object, &["spec"]);
    fill(object, &["spec"], "enableServiceLinks", json!(true));
    if object.pointer("/spec/hostNetwork") == Some(&json!(true)) {
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            for container in mappings(at(object, &["spec"]), list) {
                for port in mappings(container, "ports") {
                    if let Some(number) = port.get("containerPort").cloned() {
                        fill_in(port, "hostPort", number);
                    }
                }
            }
        }
    }
    for list in ["/spec/initContainers", "/spec/containers"] {
        for container in each(object, list) {
            requests_from_limits(container);
        }
    }
}

/// The pod spec below a path.
pub(super) fn spec(object: &mut Value, path: &[&str]) {
    let fields = at(object, path);
    fill_text(fields, "dnsPolicy", "ClusterFirst");
    fill_text(fields, "restartPolicy", "Always");
    fill_text(fields, "schedulerName", "default-scheduler");
    fill_in(fields, "securityContext", json!({}));
    fill_in(fields, "terminationGracePeriodSeconds", json!(30));
    // The older name of the same field follows the newer one.
    match (fields.get("serviceAccountName").cloned(), fields.get("serviceAccount").cloned()) {
        (Some(name), _) => fields.insert("serviceAccount".into(), name),
        (None, Some(name)) => fields.insert("serviceAccountName".into(), name),
        (None, None) => None,
    };
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in mappings(fields, list) {
            self::container(container);
        }
    }
    for volume in mappings(fields, "volumes") {
        self::volume(volume);
    }
}

fn mappings<'v>(
    fields: &'v mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'v mut Map<String, Value>> {
    fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn container(fields: &mut Map<String, Value>) {
    let policy = match fields.get("image").and_then(Value::as_str).map(Reference::parse) {
        Some(Ok(reference)) => PullPolicy::defaulted(&reference),
        // What cannot be read has no tag `latest` either.
        Some(Err(_)) | None => PullPolicy::IfNotPresent,
    };
    fill_text(fields, "imagePullPolicy", &policy.to_string());
    fill_text(fields, "terminationMessagePath", "/dev/termination-log");
    fill_text(fields, "terminationMessagePolicy", "File");
    for port in mappings(fields, "ports") {
        fill_text(port, "protocol", "TCP");
    }
    for variable in mappings(fields, "env") {
        let field = variable.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef"));
        if let Some(field) = field.and_then(Value::as_object_mut) {
            fill_text(field, "apiVersion", "v1");
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = fields.get_mut(name).and_then(Value::as_object_mut) else { continue };
        for (field, number) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            // A probe's zero is the same as nothing.
            if probe.get(field).is_none_or(|value| value.is_null() || value == 0) {
                probe.insert(field.into(), json!(number));
            }
        }
        if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
            fill_in(grpc, "service", json!(""));
        }
        http_get(probe);
    }
    let lifecycle = fields.get_mut("lifecycle").and_then(Value::as_object_mut);
    for handler in lifecycle.into_iter().flat_map(|hooks| hooks.values_mut()).filter_map(Value::as_object_mut)
    {
        http_get(handler);
    }
}

fn http_get(handler: &mut Map<String, Value>) {
    if let Some(get) = handler.get_mut("httpGet").and_then(Value::as_object_mut) {
        fill_text(get, "path", "/");
        fill_text(get, "scheme", "HTTP");
    }
}

fn volume(fields: &mut Map<String, Value>) {
    if fields.keys().all(|name| name == "name") {
        fields.insert("emptyDir".into(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = fields.get_mut(source).and_then(Value::as_object_mut) {
            fill_in(source, "defaultMode", json!(FILE_MODE));
        }
    }
    if let Some(path) = fields.get_mut("hostPath").and_then(Value::as_object_mut) {
        fill_in(path, "type", json!(""));
    }
    if let Some(downward) = fields.get_mut("downwardAPI").and_then(Value::as_object_mut) {
        field_references(downward);
    }
    if let Some(projected) = fields.get_mut("projected").and_then(Value::as_object_mut) {
        for source in mappings(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                fill_in(token, "expirationSeconds", json!(3600));
            }
            if let Some(downward) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                field_references(downward);
            }
        }
    }
    if let Some(template) =
        fields.get_mut("ephemeral").and_then(|source| source.get_mut("volumeClaimTemplate"))
    {
        fill(template, &["spec"], "volumeMode", json!("Filesystem"));
    }
}

fn field_references(downward: &mut Map<String, Value>) {
    for item in mappings(downward, "items") {
        if let Some(reference) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
            fill_text(reference, "apiVersion", "v1");
        }
    }
}

/// A limit without a request is a request, too.
fn requests_from_limits(container: &mut Map<String, Value>) {
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    if let Some(requests) = requests.as_object_mut() {
        for (name, quantity) in limits {
            requests.entry(name).or_insert(quantity);
        }
    }
}

/// A claim for a volume.
pub(super) fn claim(object: &mut Value) {
    fill(object, &["spec"], "volumeMode", json!("Filesystem"));
}

/// `Guaranteed`, `Burstable` or `BestEffort`, by the CPU and memory of all containers.
pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    for container in scantling_api::object::pod_containers(spec) {
        for resource in ["cpu", "memory"] {
            let of = |list: &str| {
                let quantity = container.value.pointer(&format!("/resources/{list}/{resource}"));
                quantity.filter(|quantity| **quantity != json!("0") && **quantity != json!(0))
            };
            any |= of("requests").is_some() || of("limits").is_some();
            guaranteed &= of("limits").is_some() && of("limits") == of("requests");
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
