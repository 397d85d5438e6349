//! Stage 6b: bringing images to nodes before anything needs them.
//!
//! One pod on each node names the images by digest; what it runs does not matter, only that the kubelet pulls. The
//! kubelet's own pull (and not one past it) records the credential with the image, so that other tenants of the node
//! do not get what was pulled with the release's secret.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_api::object;
use scantling_cluster::{ClusterError, Write};
use scantling_finding::{Finding, Place, codes};
use scantling_image::{Digest, Platform, Reference};
use scantling_observed::{ContainerState, Pod, PodContainer, View};
use scantling_plan::{NodeFacts, PlannedNode, holds, pulls};
use serde_json::{Value, json};

use crate::event::{Stage, What};
use crate::meanwhile::Doing;
use crate::report::Stop;
use crate::session::Session;

/// Between two looks at the pods.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a node that reports pull errors is waited for when all others are done: the kubelet's own back-off reaches
/// minutes, and a node that cannot pull must not hold up the run.
const STRAGGLER: Duration = Duration::from_mins(3);
/// Layers are stored unpacked, about three times their compressed size, beside the compressed ones on some runtimes.
const UNPACKED: u64 = 3;
/// How often a pod that somebody removes is made again on one node: a drain evicts once, and more than that is no accident.
const AGAIN: usize = 3;
/// Marks our pods.
const LABEL: &str = "scantling.dev/prepull";

/// What a kubelet says when an image could not be pulled.
const PULL_ERRORS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];

/// Pod specs, each with the references by digest that a pod made of it would pull.
pub(crate) type Needs = Vec<(Value, BTreeSet<String>)>;

/// Where one image is with one node.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Progress {
    Pulled,
    Waiting,
    Failing(String),
}

/// The pods of one stage that are waited for.
#[derive(Default)]
struct Pulling {
    /// Node → images that it has not got yet.
    open: BTreeMap<String, BTreeSet<String>>,
    /// Node → image → the kubelet's last complaint.
    complaints: BTreeMap<String, BTreeMap<String, String>>,
    /// Nodes that were given up, with the reason.
    given_up: BTreeMap<String, String>,
    /// Nodes whose pod the cluster did not admit: nothing is known of what they can pull.
    refused: BTreeSet<String>,
    /// Node → its pod, and how often it was made again.
    pods: BTreeMap<String, (Value, usize)>,
}

impl Session<'_> {
    /// Brings images to the nodes where the pods can land.
    pub(crate) async fn prepull(&mut self, namespace: &str, needs: &Needs) -> Result<(), Stop> {
        let stage = std::mem::replace(&mut self.stage, Stage::Prepull);
        self.prepull_stage(namespace, needs).await?;
        self.stage = stage;
        Ok(())
    }

    async fn prepull_stage(&mut self, namespace: &str, needs: &Needs) -> Result<(), Stop> {
        let borrowed: Vec<(&Value, BTreeSet<String>)> = needs.iter().map(|(s, i)| (s, i.clone())).collect();
        let plan = self.still_to_pull(pulls(&self.nodes, &borrowed));
        self.learn_sizes(&plan).await;
        let mut pulling = Pulling::default();
        for planned in &plan {
            if let Some(why) = self.unfit(planned) {
                if planned.left_out.is_some() || !planned.pulls.is_empty() {
                    self.skip_node(&planned.node, &why);
                }
                continue;
            }
            if planned.pulls.is_empty() {
                continue;
            }
            self.tell(What::Pulling { node: planned.node.clone(), images: planned.pulls.len() });
            let secrets = pull_secrets(needs);
            let pod = prepull_pod(namespace, planned, &secrets);
            pulling.open.insert(planned.node.clone(), planned.pulls.iter().cloned().collect());
            self.make_pod(&planned.node, pod, &mut pulling).await?;
        }
        if pulling.open.is_empty() {
            // Those of a run that was stopped.
            if self.left_open {
                self.remove_pods(namespace).await?;
            }
            return self.judge_pulls(&plan, &pulling);
        }
        let waited = self.wait_for_pulls(namespace, &mut pulling).await;
        self.remove_pods(namespace).await?;
        waited?;
        self.judge_pulls(&plan, &pulling)
    }

    /// Makes the pod of a node. A cluster that does not admit it (a quota, a policy) does not hold up the run.
    async fn make_pod(&mut self, node: &str, pod: Value, pulling: &mut Pulling) -> Result<(), Stop> {
        match self.try_write(Write::Apply { object: pod.clone(), force: true }).await? {
            Ok(_) => {
                pulling.pods.entry(node.to_owned()).or_insert((pod, 0));
            }
            Err(error @ (ClusterError::Forbidden { .. } | ClusterError::Invalid { .. })) => {
                pulling.open.remove(node);
                pulling.refused.insert(node.to_owned());
                let why = format!("the cluster did not admit the pod that pulls: {error}");
                pulling.given_up.insert(node.to_owned(), why);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Leaves out what the node was given in an earlier run or stage. A node removes images that nobody uses when its
    /// disk fills, so that what an earlier run noted counts only as long as the node does not contradict it. A run that
    /// brings nothing leaves the nodes alone: what they report is minutes old at times.
    fn still_to_pull(&self, mut plan: Vec<PlannedNode>) -> Vec<PlannedNode> {
        let brings =
            self.report.plan.as_ref().is_some_and(|p| p.steps.iter().any(scantling_plan::Step::writes));
        for planned in &mut plan {
            let Some(node) = self.node(&planned.node) else { continue };
            let now = self.report.prepulled.get(&planned.node);
            let Some(had) = self.prepulled.get(&node.uid) else { continue };
            planned.pulls.retain(|image| {
                let given_now = now.is_some_and(|now| now.contains(image));
                let gone = brings && node.reports_all() && !holds(node, image);
                !(had.contains(image) && (given_now || !gone))
            });
        }
        plan
    }

    /// Asks for the sizes of images that the gate has not seen, because they came to be on the cluster.
    async fn learn_sizes(&mut self, plan: &[PlannedNode]) {
        let unknown: BTreeSet<&String> = plan
            .iter()
            .flat_map(|p| &p.pulls)
            .filter(|image| {
                !self.sizes.contains_key(*image)
                    && !self.images.iter().any(|i| i.pinned().written() == *image)
            })
            .collect();
        for image in unknown {
            let Ok(reference) = Reference::parse(image) else { continue };
            match self.registry.resolve(&reference).await {
                Ok(resolved) => {
                    let sizes = resolved.platforms.iter().map(|p| (p.platform.clone(), p.size)).collect();
                    self.sizes.insert(image.clone(), sizes);
                }
                // Whether it can be pulled, the nodes will tell; only the look at their disks goes without it.
                Err(error) => self.tell(What::Waiting {
                    on: format!("the size of {image}"),
                    until: format!("not known: {error}"),
                }),
            }
        }
    }

    /// Compressed bytes of an image on a platform; none if they are not known.
    fn size(&self, image: &str, platform: Option<&Platform>) -> Option<u64> {
        let of_node = |p: &Platform| platform.is_none_or(|wanted| p.matches(wanted));
        match self.images.iter().find(|i| i.pinned().written() == image) {
            Some(locked) => locked.platforms.iter().find(|p| of_node(&p.platform)).map(|p| p.size),
            None => self.sizes.get(image)?.iter().find(|(p, _)| of_node(p)).map(|(_, size)| *size),
        }
    }

    fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.iter().find(|n| n.name == name)
    }

    /// Why a node gets nothing: it is not fit, or the images do not fit on its disk.
    fn unfit(&self, planned: &PlannedNode) -> Option<String> {
        if planned.left_out.is_some() {
            return planned.left_out.clone();
        }
        let node = self.node(&planned.node)?;
        let platform = node.platform.as_ref();
        let needed: u64 = planned
            .pulls
            .iter()
            .filter_map(|image| self.size(image, platform))
            .fold(0u64, u64::saturating_add)
            .saturating_mul(UNPACKED);
        let free = node.free_bytes()?;
        (needed > free).then(|| format!("the images need about {needed} bytes, the node has {free} free"))
    }

    fn skip_node(&mut self, node: &str, why: &str) {
        self.tell(What::NodeSkipped { node: node.to_owned(), why: why.to_owned() });
        let place = Place { object: Some(format!("Node {node}")), ..Place::default() };
        let message = format!("node {node} was not given the images of this release: {why}");
        self.report.findings.push(Finding::new(codes::run::NODE_NOT_PREPARED, message, place));
    }

    async fn wait_for_pulls(&mut self, namespace: &str, pulling: &mut Pulling) -> Result<(), Stop> {
        let started = tokio::time::Instant::now();
        let mut progress_at = started;
        loop {
            let pods = self.prepull_pods(namespace).await?;
            for pod in &pods {
                if self.look_at(pod, pulling) {
                    progress_at = tokio::time::Instant::now();
                }
            }
            pulling.open.retain(|_, images| !images.is_empty());
            if pulling.open.is_empty() {
                return Ok(());
            }
            let now = tokio::time::Instant::now();
            let only_complaints = pulling.open.iter().all(|(node, images)| {
                let known = pulling.complaints.get(node);
                images.iter().all(|i| known.is_some_and(|k| k.contains_key(i)))
            });
            let late = now - started >= self.options.waits.prepull;
            if late || (only_complaints && now - progress_at >= STRAGGLER) {
                for node in std::mem::take(&mut pulling.open).into_keys() {
                    let complaint = pulling.complaints.get(&node).and_then(|c| c.values().next());
                    let why = complaint.cloned().unwrap_or_else(|| "the pull did not end in time".to_owned());
                    pulling.given_up.insert(node, why);
                }
                return Ok(());
            }
            self.look_after_lost_pods(&pods, pulling).await?;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A node that is gone, has become unready or is being drained is not waited for. Where a pod was removed and the node is fine, it
    /// is made again.
    async fn look_after_lost_pods(&mut self, pods: &[Value], pulling: &mut Pulling) -> Result<(), Stop> {
        let there: BTreeSet<&str> = pods.iter().filter_map(|pod| Pod::of(pod).node()).collect();
        let nodes: BTreeMap<String, NodeFacts> = self
            .list("", "Node", None)
            .await?
            .iter()
            .map(NodeFacts::read)
            .map(|node| (node.name.clone(), node))
            .collect();
        for name in pulling.open.keys().cloned().collect::<Vec<_>>() {
            let removed = !there.contains(name.as_str());
            let why = match nodes.get(&name) {
                None => "the node is gone",
                Some(node) if !node.ready => "the node became unready",
                Some(node) if removed && node.unschedulable => {
                    "it was cordoned, and the pod that brought images to it was removed"
                }
                Some(_) if !removed => continue,
                Some(_) => match pulling.pods.get_mut(&name) {
                    Some((pod, made)) if *made < AGAIN => {
                        *made += 1;
                        let pod = pod.clone();
                        self.pod_was_removed(&pod, "it was made again, for the node is fine");
                        self.make_pod(&name, pod, pulling).await?;
                        continue;
                    }
                    _ => "the pod that brought images to it was removed again and again",
                },
            };
            pulling.open.remove(&name);
            pulling.given_up.insert(name.clone(), why.to_owned());
            if let Some((pod, _)) = pulling.pods.get(&name).filter(|_| removed) {
                let did = format!("it was not made again: {why}");
                self.pod_was_removed(&pod.clone(), &did);
            }
        }
        Ok(())
    }

    fn pod_was_removed(&mut self, pod: &Value, did: &str) {
        if let Ok(key) = object::key(pod) {
            let what = "it was removed before the node had all images".to_owned();
            self.meanwhile(Doing::Eviction, key, what, did.to_owned());
        }
    }

    /// Takes in the state of one pod. True if an image has arrived.
    fn look_at(&mut self, pod: &Value, pulling: &mut Pulling) -> bool {
        let pod = Pod::of(pod);
        let Some(node) = pod.node().map(ToOwned::to_owned) else { return false };
        let mut arrived = false;
        for container in pod.regular_containers() {
            let Some(open) = pulling.open.get_mut(&node).filter(|o| o.contains(container.image)) else {
                continue;
            };
            match progress(container, pod.phase(), object::text(pod.object(), "/status/message")) {
                Progress::Pulled => {
                    open.remove(container.image);
                    arrived = true;
                    let image = container.image.to_owned();
                    if let Some(uid) = self.nodes.iter().find(|n| n.name == node).map(|n| n.uid.clone()) {
                        self.prepulled.entry(uid).or_default().insert(image.clone());
                    }
                    self.report.prepulled.entry(node.clone()).or_default().push(image.clone());
                    self.tell(What::Pulled { node: node.clone(), image });
                }
                Progress::Failing(why) => {
                    pulling
                        .complaints
                        .entry(node.clone())
                        .or_default()
                        .insert(container.image.to_owned(), why);
                }
                Progress::Waiting => {}
            }
        }
        arrived
    }

    async fn prepull_pods(&self, namespace: &str) -> Result<Vec<Value>, ClusterError> {
        let Some(pods) = self.served.by_kind("", "Pod") else { return Ok(Vec::new()) };
        self.env.cluster.list(pods, Some(namespace), Some(&format!("{LABEL}=true"))).await
    }

    /// Removes our pods, those of an earlier run that was killed included.
    async fn remove_pods(&mut self, namespace: &str) -> Result<(), Stop> {
        for pod in self.prepull_pods(namespace).await? {
            let uid = Some(object::uid(&pod).to_owned()).filter(|u| !u.is_empty());
            match self.try_write(Write::Delete { object: pod, uid, grace_seconds: Some(0) }).await? {
                Ok(_) | Err(ClusterError::Moved { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A node that could not pull is a warning; an image that no node has in the end ends the run, before any workload
    /// depends on it and before users can choose it.
    fn judge_pulls(&mut self, plan: &[PlannedNode], pulling: &Pulling) -> Result<(), Stop> {
        for (node, why) in &pulling.given_up {
            self.skip_node(node, why);
        }
        let tried: BTreeSet<&String> = plan
            .iter()
            .filter(|p| p.left_out.is_none() && !pulling.refused.contains(&p.node))
            .flat_map(|p| &p.pulls)
            .collect();
        let nowhere: Vec<&String> = tried
            .into_iter()
            .filter(|image| {
                let given = self.prepulled.values().any(|had| had.contains(*image));
                !given && !self.nodes.iter().any(|node| node.ready && holds(node, image))
            })
            .collect();
        let Some(first) = nowhere.first() else { return Ok(()) };
        for image in &nowhere {
            let complaint = pulling.complaints.values().find_map(|c| c.get(*image)).cloned();
            let given_up = || pulling.given_up.values().next().cloned();
            let why = complaint
                .or_else(given_up)
                .unwrap_or_else(|| "no node that may run it has room for it".to_owned());
            let place = Place { object: Some("Node".to_owned()), ..Place::default() };
            self.report.findings.push(
                Finding::new(
                    codes::publication::CANNOT_BE_PULLED,
                    format!("no node could pull {image}: {why}"),
                    place,
                )
                .with_cause(format!("it was ok from {}, but the nodes ask from elsewhere", self.env.vantage)),
            );
        }
        Err(Stop::Halt(format!(
            "no node could pull {first}; nothing has been changed to it, users do not see it"
        )))
    }
}

fn progress(container: PodContainer<'_>, phase: &str, message: &str) -> Progress {
    if matches!(container.image_id(), Some(Ok(_))) {
        return Progress::Pulled;
    }
    match container.state() {
        ContainerState::Waiting { reason, message } if PULL_ERRORS.contains(&reason) => {
            Progress::Failing(format!("{reason}: {message}"))
        }
        ContainerState::Unreported if phase == "Failed" => {
            Progress::Failing(format!("the node refused the pod: {message}"))
        }
        ContainerState::Unreported
        | ContainerState::Waiting { reason: "" | "ContainerCreating" | "PodInitializing", .. } => {
            Progress::Waiting
        }
        // It runs, has run, or could not be started, which comes after the pull; starting it was never the purpose.
        ContainerState::Running { .. }
        | ContainerState::Terminated { .. }
        | ContainerState::Waiting { .. } => Progress::Pulled,
    }
}

/// The pull secrets that the pods themselves would use.
fn pull_secrets(needs: &Needs) -> BTreeSet<String> {
    let secrets = needs.iter().filter_map(|(spec, _)| spec.get("imagePullSecrets")?.as_array());
    secrets.flatten().filter_map(|s| Some(s.get("name")?.as_str()?.to_owned())).collect()
}

fn prepull_pod(namespace: &str, planned: &PlannedNode, secrets: &BTreeSet<String>) -> Value {
    let containers: Vec<Value> = planned
        .pulls
        .iter()
        .enumerate()
        .map(|(index, image)| {
            json!({
                "name": format!("image-{index}"),
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                // Whether this exists in the image or not, the image has been pulled by then.
                "command": ["true"],
                // Quotas of a namespace ask for both.
                "resources": {
                    "requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"cpu": "100m", "memory": "32Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false, "runAsNonRoot": true,
                    "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                },
            })
        })
        .collect();
    // The name follows from node and images, so that a run that is continued meets its own pod.
    let wanted = Digest::of(format!("{} {}", planned.node, planned.pulls.join(" ")).as_bytes());
    let short = wanted.hex().get(..12).unwrap_or_default().to_owned();
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({ "name": name })).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("scantling-prepull-{short}"), "namespace": namespace,
            "labels": {LABEL: "true", "app.kubernetes.io/managed-by": "scantling"},
        },
        "spec": {
            "nodeName": planned.node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false, "enableServiceLinks": false,
            "tolerations": [{"operator": "Exists"}],
            "imagePullSecrets": secrets,
            "containers": containers,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// jupyterhub/zero-to-jupyterhub-k8s#1760: a node without room for one more pod refuses it, and the run waits for it.
    #[test]
    fn a_pod_that_a_full_node_refuses_is_not_waited_for() {
        let words = "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110";
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "image-0", "image": "registry.example.com/a/b:1"}]},
            "status": {"phase": "Failed", "reason": "OutOfpods", "message": words}});
        let containers = scantling_observed::Pod::of(&pod).containers();
        let on = |phase: &str| containers.first().map(|container| progress(*container, phase, words));
        assert!(
            matches!(on("Failed"), Some(Progress::Failing(why)) if why.contains("enough resource: pods"))
        );
        assert!(matches!(on("Pending"), Some(Progress::Waiting)));
    }
}
