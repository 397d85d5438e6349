//! A sandbox with a release in two versions, and any number of operators and command lines on it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, unreachable_pub, missing_docs)]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use scantling_api::ObjectKey;
use scantling_cluster::{Clock, Cluster, Write};
use scantling_contents::{ImageDescription, build};
use scantling_endpoint::{Keyring, Mirrors};
use scantling_image::Platform;
use scantling_observed::PlatformStatus;
use scantling_operator::{Line, Operator, Parts, Told};
use scantling_registry::RegistryClient;
use scantling_registry_server::{Pushed, RegistryServer};
use scantling_rehearse::{Gate, InProcess, Kill};
use scantling_release::{Release, Settings};
use scantling_run::{Bundle, Entropy, Environment, Options, RunError, RunReport, State, upgrade};
use scantling_sandbox::{Flavour, NodeConfig, World, WorldConfig};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

const HOST: &str = "registry.example.com";
pub const SYSTEM: &str = "scantling-system";

#[derive(Clone)]
pub struct Cell {
    pub sandbox: InProcess,
    pub lines: Arc<Mutex<Vec<String>>>,
}

fn deployment(name: &str, namespace: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: main, image: \"{HOST}/{image}\"}}\n"
    )
}

/// A release whose image can be absent from the registry.
pub fn files(version: &str, follows: &str, image: &str) -> BTreeMap<String, Vec<u8>> {
    let release = format!(
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: ours\nversion: {version}\nfollows: [{follows}]\nnamespace: ours\nmanifests: [manifests]\noperator: {{kind: Deployment, name: scantling-operator, namespace: {SYSTEM}}}\n"
    );
    let namespaces = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: ours}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {SYSTEM}}}\n"
    );
    let config = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{version: \"{version}\"}}\n"
    );
    [
        ("release.yaml", release),
        ("manifests/namespaces.yaml", namespaces),
        ("manifests/config.yaml", config),
        ("manifests/operator.yaml", deployment("scantling-operator", SYSTEM, &format!("operator:{version}"))),
        ("manifests/controller.yaml", deployment("controller", "ours", image)),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .collect()
}

pub fn one() -> BTreeMap<String, Vec<u8>> {
    files("1.0.0", "", "controller:1")
}

pub fn two() -> BTreeMap<String, Vec<u8>> {
    files("2.0.0", "1.0.0", "controller:2")
}

fn world(nodes: usize) -> World {
    let mut registry = RegistryServer::new();
    registry.add_host(HOST);
    for (repository, tag) in
        [("controller", "1"), ("controller", "2"), ("operator", "1.0.0"), ("operator", "2.0.0")]
    {
        // The operator's image fetches models, too, and ends then.
        let ends = if repository == "operator" { "fetch-model" } else { "never" };
        let description: ImageDescription = serde_json::from_value(json!({
            "platforms": [],
            "labels": {"scantling.dev/sandbox-ends": ends},
            "layers": [{"python": {"path": "/opt/lib/python3.8/site-packages", "packages": {repository: tag}}}],
        }))
        .unwrap();
        let built = build(&description, None).unwrap();
        let pushed = Pushed {
            media_type: built.media_type,
            root: built.root,
            blobs: built.blobs.into_iter().map(|(d, (m, b))| (d, m, Bytes::from(b))).collect(),
        };
        registry.push(HOST, repository, Some(tag), &pushed).unwrap();
    }
    let mut config = WorldConfig::new(7, Flavour::Kubernetes);
    config.nodes =
        (1..=nodes).map(|n| NodeConfig::new(format!("node-{n}"), Platform::linux_amd64())).collect();
    World::new(config, registry)
}

/// Plays on a sandbox with virtual time.
pub fn play<F: Future>(test: impl FnOnce(Cell) -> F) -> F::Output {
    play_on(2, test)
}

/// The same, with so many nodes.
pub fn play_on<F: Future>(nodes: usize, test: impl FnOnce(Cell) -> F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let cell = Cell { sandbox: InProcess::new(world(nodes)), lines: Arc::default() };
        let sandbox = cell.sandbox.clone();
        sandbox.pace(test(cell)).await
    })
}

impl Cell {
    pub fn clock(&self) -> Clock {
        Clock::starting_at(self.sandbox.with(|world| world.timestamp()))
    }

    fn registry(&self) -> RegistryClient {
        RegistryClient::new(
            self.sandbox.registry(),
            Mirrors::new(),
            Keyring::new(),
            scantling_registry::Options::default(),
        )
    }

    pub fn cluster(&self, gate: &Gate) -> Cluster {
        Cluster::over(self.sandbox.kubernetes(gate.clone()), 3)
    }

    pub fn operator(&self, name: &str, gate: &Gate) -> Operator {
        Operator::new(self.parts(name, gate))
    }

    /// What an operator is made from.
    pub fn parts(&self, name: &str, gate: &Gate) -> Parts {
        let (registry, lines, name) = (self.registry(), self.lines.clone(), name.to_owned());
        let who = name.clone();
        Parts {
            cluster: self.cluster(gate),
            clock: self.clock(),
            registries: Box::new(move || Box::pin(std::future::ready(Ok((registry.clone(), Vec::new()))))),
            entropy: Entropy::from_seed(1),
            ask: Box::new(|_| Box::pin(std::future::ready(Err("nobody".to_owned())))),
            identity: format!("operator/{name}"),
            namespace: "ours".to_owned(),
            vantage: "a pod".to_owned(),
            lines: Box::new(move |line: &Line| {
                if line.told.is_decision() && !matches!(line.told, Told::Run { .. }) {
                    lines.lock().unwrap().push(format!(
                        "{} {who} {}",
                        line.at,
                        serde_json::to_string(&line.told).unwrap()
                    ));
                }
            }),
        }
    }

    /// Runs an operator until its client is killed, or it is told to stop.
    pub async fn operates(&self, name: &str, gate: &Gate, stop: watch::Receiver<bool>) {
        let operator = self.operator(name, gate);
        tokio::select! {
            biased;
            () = gate.killed() => {}
            () = operator.run(stop) => {}
        }
    }

    /// `scantling upgrade`; none if it was killed.
    pub async fn upgrade(
        &self,
        name: &str,
        files: &BTreeMap<String, Vec<u8>>,
        kill: Option<Kill>,
    ) -> Option<Result<RunReport, RunError>> {
        let gate = kill.map_or_else(Gate::default, Gate::killing);
        let env = Environment {
            cluster: self.cluster(&gate),
            registry: self.registry(),
            clock: self.clock(),
            entropy: Entropy::from_seed(1),
            vantage: "here".to_owned(),
        };
        let release = Release::read(files, &Settings::default()).unwrap();
        let options = Options {
            holder: format!("cli/{name}"),
            bundle: Some(Bundle::of(files.clone(), Settings::default(), None)),
            ..Options::default()
        };
        let mut sink = |_| {};
        tokio::select! {
            biased;
            () = gate.killed() => None,
            ended = upgrade(&env, &release, &options, &mut sink) => Some(ended),
        }
    }

    pub async fn installed(&self) -> Option<String> {
        let state = State::stored_in(&self.cluster(&Gate::default())).await.unwrap();
        state.map(|state| state.version)
    }

    pub fn object(&self, key: &ObjectKey) -> Option<Value> {
        self.sandbox.with(|world| world.objects().find(|(k, _)| *k == key).map(|(_, v)| v.clone()))
    }

    pub fn status(&self) -> PlatformStatus {
        let platform = self.object(&ObjectKey::cluster("scantling.dev", "Platform", "platform"));
        let status = platform.and_then(|platform| platform.get("status").cloned());
        status.map(|status| PlatformStatus::deserialize(&status).unwrap()).unwrap_or_default()
    }

    pub fn condition(&self, kind: &str) -> (String, String, String) {
        let status = self.status();
        let found = status.conditions.into_iter().find(|condition| condition.kind == kind);
        found.map(|c| (c.status, c.reason, c.message)).unwrap_or_default()
    }

    /// Changes the platform's spec.
    pub async fn specify(&self, spec: Value) {
        let cluster = self.cluster(&Gate::default());
        let served = cluster.served().await.unwrap();
        let object = json!({"apiVersion": "scantling.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "platform"}});
        let write = Write::MergePatch { object, subresource: None, patch: json!({"spec": spec}) };
        cluster.write(&served, &write).await.unwrap();
    }

    /// Waits until something is so; how long it took.
    pub async fn until(&self, what: &str, limit: Duration, so: impl AsyncFn() -> bool) -> Duration {
        let started = Instant::now();
        while !so().await {
            assert!(started.elapsed() < limit, "{what} is not so after {limit:?}:\n{}", self.told());
            sleep(Duration::from_millis(500)).await;
        }
        started.elapsed()
    }

    pub async fn settled_on(&self, version: &str, limit: Duration) -> Duration {
        self.until(&format!("{version} is installed"), limit, async || {
            self.installed().await.as_deref() == Some(version) && self.condition("Ready").0 == "True"
        })
        .await
    }

    pub fn told(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    /// What the deployment of the release runs.
    pub fn controller(&self) -> String {
        let key = ObjectKey::namespaced("apps", "Deployment", "ours", "controller");
        let image = self.object(&key).unwrap();
        image.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str).unwrap().to_owned()
    }
}
