//! Figures of the operator on a real API server: how soon it leads and answers, what it writes at rest, and how much it holds.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use scantling_api::ObjectKey;
use scantling_cluster::{Cluster, Served, Write};
use scantling_real_tests::RealCluster;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::table::{Goal, Table};

/// Whom the operator is told apart by in the API server's log.
const PERSON: &str = "bench-operator";
/// Requests under way while a cluster is filled.
const CONNECTIONS: usize = 16;
const STARTS: usize = 5;
const REQUESTS: usize = 10;
const NOTEBOOKS: usize = 200;
const MODELS: usize = 50;
const PODS: usize = 10_000;
/// How long a settled platform is watched.
const WATCHED: Duration = Duration::from_mins(1);
/// How long one thing may take before the bench gives up.
const PATIENCE: Duration = Duration::from_mins(3);

/// The process.
struct Operator {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Operator {
    /// Starts it and waits until it leads; gives how long that took.
    fn lead(binary: &Path, kubeconfig: &Path) -> anyhow::Result<(Self, Duration)> {
        let started = Instant::now();
        let mut child = Command::new(binary)
            .args(["operator", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start the operator")?;
        let output = child.stdout.take().context("the operator has no output")?;
        let mut operator = Self { child, lines: BufReader::new(output).lines() };
        let line = operator.lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("\"leads\"")));
        line.context("the operator ended before it led")??;
        Ok((operator, started.elapsed()))
    }

    /// Bytes that it holds in memory.
    fn resident(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().context("VmRSS is no number")?;
        Ok(kilobytes * 1024)
    }

    /// Reads what it says, so that it never waits for a reader.
    fn drained(self) -> Child {
        let Self { child, lines } = self;
        std::thread::spawn(move || lines.for_each(drop));
        child
    }
}

/// Ends a process as Kubernetes does, so that it gives its leases back.
fn end(child: &mut Child) -> anyhow::Result<()> {
    Command::new("kill").arg(child.id().to_string()).status().context("failed to run kill")?;
    child.wait().context("failed to wait for the operator")?;
    Ok(())
}

/// Measures all of it, on a cluster of its own.
pub(crate) fn measure(root: &Path, binary: &Path, table: &mut Table) -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::up(0)? else { return Ok(()) };
    let kubeconfig = prepare(root, &cluster)?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let (operator, time) = Operator::lead(binary, &kubeconfig)?;
        end(&mut operator.drained())?;
        times.push(time);
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    table.goal(Goal::at_most("operator: start to leader", median.as_secs_f64() * 1e3, 2000.0, "ms"));

    let (operator, _) = Operator::lead(binary, &kubeconfig)?;
    let pid_holder = &operator;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, _) = Cluster::from_kubeconfig(&[cluster.kubeconfig()], None, 1).await?;
        let served = client.served().await?;
        requests(&client, &served, table).await?;
        settled(&cluster, &client, &served, table).await?;
        fill(&client, &served, (0..PODS).map(pod)).await?;
        sleep(Duration::from_secs(10)).await;
        let megabytes = pid_holder.resident()? / 1_000_000;
        #[expect(clippy::cast_precision_loss, reason = "a figure for the eye")]
        table.goal(Goal::at_most("operator: memory with 10,000 pods", megabytes as f64, 100.0, "MB"));
        anyhow::Ok(())
    })?;
    end(&mut operator.drained())
}

/// What the operator needs in a cluster: the kinds, namespaces, an image in the catalogue, a runtime, and somebody to be.
fn prepare(root: &Path, cluster: &RealCluster) -> anyhow::Result<PathBuf> {
    let definitions = root.join("releases/2026.2/crds").display().to_string();
    cluster.run(&["create", "-f", &definitions])?;
    cluster.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"])?;
    for namespace in ["scantling", "scantling-system", "people", "pods"] {
        cluster.run(&["create", "namespace", namespace])?;
    }
    cluster.run(&[
        "create",
        "clusterrolebinding",
        PERSON,
        "--clusterrole=cluster-admin",
        "--user",
        PERSON,
    ])?;
    let digest = format!("sha256:{}", "0".repeat(64));
    let image = format!("registry.example.com/lab@{digest}");
    let items = json!([
        {
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": "lab", "namespace": "scantling"},
            "spec": {"selection": "lab:1", "title": "Lab", "image": image, "digests": [digest], "release": "bench"},
        },
        {
            "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ClusterServingRuntime",
            "metadata": {"name": "server"},
            "spec": {
                "supportedModelFormats": [{"name": "sklearn", "version": "1", "autoSelect": true}],
                "protocolVersions": ["v2"],
                "containers": [{"name": "kserve-container", "image": image, "ports": [{"containerPort": 8080}]}],
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": "people"},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        },
    ]);
    let file = cluster.folder().join("bench.json");
    std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())?;
    cluster.run(&["create", "-f", &file.display().to_string()])?;
    cluster.kubeconfig_of(PERSON)
}

fn notebook(name: &str) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
        "metadata": {"name": name, "namespace": "people",
            "annotations": {"notebooks.opendatahub.io/last-image-selection": "lab:1"}},
        "spec": {"template": {"spec": {"containers": [{"name": name, "image": "lab"}]}}},
    })
}

fn model(number: usize) -> Value {
    json!({
        "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "metadata": {"name": format!("model-{number}"), "namespace": "people"},
        "spec": {"predictor": {"model": {
            "modelFormat": {"name": "sklearn"}, "protocolVersion": "v2", "storageUri": "pvc://models/a",
        }}},
    })
}

fn pod(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{number}"), "namespace": "pods", "labels": {"app": "somebodys"}},
        "spec": {
            // Nobody tries to place it.
            "schedulerName": "nobody",
            "containers": [{
                "name": "main", "image": "registry.example.com/app:1",
                "env": (0..20).map(|n| json!({"name": format!("SETTING_{n}"), "value": "a value of some length"})).collect::<Vec<_>>(),
            }],
        },
    })
}

/// Creates objects, many at a time.
async fn fill(client: &Cluster, served: &Served, objects: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    futures::stream::iter(objects)
        .map(|object| async move { client.write(served, &Write::Create { object }).await })
        .buffer_unordered(CONNECTIONS)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}

/// From the answer to a request until a pod is there.
async fn until_pod(client: &Cluster, served: &Served, object: Value, pod: &str) -> anyhow::Result<Duration> {
    let key = ObjectKey::namespaced("", "Pod", "people", pod);
    let started = Instant::now();
    client.write(served, &Write::Create { object }).await?;
    while client.get_by_key(served, &key).await?.is_none() {
        anyhow::ensure!(started.elapsed() < PATIENCE, "{pod} does not come");
        sleep(Duration::from_millis(2)).await;
    }
    Ok(started.elapsed())
}

/// A notebook is asked for until its pod is there, beside the very `StatefulSet` that is made of it brought by a client: what is more is ours.
async fn requests(client: &Cluster, served: &Served, table: &mut Table) -> anyhow::Result<()> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for number in 0..REQUESTS {
        let name = format!("lab-{number}");
        ours.push(until_pod(client, served, notebook(&name), &format!("{name}-0")).await?);
        let key = ObjectKey::namespaced("apps", "StatefulSet", "people", name.as_str());
        let made = client.get_by_key(served, &key).await?.context("the notebook has no StatefulSet")?;
        let same = format!("bare-{number}");
        let mut set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": same, "namespace": "people"}, "spec": made["spec"]});
        let labels = json!({"bare": same});
        set["spec"]["selector"] = json!({"matchLabels": labels});
        set["spec"]["template"]["metadata"]["labels"] = labels;
        bare.push(until_pod(client, served, set, &format!("{same}-0")).await?);
    }
    ours.sort();
    bare.sort();
    let median = |times: &[Duration]| times.get(times.len() / 2).copied().unwrap_or_default();
    let more = median(&ours).saturating_sub(median(&bare));
    table.goal(Goal::at_most(
        "notebook request to pod, beyond a bare StatefulSet",
        more.as_secs_f64() * 1e3,
        150.0,
        "ms",
    ));
    table.note(format!(
        "notebook request to pod: {:.0} ms, of a bare StatefulSet {:.0} ms (medians of {REQUESTS})",
        median(&ours).as_secs_f64() * 1e3,
        median(&bare).as_secs_f64() * 1e3
    ));
    Ok(())
}

/// What the operator writes when there is nothing to do.
async fn settled(
    cluster: &RealCluster,
    client: &Cluster,
    served: &Served,
    table: &mut Table,
) -> anyhow::Result<()> {
    let names = (0..NOTEBOOKS).map(|number| notebook(&format!("nb-{number}")));
    fill(client, served, names.chain((0..MODELS).map(model))).await?;
    let written = |since: usize| -> anyhow::Result<(usize, usize)> {
        let requests = cluster.requests()?;
        let ours = requests.iter().skip(since).filter(|it| it.user == PERSON && it.is_write());
        let (leases, rest): (Vec<_>, Vec<_>) = ours.partition(|it| it.uri.contains("/leases/"));
        Ok((leases.len(), rest.len()))
    };
    let started = Instant::now();
    loop {
        let seen = cluster.requests()?.len();
        sleep(Duration::from_secs(10)).await;
        if written(seen)?.1 == 0 {
            break;
        }
        anyhow::ensure!(
            started.elapsed() < PATIENCE,
            "{NOTEBOOKS} notebooks and {MODELS} models do not settle"
        );
    }
    table.note(format!(
        "{NOTEBOOKS} notebooks and {MODELS} models settled in {:.0} s",
        started.elapsed().as_secs_f64()
    ));
    let seen = cluster.requests()?.len();
    sleep(WATCHED).await;
    let (leases, rest) = written(seen)?;
    #[expect(clippy::cast_precision_loss, reason = "a figure for the eye")]
    {
        table.goal(Goal::at_most("settled platform: writes in a minute", rest as f64, 0.0, ""));
        table.goal(Goal::at_most("settled platform: renewals in a minute", leases as f64, 6.0, ""));
    }
    Ok(())
}
