//! What the API shows of a world.

use scantling_audit::{Audit, Knowledge, KnownRelease, Options, RegistryAnswers, audit};
use scantling_observed::Observed;
use scantling_release::Lock;
use serde_json::{Value, json};

use super::{Ask, Basis, Content, Dialect, Policy, Stored, World};
use crate::common::{digest, time};

const HOST: &str = "registry.example.com";

pub(crate) fn repository(number: usize) -> String {
    format!("{HOST}/lab/repo-{number}")
}

pub(crate) fn tag(world: &World, tag: usize) -> String {
    format!("{}:tag-{tag}", repository(world.tags[tag].0))
}

fn manifest_digest(number: usize) -> String {
    digest(&format!("manifest {number}"))
}

fn config_digest(content: Content) -> String {
    digest(&format!("config {content}"))
}

fn by_digest(world: &World, manifest: usize) -> String {
    format!("{}@{}", repository(world.manifests[manifest].repository), manifest_digest(manifest))
}

fn written(world: &World, ask: Ask) -> String {
    match ask {
        Ask::Tag(number) => tag(world, number),
        Ask::Manifest(manifest) => by_digest(world, manifest),
        Ask::Nowhere => format!("{}@{}", repository(0), digest("nowhere")),
    }
}

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Always => "Always",
        Policy::IfNotPresent => "IfNotPresent",
        Policy::Never => "Never",
    }
}

/// Names of an image in a node's list: digests first, then tags, at most five.
fn names(world: &World, stored: &Stored) -> Vec<String> {
    let mut digests: Vec<String> = stored.manifests.iter().map(|it| by_digest(world, *it)).collect();
    digests.sort();
    let mut tags: Vec<String> = stored.tags.iter().map(|it| tag(world, *it)).collect();
    tags.sort();
    digests.into_iter().chain(tags).take(5).collect()
}

impl World {
    /// The image ID that a node's runtime shows.
    pub(crate) fn image_id(&self, node: usize, content: Content, manifest: usize) -> String {
        let node = &self.nodes[node];
        match node.dialect {
            Dialect::Containerd => {
                let stored = node.store.get(&content);
                let all = stored
                    .map(|stored| stored.manifests.iter().map(|it| by_digest(self, *it)).collect::<Vec<_>>());
                all.into_iter().flatten().min().unwrap_or_else(|| config_digest(content))
            }
            Dialect::Plain => by_digest(self, manifest),
            Dialect::Docker => format!("docker-pullable://{}", by_digest(self, manifest)),
            Dialect::Bare => config_digest(content).trim_start_matches("sha256:").to_owned(),
        }
    }

    fn pod_objects(&self) -> Vec<Value> {
        self.pods
            .iter()
            .enumerate()
            .map(|(number, pod)| {
                let image = written(self, pod.ask);
                let status = match pod.runs {
                    Some((content, started, manifest)) => {
                        // Some kubelets have looked again since the start, some have not.
                        let id = if number % 2 == 0 { pod.written.clone() } else { self.image_id(pod.node, content, manifest) };
                        let by_config = self.clear || matches!(pod.ask, Ask::Manifest(_)) && self.nodes[pod.node].dialect != Dialect::Docker;
                        let shown = if by_config { config_digest(content) } else { image.clone() };
                        json!({"name": "app", "image": shown, "imageID": id, "state": {"running": {"startedAt": time(started)}}})
                    }
                    None => json!({"name": "app", "image": image, "imageID": pod.written,
                        "state": {"waiting": {"reason": if pod.policy == Policy::Never { "ErrImageNeverPull" } else { "ImagePullBackOff" }, "message": "it is not there"}}}),
                };
                let secrets: Vec<Value> = pod.secret.iter().map(|secret| json!({"name": format!("secret-{secret}")})).collect();
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name, "namespace": "d", "uid": pod.name},
                    "spec": {"nodeName": format!("node-{}", pod.node), "imagePullSecrets": secrets,
                        "containers": [{"name": "app", "image": image, "imagePullPolicy": policy(pod.policy)}]},
                    "status": {"phase": if pod.runs.is_some() { "Running" } else { "Pending" }, "containerStatuses": [status]}})
            })
            .collect()
    }

    fn node_objects(&self) -> Vec<Value> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(number, node)| {
                let mut images: Vec<(usize, Vec<String>)> = Vec::new();
                for (content, stored) in node.list.iter().flat_map(|(_, store)| store) {
                    // Sizes in no order of age.
                    images.push((1 + (content * 7919) % 101, names(self, stored)));
                }
                // Every node that has sent a list has the image of the pause container, the smallest of all.
                if node.list.is_some() {
                    images.push((0, vec![format!("{HOST}/pause@{}", digest("pause")), format!("{HOST}/pause:1")]));
                }
                images.sort_by(|a, b| b.cmp(a));
                images.truncate(self.listed_images);
                let images: Vec<Value> =
                    images.into_iter().map(|(size, names)| json!({"names": names, "sizeBytes": size})).collect();
                let sent = node.list.as_ref().map(|(sent, _)| time(*sent));
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}")},
                    "status": {"images": images, "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": sent.unwrap_or_else(|| time(0))}],
                        "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64", "containerRuntimeVersion": "x://1",
                            "kubeletVersion": if node.asks_for_credentials { "v1.35.1" } else { "v1.34.0" }}}})
            })
            .collect()
    }

    fn other_objects(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        for template in &self.templates {
            let secrets: Vec<Value> =
                template.secret.iter().map(|secret| json!({"name": format!("secret-{secret}")})).collect();
            objects.push(json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": template.name, "namespace": "d", "uid": template.name},
                "spec": {"replicas": 0, "template": {"spec": {"imagePullSecrets": secrets, "containers": [
                    {"name": "app", "image": written(self, template.ask), "imagePullPolicy": policy(template.policy)}]}}}}));
        }
        // Every cluster has some event.
        objects.push(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "first", "namespace": "d"},
            "reason": "Starting", "message": "Starting kubelet.", "lastTimestamp": time(0), "involvedObject": {"kind": "Node", "name": "node-0"}}));
        for (number, event) in self.events.iter().enumerate() {
            let image = written(self, event.ask);
            let message = if event.pulled {
                format!(
                    "Successfully pulled image \"{image}\" in 1s (1s including waiting). Image size: 5 bytes."
                )
            } else {
                format!("Container image \"{image}\" already present on machine")
            };
            objects.push(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("event-{number}"), "namespace": "d"},
                "reason": "Pulled", "message": message, "lastTimestamp": time(event.at), "source": {"host": format!("node-{}", event.node)},
                "involvedObject": {"kind": "Pod", "namespace": "d", "name": event.pod, "fieldPath": "spec.containers{app}"}}));
        }
        objects
    }

    /// What the audit is given beside the objects.
    fn knowledge(&self) -> Knowledge {
        let mut knowledge = Knowledge::default();
        match self.basis {
            Basis::None => {}
            Basis::Registry { configs } => {
                let mut answers = serde_json::Map::new();
                for (number, (_, manifest)) in self.tags.iter().enumerate() {
                    let mut answer = json!({"digest": manifest_digest(*manifest)});
                    if configs {
                        answer["config"] = json!(config_digest(self.manifests[*manifest].content));
                    }
                    answers.insert(tag(self, number), answer);
                }
                if self.clear {
                    // Somebody has also asked what older digests are.
                    for (number, manifest) in self.manifests.iter().enumerate() {
                        let answer = json!({"digest": manifest_digest(number), "config": config_digest(manifest.content)});
                        answers.insert(by_digest(self, number), answer);
                    }
                }
                let text = Value::Object(answers).to_string();
                knowledge.registry = Some(RegistryAnswers::parse("registry.json", text.as_bytes()).unwrap());
            }
            Basis::Lock => {
                let images: Vec<Value> = self
                    .locked
                    .iter()
                    .enumerate()
                    .map(|(number, manifest)| {
                        json!({"reference": tag(self, number), "digest": manifest_digest(*manifest), "foundAt": HOST,
                            "mediaType": "application/vnd.oci.image.manifest.v1+json",
                            "platforms": [{"platform": "linux/amd64", "manifest": manifest_digest(*manifest),
                                "config": config_digest(self.manifests[*manifest].content), "size": 5}]})
                    })
                    .collect();
                let lock = json!({"apiVersion": scantling_release::API_VERSION, "kind": "Lock", "release": {"name": "lab", "version": "1.0.0"}, "images": images});
                let lock = Lock::parse("release.lock", lock.to_string().as_bytes()).unwrap();
                knowledge.releases.push(KnownRelease {
                    title: "lab 1.0.0".to_owned(),
                    lock: Some(lock),
                    release: None,
                });
            }
        }
        knowledge
    }

    pub(crate) fn audit(&self) -> Audit {
        let objects = self.pod_objects().into_iter().chain(self.node_objects()).chain(self.other_objects());
        let observed = Observed::from_objects(objects).unwrap();
        let options = Options { listed_images: self.listed_images, ..Options::default() };
        audit(&observed, &self.knowledge(), &options)
    }
}
