//! One cluster on which a story is played: the sandbox, the clients that reach it, and what was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use scantling_api::{ObjectKey, object};
use scantling_contents::Claim;
use scantling_endpoint::Mirrors;
use scantling_image::{Digest, Sameness};
use scantling_sandbox::{BuildRecipe, Flavour, NodeConfig, World, WorldConfig};
use serde_json::{Value, json};

use crate::bridge::InProcess;
use crate::cluster_view::{self, UPDATE_PENDING};
use crate::compare::Objects;
use crate::images::{BuiltImages, Library};
use crate::kubectl::Kubectl;
use crate::people::{AdvisorySeen, ClaimSeen, ModelSeen, NotebookOutcome, NotebookSeen, Spawner};
use crate::record::{Actor, Recorder};
use crate::rehearsal::{Options, RehearseError};
use crate::scenario::{Deploy, FlavourName, Open, Scenario, ScenarioRelease, Step};
use crate::vendor::{Script, Variables};

/// People wait this long for a notebook or a model before they give up, in virtual time.
const PATIENCE: Duration = Duration::from_mins(15);

/// How often they look.
const LOOK: Duration = Duration::from_secs(1);

/// A cluster with people on it.
pub(crate) struct Stage<'a> {
    /// The example.
    pub scenario: &'a Scenario,
    /// How it is played.
    pub options: &'a Options,
    /// Its images.
    pub images: &'a BuiltImages,
    /// The cluster.
    pub sandbox: InProcess,
    /// What was seen.
    pub recorder: Recorder,
    /// The cluster's mirrors.
    pub mirrors: Mirrors,
    /// Objects that people made, and who.
    pub people: BTreeMap<ObjectKey, String>,
    /// Objects that the vendor's installer made.
    pub installed: BTreeSet<ObjectKey>,
    library: Mutex<Library>,
    opened: Vec<Opened>,
    deployed: Vec<Deployed>,
    scripts: u64,
}

struct Opened {
    open: Open,
    spawner: Spawner,
    root: ObjectKey,
    claims: Vec<Claim>,
    before_upgrade: bool,
    closed: bool,
}

struct Deployed {
    deploy: Deploy,
    root: Option<ObjectKey>,
    trouble: Option<String>,
}

impl<'a> Stage<'a> {
    /// A cluster as the scenario describes it, with nothing installed.
    pub(crate) fn new(
        scenario: &'a Scenario,
        options: &'a Options,
        images: &'a BuiltImages,
        recorder: Recorder,
    ) -> Result<Self, RehearseError> {
        let mirrors = mirrors(scenario)?;
        let config = config(scenario, options.seed, mirrors.clone())?;
        let registry = images.registry().map_err(RehearseError::Example)?;
        let mut world = World::new(config, registry);
        for node in &scenario.cluster.nodes {
            for name in &node.cached {
                world.preload(&node.name, name).map_err(|error| {
                    RehearseError::Example(format!("node {}: cached {name}: {error}", node.name))
                })?;
            }
        }
        Ok(Self {
            scenario,
            options,
            images,
            sandbox: InProcess::new(world),
            recorder,
            mirrors,
            people: BTreeMap::new(),
            installed: BTreeSet::new(),
            library: Mutex::default(),
            opened: Vec::new(),
            deployed: Vec::new(),
            scripts: 0,
        })
    }

    /// All objects, now.
    pub(crate) fn objects(&self) -> Objects {
        self.sandbox.with(|world| world.objects().map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// Runs steps of the vendor's way, and returns what they created.
    pub(crate) async fn script(
        &mut self,
        release: &ScenarioRelease,
        actor: Actor,
        steps: &[Step],
        mut variables: Variables,
    ) -> Result<Vec<ObjectKey>, String> {
        self.scripts += 1;
        let mut script = Script {
            sandbox: self.sandbox.clone(),
            release,
            images: self.images,
            recorder: self.recorder.clone(),
            actor,
            random: fastrand::Rng::with_seed(self.options.seed ^ self.scripts.rotate_left(32)),
            nodes: self.scenario.cluster.nodes.iter().map(|node| node.name.clone()).collect(),
            created: Vec::new(),
        };
        let result = script.run(steps, &mut variables).await;
        let created = script.created;
        result.map(|()| created).map_err(|error| error.to_string())
    }

    /// A person opens a notebook on the spawner that is there, and waits for it.
    pub(crate) async fn open(
        &mut self,
        open: &Open,
        release: &ScenarioRelease,
        upgraded: bool,
    ) -> Result<(), RehearseError> {
        let objects = self.objects();
        let actor = Actor::Person(open.person.clone());
        let (spawner, claims, root) = if let Some(offered) = cluster_view::offered(&objects, &open.image) {
            self.recorder.say(
                &actor,
                format!("opens {} on {}", open.image, open.node.as_deref().unwrap_or("any node")),
            );
            let root = self.open_notebook(open, release).await.map_err(|error| self.story(&actor, error))?;
            (Spawner::Scantling, offered.claims, root)
        } else {
            let namespace = release.release.namespace.as_deref().unwrap_or_default();
            let claims = cluster_view::stream_claims(&objects, namespace, &open.image);
            self.recorder.say(
                &actor,
                format!("opens {} on {}", open.image, open.node.as_deref().unwrap_or("any node")),
            );
            let variables = Variables::from([
                ("person".to_owned(), open.person.clone()),
                ("image".to_owned(), open.image.clone()),
                ("node".to_owned(), open.node.clone().unwrap_or_default()),
            ]);
            let steps = &self.scenario.shipped.open;
            let created = self
                .script(release, actor.clone(), steps, variables)
                .await
                .map_err(|error| self.story(&actor, error))?;
            let root = created
                .into_iter()
                .next()
                .ok_or_else(|| self.story(&actor, "shipped.open creates nothing".to_owned()))?;
            (Spawner::Vendor, claims, root)
        };
        self.people.insert(root.clone(), open.person.clone());
        self.wait_for(&root).await;
        let text = match self.pod(&root) {
            Some(pod) => {
                let view = cluster_view::pod(&pod);
                let node = object::text(&pod, "/spec/nodeName").to_owned();
                if let Some(digest) = &view.running {
                    // Read now: an upgrade may take it out of its registry while it goes on running.
                    let _ = self.look_up(digest);
                }
                match (view.running, view.trouble) {
                    (Some(digest), None) => format!("has a notebook on {node}, image {}", digest.short()),
                    (_, Some(trouble)) => format!("waits in vain: {trouble}"),
                    (None, None) => "waits in vain: the pod does not start".to_owned(),
                }
            }
            None => "waits in vain: there is no pod".to_owned(),
        };
        self.recorder.say(&actor, text);
        self.opened.push(Opened {
            open: open.clone(),
            spawner,
            root,
            claims,
            before_upgrade: !upgraded,
            closed: false,
        });
        Ok(())
    }

    async fn open_notebook(&mut self, open: &Open, release: &ScenarioRelease) -> Result<ObjectKey, String> {
        let namespace = self
            .scenario
            .notebooks_namespace
            .as_deref()
            .or(release.release.namespace.as_deref())
            .ok_or("rehearsal.yaml names no notebooksNamespace, and the release no namespace")?;
        let mut spec = json!({"containers": [{"name": open.person}]});
        if let Some(node) = &open.node {
            spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        }
        let notebook = json!({
            "apiVersion": "kubeflow.org/v1",
            "kind": "Notebook",
            "metadata": {
                "name": open.person,
                "namespace": namespace,
                "annotations": {"notebooks.opendatahub.io/last-image-selection": open.image},
            },
            "spec": {"template": {"spec": spec}},
        });
        let mut kubectl = Kubectl::new(self.sandbox.clone());
        let made = kubectl.create(&notebook, namespace).await.map_err(|error| error.to_string())?;
        object::key(&made).map_err(|error| error.to_string())
    }

    /// A person closes their notebook.
    pub(crate) async fn close(
        &mut self,
        person: &str,
        release: &ScenarioRelease,
    ) -> Result<(), RehearseError> {
        let actor = Actor::Person(person.to_owned());
        let Some(index) = self.opened.iter().position(|it| it.open.person == person && !it.closed) else {
            return Err(self.story(&actor, "closes a notebook that isn't open".to_owned()));
        };
        let Some(opened) = self.opened.get_mut(index) else { return Ok(()) };
        opened.closed = true;
        let (spawner, root) = (opened.spawner, opened.root.clone());
        self.people.remove(&root);
        self.recorder.say(&actor, "closes their notebook".to_owned());
        let done = match spawner {
            Spawner::Vendor => {
                let variables = Variables::from([("person".to_owned(), person.to_owned())]);
                let steps = &self.scenario.shipped.close;
                self.script(release, actor.clone(), steps, variables).await.map(|_| ())
            }
            Spawner::Scantling => {
                let mut kubectl = Kubectl::new(self.sandbox.clone());
                let kind = format!("{}.{}", root.kind, root.group);
                kubectl
                    .delete(&kind, root.namespace.as_deref(), &root.name)
                    .await
                    .map_err(|error| error.to_string())
            }
        };
        done.map_err(|error| self.story(&actor, error))?;
        // A person who opens the next notebook has seen the last one go.
        let mut waited = Duration::ZERO;
        while waited < PATIENCE && self.pod(&root).is_some() {
            tokio::time::sleep(LOOK).await;
            waited += LOOK;
        }
        Ok(())
    }

    /// A person makes a namespace of their own.
    pub(crate) async fn project(&mut self, person: &str, name: &str) -> Result<(), RehearseError> {
        let actor = Actor::Person(person.to_owned());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let mut kubectl = Kubectl::new(self.sandbox.clone());
        let made =
            kubectl.create(&namespace, "").await.map_err(|error| self.story(&actor, error.to_string()))?;
        self.recorder.say(&actor, format!("makes the project {name}"));
        if let Ok(key) = object::key(&made) {
            self.people.insert(key, person.to_owned());
        }
        Ok(())
    }

    /// A person changes something by hand.
    pub(crate) async fn edit(
        &mut self,
        person: &str,
        steps: &[Step],
        release: &ScenarioRelease,
    ) -> Result<(), RehearseError> {
        let actor = Actor::Person(person.to_owned());
        let created = self
            .script(release, actor.clone(), steps, Variables::new())
            .await
            .map_err(|error| self.story(&actor, error))?;
        self.people.extend(created.into_iter().map(|key| (key, person.to_owned())));
        Ok(())
    }

    /// A person deploys a model, and waits for it.
    pub(crate) async fn deploy(&mut self, deploy: &Deploy, release: &ScenarioRelease) {
        let actor = Actor::Person(deploy.person.clone());
        self.recorder.say(&actor, format!("deploys {} in {}", deploy.model, deploy.project));
        let variables = Variables::from([
            ("person".to_owned(), deploy.person.clone()),
            ("project".to_owned(), deploy.project.clone()),
            ("model".to_owned(), deploy.model.clone()),
        ]);
        let steps = &self.scenario.shipped.deploy;
        let (root, trouble) = match self.script(release, actor.clone(), steps, variables).await {
            Ok(created) => {
                self.people.extend(created.iter().map(|key| (key.clone(), deploy.person.clone())));
                (
                    created
                        .into_iter()
                        .find(|key| matches!(key.kind.as_str(), "InferenceService" | "Deployment" | "Pod")),
                    None,
                )
            }
            Err(error) => (None, Some(error)),
        };
        if let Some(root) = &root {
            self.wait_for(root).await;
        }
        let deployed = Deployed { deploy: deploy.clone(), root, trouble };
        let seen = self.model(&deployed, &self.objects());
        self.recorder.say(
            &actor,
            match seen.trouble {
                None => format!("{} answers", deploy.model),
                Some(trouble) => format!("{} does not answer: {trouble}", deploy.model),
            },
        );
        self.deployed.push(deployed);
    }

    /// What people have at the end.
    pub(crate) fn seen(&self, release: &ScenarioRelease) -> (Vec<NotebookSeen>, Vec<ModelSeen>) {
        let objects = self.objects();
        let notebooks = self
            .opened
            .iter()
            .filter(|opened| !opened.closed)
            .map(|opened| self.notebook(opened, &objects, release))
            .collect();
        let models = self.deployed.iter().map(|it| self.model(it, &objects)).collect();
        (notebooks, models)
    }

    fn notebook(&self, opened: &Opened, objects: &Objects, release: &ScenarioRelease) -> NotebookSeen {
        let pod = cluster_view::pods_of(objects, &opened.root).into_iter().next();
        let view = pod.map(cluster_view::pod);
        let namespace = release.release.namespace.as_deref().unwrap_or_default();
        let wanted = cluster_view::wanted(objects, namespace, &opened.open.image);
        let running = view.as_ref().and_then(|view| view.running.clone());
        let held = running.as_ref().and_then(|digest| self.look_up(digest));
        let as_wanted = match (&wanted, &running) {
            (Some(wanted), Some(running)) if wanted == running => Some(true),
            (Some(wanted), Some(running)) => {
                self.look_up(wanted).map(|held| held.identity.compare(running) == Sameness::Same)
            }
            _ => None,
        };
        let contents = held.and_then(|held| held.contents);
        let claims: Vec<ClaimSeen> = contents
            .iter()
            .flat_map(|contents| opened.claims.iter().map(|claim| ClaimSeen::new(claim, contents)))
            .collect();
        let advisories = self
            .scenario
            .advisories
            .iter()
            .filter_map(|advisory| {
                let version = contents.as_ref()?.version_of(&advisory.package)?;
                advisory.affected.iter().any(|affected| affected == version).then(|| AdvisorySeen {
                    package: advisory.package.clone(),
                    version: version.to_owned(),
                    note: advisory.note.clone(),
                })
            })
            .collect();
        let update_pending = pod.and_then(|pod| object::annotation(pod, UPDATE_PENDING)).map(str::to_owned);
        let ready = view.as_ref().is_some_and(|view| view.ready);
        let truthful = claims.iter().all(|claim| claim.holds);
        let outcome = match (ready, opened.before_upgrade, as_wanted == Some(true)) {
            (false, ..) => NotebookOutcome::NotRunning,
            (true, true, true) => NotebookOutcome::AsPromised,
            (true, true, false) if update_pending.is_some() => NotebookOutcome::KeptAndMarked,
            (true, true, false) => NotebookOutcome::KeptUnmarked,
            (true, false, true) if truthful => NotebookOutcome::AsPromised,
            (true, false, true) => NotebookOutcome::ClaimFalse,
            (true, false, false) => NotebookOutcome::Stale,
        };
        NotebookSeen {
            person: opened.open.person.clone(),
            selection: opened.open.image.clone(),
            spawner: opened.spawner,
            since_before_upgrade: opened.before_upgrade,
            pod: view.as_ref().map(|view| view.name.clone()).unwrap_or_default(),
            node: pod
                .map(|pod| object::text(pod, "/spec/nodeName").to_owned())
                .filter(|node| !node.is_empty()),
            written: view.as_ref().map(|view| view.written.clone()).unwrap_or_default(),
            wanted,
            running,
            as_wanted,
            claims,
            advisories,
            update_pending,
            trouble: view.and_then(|view| view.trouble).map(|trouble| trouble.to_string()),
            outcome,
        }
    }

    fn model(&self, deployed: &Deployed, objects: &Objects) -> ModelSeen {
        let pod =
            deployed.root.as_ref().and_then(|root| cluster_view::pods_of(objects, root).into_iter().next());
        let view = pod.map(cluster_view::pod);
        let running = view.as_ref().and_then(|view| view.running.clone());
        let packages = running
            .as_ref()
            .and_then(|digest| self.look_up(digest)?.contents)
            .map(|contents| {
                contents.packages.iter().map(|it| format!("{} {}", it.name, it.version)).collect()
            })
            .unwrap_or_default();
        let serves = view.as_ref().is_some_and(|view| view.ready);
        let trouble = deployed.trouble.clone().or_else(|| {
            if serves {
                return None;
            }
            let waiting = view.as_ref().and_then(|view| view.trouble.as_ref()).map(ToString::to_string);
            Some(waiting.unwrap_or_else(|| "its pod is not ready".to_owned()))
        });
        ModelSeen {
            person: deployed.deploy.person.clone(),
            project: deployed.deploy.project.clone(),
            model: deployed.deploy.model.clone(),
            pod: view.as_ref().map(|view| view.name.clone()),
            node: pod
                .map(|pod| object::text(pod, "/spec/nodeName").to_owned())
                .filter(|node| !node.is_empty()),
            written: view.map(|view| view.written),
            running,
            packages,
            serves,
            trouble,
        }
    }

    /// What runs below an object: the pod that is it or that controllers made for it.
    fn pod(&self, root: &ObjectKey) -> Option<Value> {
        let objects: Objects = self.sandbox.with(|world| {
            let workloads = world.objects().filter(|(key, _)| cluster_view::is_workload(key));
            workloads.map(|(key, value)| (key.clone(), value.clone())).collect()
        });
        cluster_view::pods_of(&objects, root).into_iter().next().cloned()
    }

    /// Waits until the pod of an object is ready, or it is plain that it won't be.
    async fn wait_for(&self, root: &ObjectKey) {
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            if let Some(pod) = self.pod(root) {
                let view = cluster_view::pod(&pod);
                let hopeless = view.trouble.is_some_and(|trouble| trouble.is_lasting());
                if view.ready || hopeless {
                    return;
                }
            }
            tokio::time::sleep(LOOK).await;
            waited += LOOK;
        }
    }

    fn look_up(&self, digest: &Digest) -> Option<crate::images::Held> {
        let mut library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        self.sandbox.with(|world| library.look_up(world.registry(), digest))
    }

    fn story(&self, actor: &Actor, error: String) -> RehearseError {
        RehearseError::Story { at: self.recorder.now_ms(), actor: actor.to_string(), error }
    }
}

fn mirrors(scenario: &Scenario) -> Result<Mirrors, RehearseError> {
    let mut mirrors = Mirrors::default();
    for object in &scenario.cluster.mirrors {
        let known = mirrors
            .add_object(object)
            .map_err(|error| RehearseError::Example(format!("cluster.mirrors: {error}")))?;
        if !known {
            return Err(RehearseError::Example(format!(
                "cluster.mirrors: a {} says nothing about mirrors",
                object::text(object, "/kind")
            )));
        }
    }
    Ok(mirrors)
}

fn config(scenario: &Scenario, seed: u64, mirrors: Mirrors) -> Result<WorldConfig, RehearseError> {
    let cluster = &scenario.cluster;
    let flavour = match cluster.flavour {
        FlavourName::Kubernetes => Flavour::Kubernetes,
        FlavourName::Openshift => Flavour::OpenShift,
    };
    let mut config = WorldConfig::new(seed, flavour);
    config.internal_registry.clone_from(&cluster.internal_registry);
    config.mirrors = mirrors;
    for node in &cluster.nodes {
        let mut described = NodeConfig::new(&node.name, node.platform.clone());
        described.disk_bytes = bytes(&node.disk).ok_or_else(|| {
            RehearseError::Example(format!(
                "node {}: disk {:?} is not a size like 120Gi",
                node.name, node.disk
            ))
        })?;
        described.labels.extend(node.labels.clone());
        config.nodes.push(described);
    }
    config.builds = scenario
        .images
        .builds
        .iter()
        .map(|build| BuildRecipe {
            uri: build.source.uri.clone(),
            ref_: build.source.reference.clone(),
            context_dir: build.source.context_dir.clone().unwrap_or_default(),
            minutes: u64::from(build.minutes),
            description: build.image.clone(),
        })
        .collect();
    Ok(config)
}

/// A size as a Kubernetes quantity with a binary suffix, in bytes.
fn bytes(quantity: &str) -> Option<u64> {
    let digits = quantity.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match quantity.get(digits.len()..)? {
        "" => 0,
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        "Ti" => 40,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (bytes > 0).then_some(bytes)
}
