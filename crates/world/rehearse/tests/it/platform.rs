//! The platform's own releases: installed, upgraded, killed and brought again, on every flavour.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use scantling_api::{ObjectKey, object};
use scantling_cluster::{Clock, Cluster, DriveSettings, Write};
use scantling_endpoint::{Keyring, Mirrors};
use scantling_image::Platform;
use scantling_plan::Outcome;
use scantling_reconcile::{Known, RECONCILERS};
use scantling_registry::RegistryClient;
use scantling_rehearse::compare::{Generated, Objects, compare};
use scantling_rehearse::people::NotebookOutcome;
use scantling_rehearse::scenario::{Scenario, Tree};
use scantling_rehearse::{BuiltImages, Gate, InProcess, Kill};
use scantling_release::{Release, Settings};
use scantling_run::{Entropy, Environment, Options, RunError, RunReport, upgrade};
use scantling_sandbox::{Flavour, NodeConfig, World, WorldConfig};
use serde_json::{Value, json};

use crate::support::{broken, change, example, notebook, play, runs, scantling};

const EXAMPLE: &str = "platform-upgrade";

/// A process is killed at one in so many writes: with every write it takes minutes.
const STRIDE: u64 = 13;

fn files() -> Tree {
    example(EXAMPLE)
}

fn scenario() -> Scenario {
    Scenario::read(&files()).unwrap()
}

/// The images, built once: their layers are the slow part.
fn images() -> &'static BuiltImages {
    static IMAGES: OnceLock<BuiltImages> = OnceLock::new();
    IMAGES.get_or_init(|| BuiltImages::build(&scenario().images).unwrap())
}

/// One of the releases, with these components.
fn release(folder: &str, with: &[&str]) -> Release {
    let prefix = format!("../../releases/{folder}/");
    let own =
        files().into_iter().filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?.to_owned(), bytes)));
    let settings = Settings {
        registry: Some("registry.example.com/scantling".to_owned()),
        with: with.iter().map(|name| (*name).to_owned()).collect(),
        ..Settings::default()
    };
    Release::read(&own.collect(), &settings).unwrap()
}

fn cluster(flavour: Flavour) -> World {
    let mut config = WorldConfig::new(5, flavour);
    config.internal_registry = (flavour == Flavour::OpenShift)
        .then(|| "image-registry.openshift-image-registry.svc:5000".to_owned());
    config.nodes =
        ["worker-a", "worker-b"].iter().map(|name| NodeConfig::new(*name, Platform::linux_amd64())).collect();
    World::new(config, images().registry().unwrap())
}

/// Runs until it ends, or is killed at the gate: then another process takes over.
async fn bring(
    sandbox: &InProcess,
    release: &Release,
    kill: Option<Kill>,
) -> (Result<RunReport, RunError>, u64) {
    let mut gate = kill.map_or_else(Gate::default, Gate::killing);
    let mut writes = 0;
    for process in 0..2_u64 {
        let environment = Environment {
            cluster: Cluster::over(sandbox.kubernetes(gate.clone()), process),
            registry: RegistryClient::new(
                sandbox.registry(),
                Mirrors::default(),
                Keyring::default(),
                scantling_registry::Options::default(),
            ),
            clock: Clock::starting_at(sandbox.with(|world| world.timestamp())),
            entropy: Entropy::from_seed(process),
            vantage: "here".to_owned(),
        };
        let options = Options::default();
        let mut silent = |_| ();
        let ended = tokio::select! {
            biased;
            ended = upgrade(&environment, release, &options, &mut silent) => Some(ended),
            () = gate.killed() => None,
        };
        writes += gate.writes();
        match ended {
            Some(ended) => return (ended, writes),
            None => gate = Gate::default(),
        }
    }
    panic!("killed twice")
}

async fn done(sandbox: &InProcess, release: &Release, kill: Option<Kill>) -> (RunReport, u64) {
    match bring(sandbox, release, kill).await {
        (Ok(report), writes) => (report, writes),
        (Err(error), _) => panic!("{}, {kill:?}: {error}: {:#?}", release.title(), error.report().findings),
    }
}

fn objects(sandbox: &InProcess) -> Objects {
    sandbox.with(|world| world.objects().map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Plays on a cluster of its own, in virtual time.
fn on<F: Future>(flavour: Flavour, act: impl FnOnce(InProcess) -> F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let sandbox = InProcess::new(cluster(flavour));
        sandbox.pace(act(sandbox.clone())).await
    })
}

fn drawn() -> BTreeSet<Generated> {
    [("scantling-system", "operator-metrics"), ("scantling", "metrics-reader")]
        .map(|(namespace, name)| Generated {
            key: ObjectKey::namespaced("", "Secret", namespace, name),
            data_key: "token".to_owned(),
        })
        .into()
}

fn same(one: &Objects, other: &Objects, how: &str) {
    let comparison = compare(one, other, &drawn(), |_, _, _| (String::new(), false));
    assert!(comparison.differences.is_empty(), "{how}: {:#?}", comparison.differences);
}

fn outcomes(report: &RunReport) -> BTreeMap<String, Outcome> {
    report.outcomes.iter().map(|it| (it.key.to_string(), it.outcome)).collect()
}

#[test]
fn people_are_served_through_the_upgrade_and_every_promise_holds() {
    for flavour in ["kubernetes", "openshift"] {
        let mut tree = files();
        change(&mut tree, "rehearsal.yaml", "flavour: kubernetes", &format!("flavour: {flavour}"));
        let seen = play(&tree, &scantling());
        assert_eq!(broken(&seen), [], "{flavour}: {:#?}", seen.promises);
        let ada = notebook(&seen, "ada");
        assert_eq!(ada.outcome, NotebookOutcome::KeptAndMarked);
        assert!(ada.update_pending.as_ref().unwrap().contains("scikit-learn 1.8.0 → 1.9.0"), "{ada:?}");
        // The node has the old image under the name that was chosen.
        let cho = notebook(&seen, "cho");
        assert_eq!((cho.outcome, cho.node.as_deref()), (NotebookOutcome::AsPromised, Some("worker-a")));
        assert_eq!(runs(cho, "scikit-learn"), "1.9.0");
        // Retired, and in use: it stays, and nothing waits for its owner.
        let ben = notebook(&seen, "ben");
        assert_eq!((ben.outcome, ben.update_pending.as_deref()), (NotebookOutcome::AsPromised, None));
        let iris = seen.models.first().unwrap();
        assert!(iris.serves && iris.packages.contains(&"scikit-learn 1.9.0".to_owned()), "{iris:?}");
        let report = seen.attempts.last().unwrap().report.as_ref().unwrap();
        let outcomes = outcomes(report);
        assert_eq!(outcomes["PriorityClass scantling-notebooks"], Outcome::Replaced);
        assert_eq!(outcomes["ConfigMap scantling/user-namespace"], Outcome::Pruned);
        assert_eq!(outcomes["ConfigMap scantling/namespace-template"], Outcome::Created);
        let settings =
            seen.objects.get(&ObjectKey::namespaced("", "ConfigMap", "scantling", "spawner-settings"));
        let data = settings.unwrap().get("data").unwrap();
        assert_eq!(data["volumeSize"], "5Gi", "what an admin wrote stays");
        assert_eq!((data.get("notebookSize"), data["restart"].as_str()), (None, Some("owner")));
    }
}

#[test]
fn a_second_run_writes_nothing_and_both_ways_lead_to_the_same() {
    for flavour in [Flavour::Kubernetes, Flavour::OpenShift] {
        let (first, second) = (release("2026.1", &[]), release("2026.2", &[]));
        let upgraded = on(flavour, |sandbox| async move {
            for release in [&first, &second] {
                done(&sandbox, release, None).await;
                let (again, _) = done(&sandbox, release, None).await;
                let written: Vec<_> =
                    again.outcomes.iter().filter(|it| it.outcome != Outcome::Unchanged).collect();
                assert_eq!(again.writes, 0, "{flavour:?} {}: {written:#?}", release.title());
            }
            objects(&sandbox)
        });
        let second = release("2026.2", &[]);
        let fresh = on(flavour, |sandbox| async move {
            done(&sandbox, &second, None).await;
            objects(&sandbox)
        });
        // What is retired was never there on a fresh cluster, and is offered to nobody.
        same(&upgraded, &fresh, &format!("{flavour:?}"));
    }
}

#[test]
fn killed_at_a_write_another_process_brings_it_to_the_same_end() {
    let (first, second) = (release("2026.1", &[]), release("2026.2", &[]));
    let story = |install: Option<Kill>, update: Option<Kill>| {
        let (first, second) = (&first, &second);
        on(Flavour::Kubernetes, move |sandbox| async move {
            let (_, installing) = done(&sandbox, first, install).await;
            let (_, upgrading) = done(&sandbox, second, update).await;
            (objects(&sandbox), installing, upgrading)
        })
    };
    let (whole, installing, upgrading) = story(None, None);
    assert!(installing > 30 && upgrading > 15, "{installing} {upgrading}");
    for number in (1..=installing.max(upgrading)).step_by(usize::try_from(STRIDE).unwrap()) {
        for kill in [Kill::Before, Kill::After] {
            let install = (number <= installing).then(|| kill(number));
            let update = (number <= upgrading).then(|| kill(number));
            let (seen, ..) = story(install, update);
            same(&whole, &seen, &format!("{install:?}, {update:?}"));
        }
    }
}

/// A model whose runtime is its team's own.
fn own_model(digest: &str) -> Vec<Value> {
    let container = json!({"name": "kserve-container", "image": format!("registry.example.com/scantling/mlserver@{digest}")});
    let model = json!({"modelFormat": {"name": "ours"}, "storageUri": "https://models.example.com/a"});
    let about = |name: &str| json!({"name": name, "namespace": "team"});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
        json!({
            "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime", "metadata": about("own"),
            "spec": {"supportedModelFormats": [{"name": "ours", "autoSelect": true}], "containers": [container]},
        }),
        json!({
            "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": about("own"),
            "spec": {"predictor": {"model": model}},
        }),
    ]
}

#[test]
fn the_upgrade_of_the_operator_alone_replaces_no_pods_of_models() {
    let (first, second) = (release("2026.1", &[]), release("2026.2", &[]));
    on(Flavour::Kubernetes, |sandbox| async move {
        done(&sandbox, &first, None).await;
        let cluster = Cluster::over(sandbox.kubernetes(Gate::default()), 9);
        let served = cluster.served().await.unwrap();
        let image = |objects: &Objects| {
            let key = ObjectKey::namespaced("apps", "Deployment", "scantling-system", "scantling-operator");
            objects[&key]["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
        };
        let runtime = ObjectKey::cluster("serving.kserve.io", "ClusterServingRuntime", "mlserver");
        let serving =
            objects(&sandbox)[&runtime]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        for object in own_model(serving.split_once('@').unwrap().1) {
            cluster.write(&served, &Write::Apply { object, force: true }).await.unwrap();
        }
        // Name and images of the pods that are ready.
        let pods = || {
            let ready = |pod: &Value| {
                let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
            };
            let objects = objects(&sandbox);
            let own = objects.iter().filter(|(key, pod)| {
                key.kind == "Pod" && key.namespace.as_deref() == Some("team") && ready(pod)
            });
            own.map(|(key, pod)| (key.name.clone(), pod["spec"]["initContainers"][0]["image"].clone()))
                .collect::<Vec<_>>()
        };
        let settings = DriveSettings {
            reconcilers: RECONCILERS,
            namespace: "scantling",
            known: tokio::sync::watch::channel(Some(Arc::new(Known::default()))).1,
            look: &|_| {},
            clock: Clock::starting_at(sandbox.with(|world| world.timestamp())),
        };
        let story = async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            let before = pods();
            let fetching = image(&objects(&sandbox));
            assert_eq!(before.iter().map(|pod| &pod.1).collect::<Vec<_>>(), [&json!(fetching)]);
            let (report, _) = done(&sandbox, &second, None).await;
            assert!(!report.outcomes.is_empty());
            tokio::time::sleep(Duration::from_mins(2)).await;
            assert_ne!(image(&objects(&sandbox)), fetching, "the operator was upgraded");
            assert_eq!(pods(), before);
        };
        let mut silent = |_| ();
        tokio::select! {
            biased;
            ended = cluster.drive(&settings, &mut silent, std::future::pending()) => panic!("{ended:?}"),
            () = story => {}
        }
    });
}

#[test]
fn a_component_whose_image_is_not_in_the_registry_is_refused_before_anything_is_written() {
    let wanted = release("2026.1", &["pytorch", "openvino"]);
    on(Flavour::Kubernetes, |sandbox| async move {
        let (ended, writes) = bring(&sandbox, &wanted, None).await;
        let Err(RunError::Refused { why, report }) = ended else { panic!("{ended:?}") };
        assert!(why.contains("scantling/openvino:2026.1") && why.contains("1 more"), "{why}");
        assert_eq!(report.findings.len(), 2, "{:#?}", report.findings);
        assert_eq!(writes, 0);
        assert!(objects(&sandbox).keys().all(|key| !key.to_string().contains("scantling")));
    });
}

#[test]
fn everything_says_what_it_belongs_to_and_names_no_version() {
    for folder in ["2026.1", "2026.2"] {
        let all = ["pytorch", "tensorflow", "gpu", "openvino", "vllm"];
        let release = release(folder, &all);
        assert_eq!(release.findings, []);
        assert_eq!(release.selected.len(), all.len());
        for it in release.objects.iter().filter(|it| it.gvk.kind != "CustomResourceDefinition") {
            let part = object::label(&it.value, "app.kubernetes.io/part-of");
            assert_eq!(part, Some("scantling-platform"), "{}", it.key);
            assert!(object::label(&it.value, "app.kubernetes.io/version").is_none(), "{}", it.key);
        }
        for it in &release.objects {
            let Some(pointer) = object::pod_spec_pointer(&it.gvk) else { continue };
            let pod = it.value.pointer(pointer).unwrap();
            assert_eq!(pod.pointer("/securityContext/runAsNonRoot"), Some(&Value::Bool(true)), "{}", it.key);
        }
        // Versions are read from images: the release names packages and no versions of them.
        for image in &release.images {
            assert!(!image.shows.is_empty(), "{}", image.selection());
            let versions = image.shows.iter().filter(|name| name.chars().any(|c| c.is_ascii_digit()));
            assert_eq!(versions.count(), 0, "{:?}", image.shows);
        }
    }
}
