//! Clusters in few words, as the API would show them.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; not every one uses all of it"
)]

use std::fmt::Write as _;

use scantling_audit::{Audit, Knowledge, Options, RegistryAnswers, Row, Section, Verdict, audit};
use scantling_image::Digest;
use scantling_observed::Observed;
use serde_json::{Value, json};

/// The registry of these tests.
pub(crate) const REGISTRY: &str = "registry.example.com/lab";

/// A digest from a word.
pub(crate) fn digest(word: &str) -> String {
    Digest::of(word.as_bytes()).to_string()
}

/// `repository@sha256:…` in the registry of these tests.
pub(crate) fn at(repository: &str, word: &str) -> String {
    format!("{REGISTRY}/{repository}@{}", digest(word))
}

/// `repository:tag` in the registry of these tests.
pub(crate) fn tag(repository: &str, tag: &str) -> String {
    format!("{REGISTRY}/{repository}:{tag}")
}

/// A time: seconds after noon.
pub(crate) fn time(second: i64) -> String {
    assert!((0..7200).contains(&second));
    format!("2026-11-30T{:02}:{:02}:{:02}Z", 12 + second / 3600, second / 60 % 60, second % 60)
}

/// Objects and what else an audit gets.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Vec<Value>,
    pub(crate) answers: String,
    pub(crate) options: Options,
    pub(crate) knowledge: Knowledge,
}

/// A pod in the making.
pub(crate) struct Pod(pub(crate) Value);

impl Pod {
    /// `namespace/name` on a node, with one container `app`.
    pub(crate) fn new(key: &str, node: &str, image: &str, policy: &str) -> Self {
        let (namespace, name) = key.split_once('/').unwrap();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"), "resourceVersion": "7"},
            "spec": {"nodeName": node, "containers": [{"name": "app", "image": image, "imagePullPolicy": policy}]},
            "status": {"phase": "Running"}});
        if node.is_empty() {
            pod["spec"].as_object_mut().unwrap().remove("nodeName");
        }
        Self(pod)
    }

    /// Its container runs since then.
    pub(crate) fn runs(mut self, image_id: &str, second: i64) -> Self {
        self.0["status"]["containerStatuses"] = json!([{"name": "app", "image": self.0["spec"]["containers"][0]["image"],
            "imageID": image_id, "restartCount": 0, "ready": true, "state": {"running": {"startedAt": time(second)}}}]);
        self
    }

    /// The runtime shows the configuration as the image's name.
    pub(crate) fn config(mut self, word: &str) -> Self {
        self.0["status"]["containerStatuses"][0]["image"] = json!(digest(word));
        self
    }

    /// Its container waits.
    pub(crate) fn waits(mut self, reason: &str, message: &str) -> Self {
        self.0["status"]["phase"] = json!("Pending");
        self.0["status"]["containerStatuses"] = json!([{"name": "app", "image": self.0["spec"]["containers"][0]["image"],
            "imageID": "", "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}]);
        self
    }

    /// What made it.
    pub(crate) fn of(mut self, group_version: &str, kind: &str, name: &str) -> Self {
        self.0["metadata"]["ownerReferences"] = json!([{"apiVersion": group_version, "kind": kind, "name": name,
            "uid": format!("uid-{kind}-{name}"), "controller": true}]);
        self
    }
}

impl Cluster {
    /// A node of the common kind; `images` are the names of each image, the time is when it sent them.
    pub(crate) fn node(self, name: &str, second: i64, images: &[&[String]]) -> Self {
        self.node_of(name, "linux/amd64", "v1.34.1", second, images)
    }

    /// A node.
    pub(crate) fn node_of(
        mut self,
        name: &str,
        platform: &str,
        kubelet: &str,
        second: i64,
        images: &[&[String]],
    ) -> Self {
        let (os, architecture) = platform.split_once('/').unwrap();
        let images: Vec<Value> =
            images.iter().map(|names| json!({"names": names, "sizeBytes": 1000})).collect();
        self.objects.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "resourceVersion": "3", "labels": {"kubernetes.io/hostname": name}},
            "status": {"images": images,
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": time(second)}],
                "nodeInfo": {"operatingSystem": os, "architecture": architecture, "kubeletVersion": kubelet, "containerRuntimeVersion": "containerd://1.7.0"}}}));
        self
    }

    pub(crate) fn pod(mut self, pod: Pod) -> Self {
        self.objects.push(pod.0);
        self
    }

    pub(crate) fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// A kubelet's event about the container `app` of a pod.
    pub(crate) fn event(mut self, pod: &str, node: &str, second: i64, reason: &str, message: &str) -> Self {
        let (namespace, name) = pod.split_once('/').unwrap();
        self.objects.push(json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{name}.{}", self.objects.len()), "namespace": namespace, "resourceVersion": "9"},
            "reason": reason, "message": message, "lastTimestamp": time(second), "source": {"component": "kubelet", "host": node},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": name, "fieldPath": "spec.containers{app}"}}));
        self
    }

    pub(crate) fn pulled(self, pod: &str, node: &str, second: i64, image: &str) -> Self {
        self.event(
            pod,
            node,
            second,
            "Pulled",
            &format!("Successfully pulled image \"{image}\" in 1s (1s including waiting)."),
        )
    }

    pub(crate) fn present(self, pod: &str, node: &str, second: i64, image: &str) -> Self {
        let message =
            format!("Container image \"{image}\" already present on machine and can be accessed by the pod");
        self.event(pod, node, second, "Pulled", &message)
    }

    /// What the registry answers.
    pub(crate) fn answers(mut self, image: &str, word: &str, config: Option<&str>) -> Self {
        let separator = if self.answers.is_empty() { "" } else { "," };
        let config = config.map(|config| format!(", \"config\": \"{}\"", digest(config))).unwrap_or_default();
        write!(self.answers, "{separator}\"{image}\": {{\"digest\": \"{}\"{config}}}", digest(word)).unwrap();
        self
    }

    pub(crate) fn audit(mut self) -> Audit {
        if !self.answers.is_empty() {
            let text = format!("{{{}}}", self.answers);
            self.knowledge.registry = Some(RegistryAnswers::parse("registry.json", text.as_bytes()).unwrap());
        }
        audit(&Observed::from_objects(self.objects).unwrap(), &self.knowledge, &self.options)
    }
}

/// Each row as `section verdict object/container reference`, without the registry, sorted.
pub(crate) fn lines(audit: &Audit) -> Vec<String> {
    let mut lines: Vec<String> = audit.rows.iter().flat_map(row_lines).collect();
    lines.sort();
    lines
}

fn row_lines(row: &Row) -> Vec<String> {
    let reference = row.reference.as_deref().unwrap_or_default().replace(&format!("{REGISTRY}/"), "");
    let reference = reference.split('@').next().unwrap_or_default().to_owned();
    row.subjects
        .iter()
        .map(|subject| {
            let name = subject
                .pod
                .clone()
                .unwrap_or_else(|| subject.object.rsplit(['/', ' ']).next().unwrap_or_default().to_owned());
            format!("{}: {} {name} {reference}", row.section.title(), row.verdict.word())
        })
        .collect()
}

/// The verdicts of a section.
pub(crate) fn verdicts(audit: &Audit, section: Section) -> Vec<Verdict> {
    audit.rows.iter().filter(|row| row.section == section).map(|row| row.verdict).collect()
}

/// Every command that the audit recommends.
pub(crate) fn commands(audit: &Audit) -> Vec<&str> {
    audit.rows.iter().flat_map(|row| &row.remedies).filter_map(|remedy| remedy.command.as_deref()).collect()
}
