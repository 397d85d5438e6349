//! A cluster with runtimes and models.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{Clock, Cluster, DriveEvent, DriveSettings, Driven, Write};
use scantling_contents::build;
use scantling_image::{Digest, Platform};
use scantling_observed::Observed;
use scantling_reconcile::{DEFINITIONS, Known, Reconciler, SERVING};
use scantling_registry_server::{Pushed, RegistryServer};
use scantling_rehearse::{Gate, InProcess};
use scantling_sandbox::{Flavour, NodeConfig, World, WorldConfig};
use serde_json::{Value, json};

pub(crate) const HOST: &str = "registry.test";
pub(crate) const TEAM: &str = "team";

pub(crate) struct Stage {
    pub(crate) sandbox: InProcess,
    pub(crate) people: Cluster,
    clock: Clock,
    digests: BTreeMap<String, Digest>,
}

/// Pushes an image that holds one package in a version.
fn push(registry: &mut RegistryServer, repository: &str, tag: &str, labels: &Value) -> Digest {
    let description = json!({
        "platforms": [], "labels": labels,
        "layers": [{"python": {"path": "/opt/lib/python3.12/site-packages", "packages": {repository: tag}}}],
    });
    let built = build(&serde_json::from_value(description).unwrap(), None).unwrap();
    let pushed = Pushed {
        media_type: built.media_type,
        root: built.root,
        blobs: built
            .blobs
            .into_iter()
            .map(|(digest, (kind, bytes))| (digest, kind, Bytes::from(bytes)))
            .collect(),
    };
    registry.push(HOST, repository, Some(tag), &pushed).unwrap();
    pushed.root
}

impl Stage {
    /// Two nodes, the second with a GPU; the operator's Deployment, and a runtime for scikit-learn.
    pub(crate) async fn new() -> Self {
        Self::with_gpus(1).await
    }

    pub(crate) async fn with_gpus(gpus: u32) -> Self {
        let mut registry = RegistryServer::new();
        let mut digests = BTreeMap::new();
        for (repository, tag) in [("mlserver", "1"), ("mlserver", "2"), ("operator", "1"), ("operator", "2")]
        {
            // What fetches ends, what serves stays.
            let labels = if repository == "operator" {
                json!({"scantling.dev/sandbox-exit-after": "1"})
            } else {
                json!({})
            };
            digests.insert(format!("{repository}:{tag}"), push(&mut registry, repository, tag, &labels));
        }
        let mut config = WorldConfig::new(7, Flavour::Kubernetes);
        config.nodes =
            ["worker-a", "worker-b"].map(|name| NodeConfig::new(name, Platform::linux_amd64())).into();
        config.nodes[1].allocatable.insert("nvidia.com/gpu".to_owned(), gpus.to_string());
        let world = World::new(config, registry);
        let clock = Clock::starting_at(world.timestamp());
        let sandbox = InProcess::new(world);
        let people = Cluster::over(sandbox.kubernetes(Gate::default()), 1);
        let stage = Self { sandbox, people, clock, digests };
        for definition in DEFINITIONS {
            stage.put(definition.to_value()).await;
        }
        for name in [TEAM, "scantling", "scantling-system"] {
            stage.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        }
        stage.operator("1").await;
        stage.put(stage.runtime("mlserver", "1")).await;
        stage
    }

    pub(crate) fn image(&self, repository: &str, tag: &str) -> String {
        format!("{HOST}/{repository}@{}", self.digests[&format!("{repository}:{tag}")])
    }

    /// The operator's Deployment; its pods are not of interest here.
    pub(crate) async fn operator(&self, tag: &str) {
        self.put(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "scantling-operator", "namespace": "scantling-system"},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "operator"}},
                "template": {
                    "metadata": {"labels": {"app": "operator"}},
                    "spec": {"containers": [{"name": "operator", "image": self.image("operator", tag)}]},
                },
            },
        }))
        .await;
    }

    /// A runtime for scikit-learn.
    pub(crate) fn runtime(&self, name: &str, tag: &str) -> Value {
        json!({
            "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ClusterServingRuntime", "metadata": {"name": name},
            "spec": {
                "supportedModelFormats": [{"name": "sklearn", "version": "1", "autoSelect": true}],
                "protocolVersions": ["v2"],
                "containers": [{
                    "name": "kserve-container", "image": self.image("mlserver", tag), "args": ["--name={{.Name}}"],
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "readinessProbe": {"httpGet": {"path": "/v2/health/ready", "port": 8080}, "initialDelaySeconds": 3},
                }],
            },
        })
    }

    pub(crate) fn model(&self, name: &str) -> Value {
        json!({
            "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
            "metadata": {"name": name, "namespace": TEAM},
            "spec": {"predictor": {"model": {
                "modelFormat": {"name": "sklearn"}, "protocolVersion": "v2", "storageUri": "https://models.test/iris.joblib",
            }}},
        })
    }

    /// Writes an object as a person does.
    pub(crate) async fn put(&self, object: Value) {
        let served = self.sandbox.pace(self.people.served()).await.unwrap();
        let write = Write::Apply { object, force: true };
        self.sandbox.pace(self.people.write(&served, &write)).await.unwrap();
    }

    pub(crate) async fn patch(&self, object: Value, patch: Value) {
        let served = self.sandbox.pace(self.people.served()).await.unwrap();
        let write = Write::MergePatch { object, subresource: None, patch };
        self.sandbox.pace(self.people.write(&served, &write)).await.unwrap();
    }

    /// Changes a model.
    pub(crate) async fn edit(&self, name: &str, patch: Value) {
        self.patch(self.model(name), patch).await;
    }

    /// Changes an object of the predictor's.
    pub(crate) async fn edit_own(&self, kind: (&str, &str), name: &str, patch: Value) {
        let stub =
            json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": name, "namespace": TEAM}});
        self.patch(stub, patch).await;
    }

    pub(crate) async fn delete(&self, group: &str, kind: &str, name: &str) {
        let object = self.find(group, kind, name).unwrap();
        let served = self.sandbox.pace(self.people.served()).await.unwrap();
        let write = Write::Delete { object, uid: None, grace_seconds: None };
        self.sandbox.pace(self.people.write(&served, &write)).await.unwrap();
    }

    pub(crate) fn find(&self, group: &str, kind: &str, name: &str) -> Option<Value> {
        self.sandbox.with(|world| {
            let found =
                world.objects().find(|(key, _)| key.group == group && key.kind == kind && key.name == name);
            found.map(|(_, object)| object.clone())
        })
    }

    pub(crate) fn deployment(&self, model: &str) -> Option<Value> {
        self.find("apps", "Deployment", &format!("{model}-predictor"))
    }

    /// Every object, as a reconciler sees it.
    pub(crate) fn observed(&self) -> Observed {
        self.sandbox
            .with(|world| Observed::from_objects(world.objects().map(|(_, object)| object.clone())).unwrap())
    }

    /// Runs the reconciler for some seconds; gives what it wrote.
    pub(crate) async fn run(&self, seconds: u64) -> Vec<String> {
        self.run_as(&Gate::default(), 3, Duration::from_secs(seconds)).await
    }

    /// The same with a gate of its own: whoever is killed there stops.
    pub(crate) async fn run_as(&self, gate: &Gate, seed: u64, time: Duration) -> Vec<String> {
        let cluster = Cluster::over(self.sandbox.kubernetes(gate.clone()), seed);
        self.run_over(&cluster, &[SERVING], gate, time).await
    }

    /// Some reconcilers over a client, until it is killed or the time is over; gives what they wrote.
    pub(crate) async fn run_over(
        &self,
        cluster: &Cluster,
        reconcilers: &[Reconciler],
        gate: &Gate,
        time: Duration,
    ) -> Vec<String> {
        let settings = DriveSettings {
            reconcilers,
            namespace: "scantling",
            known: tokio::sync::watch::channel(Some(Arc::new(Known::default()))).1,
            look: &|_| {},
            clock: self.clock,
        };
        let mut written = Vec::new();
        let mut tell = |event: DriveEvent| match event.what {
            Driven::Wrote { write } | Driven::Fought { write, .. } => written.push(write),
            Driven::Failed { write, why, .. } => println!("{write}: {why}"),
            _ => {}
        };
        let end = async {
            tokio::select! {
                biased;
                () = gate.killed() => {}
                () = tokio::time::sleep(time) => {}
            }
        };
        // A request of a killed process gets no answer; its future is dropped with it.
        tokio::select! {
            biased;
            () = end => {}
            ended = self.sandbox.pace(cluster.drive(&settings, &mut tell, std::future::pending())) => ended.unwrap(),
        }
        written
    }

    /// Runs the reconciler while something else happens, and shows what it knows.
    pub(crate) async fn look_while(&self, look: &dyn Fn(&Observed), end: impl Future<Output = ()>) {
        let cluster = Cluster::over(self.sandbox.kubernetes(Gate::default()), 3);
        let settings = DriveSettings {
            reconcilers: &[SERVING],
            namespace: "scantling",
            known: tokio::sync::watch::channel(Some(Arc::new(Known::default()))).1,
            look,
            clock: self.clock,
        };
        let mut tell = |event: DriveEvent| {
            if let Driven::Failed { write, why, .. } = event.what {
                println!("{write}: {why}");
            }
        };
        self.sandbox.pace(cluster.drive(&settings, &mut tell, end)).await.unwrap();
    }

    /// Status and reason of a condition; empty where there is none.
    pub(crate) fn condition(&self, model: &str, kind: &str) -> (String, String) {
        let (status, reason, _) = self.told(model, kind);
        (status, reason)
    }

    /// Status, reason and message of a condition.
    pub(crate) fn told(&self, model: &str, kind: &str) -> (String, String, String) {
        let service = self.find("serving.kserve.io", "InferenceService", model).unwrap();
        let conditions = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found =
            conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Reasons of the events about a model, sorted.
    pub(crate) fn events(&self, model: &str) -> Vec<String> {
        let mut reasons: Vec<String> = self.sandbox.with(|world| {
            let events = world.objects().filter(|(key, _)| key.kind == "Event" && key.group.is_empty());
            let about = |event: &Value| {
                event["involvedObject"]["kind"] == "InferenceService"
                    && event["involvedObject"]["name"] == model
            };
            events
                .filter(|(_, event)| about(event))
                .map(|(_, event)| object::text(event, "/reason").to_owned())
                .collect()
        });
        reasons.sort();
        reasons.dedup();
        reasons
    }

    /// Pods of a model that are ready and not on their way out.
    pub(crate) fn ready_pods(&self, model: &str) -> Vec<Value> {
        self.sandbox.with(|world| {
            let pods = world.objects().filter(|(key, _)| key.kind == "Pod" && key.group.is_empty());
            let ready = |pod: &Value| {
                let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
                pod["metadata"]["labels"]["serving.kserve.io/inferenceservice"] == model
                    && pod["metadata"]["deletionTimestamp"].is_null()
                    && conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
            };
            pods.filter(|(_, pod)| ready(pod)).map(|(_, pod)| pod.clone()).collect()
        })
    }

    /// Whether somebody from the platform's namespace who asks the Service of a model gets an answer: a pod is ready, the Service finds its
    /// port, and the policy lets in on it.
    pub(crate) fn answers(&self, model: &str) -> bool {
        let name = format!("{model}-predictor");
        let Some(service) = self.find("", "Service", &name) else { return false };
        let Some(policy) = self.find("networking.k8s.io", "NetworkPolicy", &name) else { return false };
        let target = &service["spec"]["ports"][0]["targetPort"];
        let open = policy["spec"]["ingress"][1]["ports"].as_array().unwrap();
        self.ready_pods(model).iter().any(|pod| {
            let listening = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
            let found =
                listening.iter().find(|port| port["name"] == *target || port["containerPort"] == *target);
            found.is_some_and(|found| open.iter().any(|port| port["port"] == found["containerPort"]))
        })
    }

    /// Runs the reconciler until a model is ready again; how often nobody answered in between, looked at five times a second.
    pub(crate) async fn gaps(&self, model: &str, seconds: u64) -> usize {
        self.gaps_of(&[model], seconds).await
    }

    /// The same for some models at once.
    pub(crate) async fn gaps_of(&self, models: &[&str], seconds: u64) -> usize {
        let look = async {
            let mut gaps = 0;
            for _ in 0..seconds * 5 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                gaps += models.iter().filter(|model| !self.answers(model)).count();
            }
            gaps
        };
        let run = self.run(seconds + 10);
        tokio::select! {
            biased;
            gaps = look => gaps,
            _ = run => panic!("the look ends first"),
        }
    }

    /// What was made for people's models, without what differs from run to run.
    pub(crate) fn made(&self) -> Vec<(ObjectKey, Value)> {
        self.sandbox.with(|world| {
            let kinds = ["Deployment", "StatefulSet", "PersistentVolumeClaim", "Service", "NetworkPolicy", "InferenceService"];
            let own = |key: &ObjectKey| key.namespace.as_deref() == Some(TEAM) && kinds.contains(&key.kind.as_str());
            let without_times = |object: &Value| {
                let mut status = object["status"].clone();
                if object["kind"] != "InferenceService" {
                    status = Value::Null;
                }
                for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                    condition["lastTransitionTime"] = Value::Null;
                    condition["message"] = Value::Null;
                }
                let mut spec = object["spec"].clone();
                for address in ["clusterIP", "clusterIPs", "volumeName"] {
                    if spec[address] != "None" {
                        spec.as_object_mut().unwrap().remove(address);
                    }
                }
                json!({"spec": spec, "status": status, "annotations": object["metadata"]["annotations"]["scantling.dev/applied"]})
            };
            world.objects().filter(|(key, _)| own(key)).map(|(key, object)| (key.clone(), without_times(object))).collect()
        })
    }
}
