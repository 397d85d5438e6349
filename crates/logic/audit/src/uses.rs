//! Who writes which image: pods, and the templates of what makes pods.

use scantling_api::object::{self, ContainerKind, pod_spec_pointer};
use scantling_api::{ObjectKey, object::type_name};
use scantling_image::PullPolicy;
use scantling_observed::Observed;
use serde_json::Value;

use crate::part::Part;
use crate::seen::Text;

/// How deep a custom object is searched for lists of containers: `spec.template.spec.podTemplate.spec.containers` and a few more.
const MAX_DEPTH: usize = 10;
/// Lists of containers that one object may have; a workflow has one per step.
const MAX_SPECS: usize = 64;

/// An image written in a template.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) object: ObjectKey,
    /// The field with the image, as a JSON pointer into the object.
    pub(crate) pointer: String,
    pub(crate) name: String,
    pub(crate) image: Text,
    pub(crate) policy: Option<PullPolicy>,
    pub(crate) secrets: Vec<Text>,
    /// Labels that a node must have.
    pub(crate) node_selector: Vec<(String, String)>,
}

/// The templates of a cluster. What another object controls repeats that object's template and is left out.
pub(crate) fn templates(observed: &Observed) -> Vec<Use> {
    let mut uses = Vec::new();
    for (key, object) in observed.iter() {
        if is_no_template(key) || object::controller(object).is_some() {
            continue;
        }
        let specs = match object::gvk(object).ok().as_ref().and_then(pod_spec_pointer) {
            Some(pointer) => {
                object.pointer(pointer).map(|spec| (pointer.to_owned(), spec)).into_iter().collect()
            }
            None => custom_specs(object),
        };
        for (pointer, spec) in specs {
            of_spec(key, &pointer, spec, &mut uses);
        }
    }
    uses
}

/// Kinds that run nothing by themselves, however much they look like it.
fn is_no_template(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str()),
        ("", "Pod" | "PodTemplate" | "Node" | "Event" | "ConfigMap" | "Secret")
            | ("apps", "ControllerRevision")
            | ("events.k8s.io", "Event")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("template.openshift.io", "Template")
            | ("operators.coreos.com", "ClusterServiceVersion")
    )
}

/// Whatever has a list called `containers` is taken for a pod's spec: notebooks, serving runtimes, Knative services …
fn custom_specs(object: &Value) -> Vec<(String, &Value)> {
    fn search<'a>(value: &'a Value, pointer: &str, depth: usize, found: &mut Vec<(String, &'a Value)>) {
        if depth > MAX_DEPTH || found.len() >= MAX_SPECS {
            return;
        }
        match value {
            Value::Object(fields) => {
                if fields.get("containers").is_some_and(is_list_of_containers) {
                    found.push((pointer.to_owned(), value));
                    return;
                }
                for (name, value) in fields {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    search(value, &format!("{pointer}/{name}"), depth + 1, found);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    search(value, &format!("{pointer}/{index}"), depth + 1, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let Some(spec) = object.get("spec") {
        search(spec, "/spec", 1, &mut found);
    }
    found
}

fn is_list_of_containers(value: &Value) -> bool {
    value.as_array().is_some_and(|items| {
        items.iter().any(|item| item.get("image").is_some_and(|image| type_name(image) == "a string"))
    })
}

fn of_spec(key: &ObjectKey, pointer: &str, spec: &Value, into: &mut Vec<Use>) {
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let mut secrets: Vec<Text> =
        list("imagePullSecrets").map(|secret| Text::from(object::text(secret, "/name"))).collect();
    secrets.sort();
    let node_selector: Vec<(String, String)> = object::mapping(spec, "/nodeSelector")
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let mut add = |part: Part, name: &str, image: &str, policy: &str| {
        if image.is_empty() {
            return;
        }
        into.push(Use {
            object: key.clone(),
            pointer: format!("{pointer}{}", part.pointer()),
            name: name.to_owned(),
            image: Text::from(image),
            policy: Part::policy(policy, image),
            secrets: secrets.clone(),
            node_selector: node_selector.clone(),
        });
    };
    for container in object::pod_containers(spec) {
        if container.kind == ContainerKind::Ephemeral {
            continue;
        }
        add(
            Part::Container(container.kind, container.index),
            container.name(),
            container.image().unwrap_or_default(),
            object::text(container.value, "/imagePullPolicy"),
        );
    }
    for (index, volume) in list("volumes").enumerate() {
        add(
            Part::Volume(index),
            object::text(volume, "/name"),
            object::text(volume, "/image/reference"),
            object::text(volume, "/image/pullPolicy"),
        );
    }
}
