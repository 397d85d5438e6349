//! What mends a row, as commands.
//!
//! A pull by digest does not move a node's tag, and a restart under the tag finds the old image again: neither is ever offered. What is
//! offered writes the digest into what names the tag, or has a pod ask the registry for the tag on that node.

use scantling_api::ObjectKey;
use scantling_image::{Digest, Reference};

use crate::row::Remedy;

/// Who holds the image that is to be changed.
#[derive(Debug, Clone)]
pub(crate) struct Holder<'a> {
    pub(crate) object: &'a ObjectKey,
    /// The image's place in the object, as a JSON pointer; none where the object is not in the snapshot.
    pub(crate) pointer: Option<&'a str>,
    pub(crate) container: &'a str,
    pub(crate) is_static: bool,
}

/// A word for a shell: quoted if it needs to be.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What a kubelet's words ask for, where another image would not help: credentials, a way to the registry, or leave to ask it.
pub(crate) fn of_failure(why: &str) -> Option<Remedy> {
    const CREDENTIALS: [&str; 5] = ["unauthorized", "denied", "authentication", "authorization", "forbidden"];
    const WAY: [&str; 6] =
        ["no such host", "dial tcp", "i/o timeout", "connection refused", "x509", "deadline exceeded"];
    let why = why.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| why.contains(word));
    let what = if has(&CREDENTIALS) {
        "give the pod a pull secret that the registry takes for this repository, or bring the one that it has up to date"
    } else if has(&WAY) {
        "mend the way from the node to the registry: name service, network, proxy or certificate, as the kubelet says"
    } else if has(&["errimageneverpull", "policy is never"]) {
        "let the node ask the registry: set imagePullPolicy to IfNotPresent, or bring the image onto the node"
    } else {
        return None;
    };
    Some(Remedy { what: what.to_owned(), command: None })
}

/// Writes an image into what names it.
pub(crate) fn write(holder: &Holder<'_>, image: &str, what: String) -> Remedy {
    Remedy { what, command: command(holder, image) }
}

/// The command that writes an image into an object.
fn command(holder: &Holder<'_>, image: &str) -> Option<String> {
    if holder.is_static {
        return None;
    }
    let key = holder.object;
    let namespace = key.namespace.as_ref().map(|name| format!(" -n {}", quoted(name))).unwrap_or_default();
    // What `kubectl set image` knows; of a cron job it takes the template inside.
    let short = match (key.group.as_str(), key.kind.as_str()) {
        ("", "Pod") => Some("pod"),
        ("", "ReplicationController") => Some("replicationcontroller"),
        ("apps", "Deployment") => Some("deployment"),
        ("apps", "StatefulSet") => Some("statefulset"),
        ("apps", "DaemonSet") => Some("daemonset"),
        ("apps", "ReplicaSet") => Some("replicaset"),
        ("batch", "CronJob") => Some("cronjob"),
        _ => None,
    };
    let is_volume = holder.pointer.is_some_and(|pointer| pointer.contains("/volumes/"));
    if let Some(short) = short.filter(|_| !is_volume) {
        let change = quoted(&format!("{}={image}", holder.container));
        return Some(format!("kubectl{namespace} set image {short}/{} {change}", quoted(&key.name)));
    }
    // The template of a job cannot be changed, nor a volume of a pod.
    if key.group == "batch" && key.kind == "Job" || key.kind == "Pod" {
        return None;
    }
    patch(holder, image)
}

/// The command that writes an image by its place.
pub(crate) fn patch(holder: &Holder<'_>, image: &str) -> Option<String> {
    let key = holder.object;
    let namespace = key.namespace.as_ref().map(|name| format!(" -n {}", quoted(name))).unwrap_or_default();
    let pointer = holder.pointer?;
    let resource =
        if key.group.is_empty() { key.kind.clone() } else { format!("{}.{}", key.kind, key.group) };
    let patch = serde_json::json!([{"op": "replace", "path": pointer, "value": image}]);
    Some(format!(
        "kubectl{namespace} patch {} {} --type=json -p {}",
        quoted(&resource.to_lowercase()),
        quoted(&key.name),
        quoted(&patch.to_string())
    ))
}

/// Writes the digest of what is meant.
pub(crate) fn pin(holder: &Holder<'_>, reference: &Reference, digest: &Digest) -> Remedy {
    let image = reference.with_digest(digest);
    let what = if holder.is_static {
        format!("write {image} into the file of this static pod, in its node's manifest folder")
    } else if holder.object.kind == "Job" && holder.object.group == "batch" {
        format!("make the job again with {image}; what runs is not changed by it")
    } else {
        "write the digest, so that no node can take another image for it".to_owned()
    };
    write(holder, image.written(), what)
}

/// Has a node ask the registry for a tag again.
pub(crate) fn pull_again(reference: &Reference, node: &str) -> Remedy {
    let overrides = serde_json::json!({"spec": {"nodeName": node}});
    let name = Digest::of(format!("{reference}\u{0}{node}").as_bytes());
    Remedy {
        what: format!(
            "or have {node} ask the registry for the tag again (containers that are restarted there get it too)"
        ),
        command: Some(format!(
            "kubectl run pull-{} --image={} --image-pull-policy=Always --restart=Never --overrides={} --command -- true",
            name.hex().get(..8).unwrap_or_default(),
            quoted(reference.written()),
            quoted(&overrides.to_string())
        )),
    }
}
