//! What keeps a notebook from starting, where others than we find it out: missing volumes, quotas, admission, nodes, registries.

use std::collections::BTreeSet;

use scantling_api::{ObjectKey, object};
use scantling_observed::{Notebook, Observed, Pod, StatefulSet, View as _, annotations, unix_seconds};
use serde_json::Value;

use super::resolve::Refusal;
use super::settings::{Settings, volume_name};

/// Longest message of another component that is repeated.
const MAX_MESSAGE: usize = 1000;

/// A volume of the pod whose claim does not exist. The notebook's own one is made, so it does not count.
pub(super) fn missing_claim(
    notebook: Notebook<'_>,
    observed: &Observed,
    settings: &Settings,
) -> Option<Refusal> {
    let own = settings.volume.as_ref().map(|_| volume_name(notebook));
    let missing: BTreeSet<&str> = notebook
        .pod_spec()?
        .get("volumes")?
        .as_array()?
        .iter()
        .filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str())
        .filter(|name| Some(*name) != own.as_deref())
        .filter(|name| {
            let key = ObjectKey::namespaced("", "PersistentVolumeClaim", notebook.namespace(), *name);
            !observed.contains(&key)
        })
        .collect();
    if missing.is_empty() {
        return None;
    }
    let names: Vec<&str> = missing.into_iter().collect();
    let message = format!(
        "there is no PersistentVolumeClaim {} in namespace {}: create it, or take the volume out and ask for one with the annotation {}",
        names.join(", "),
        notebook.namespace(),
        annotations::VOLUME_SIZE
    );
    Some(Refusal { reason: "VolumeMissing", message })
}

/// Why the stateful set has no pod, from the newest event that its controller wrote about it.
pub(super) fn failed_create(set: StatefulSet<'_>, observed: &Observed) -> Option<Refusal> {
    let newest = observed
        .of_kind("", "Event")
        .map(|(_, event)| event)
        .filter(|event| {
            object::text(event, "/reason") == "FailedCreate"
                && object::text(event, "/involvedObject/kind") == "StatefulSet"
                && object::text(event, "/involvedObject/uid") == set.uid()
        })
        .max_by_key(|event| last_seen(event))?;
    let message = object::text(newest, "/message");
    let (reason, fix) = if message.contains("exceeded quota") {
        ("QuotaExceeded", "stop something else in this namespace, ask for less, or have the quota raised")
    } else if message.contains("violates PodSecurity") {
        ("NotAdmitted", "write the security context that the namespace asks for into the notebook's template")
    } else {
        ("PodNotCreated", "put right what the message names; it is tried again by itself")
    };
    Some(Refusal { reason, message: format!("{fix}: {}", shortened(message)) })
}

fn last_seen(event: &Value) -> Option<i64> {
    ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
        .into_iter()
        .find_map(|pointer| unix_seconds(object::text(event, pointer)))
}

/// Why a pod does not start, as its node or the scheduler says.
pub(super) fn trouble(pod: Pod<'_>) -> Option<Refusal> {
    let (own, message) = pod.trouble()?;
    let (reason, fix) = match own {
        // These take turns while the kubelet tries again.
        "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" | "InvalidImageName" => (
            "ImagePull",
            "the node cannot pull the image; select another, or ask the admin what became of it",
        ),
        "CrashLoopBackOff" => ("CrashLoop", "it ends by itself; its log says why"),
        "Unschedulable" | "SchedulerError" => {
            ("Unschedulable", "no node takes it; ask for less or choose another hardware profile")
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            ("ContainerNotMade", "correct what the message names in the notebook's template")
        }
        _ => ("NotStarting", "its node reports"),
    };
    // The reason in the cluster's own word, by which people look for it.
    let message = if message.is_empty() { String::new() } else { format!(": {}", shortened(message)) };
    Some(Refusal { reason, message: format!("{fix}: {own}{message}") })
}

fn shortened(message: &str) -> String {
    if message.chars().count() <= MAX_MESSAGE {
        return message.to_owned();
    }
    message.chars().take(MAX_MESSAGE).chain(['…']).collect()
}
