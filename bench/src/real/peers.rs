//! What people use otherwise: bare requests, kubectl and Helm.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use scantling_cluster::{Cluster, Write};
use scantling_real_tests::RealCluster;
use serde_json::Value;

use super::objects::{Change, Objects, all};
use super::table::Table;
use super::timed;

/// Requests at the same time, as many as a run has.
const CONNECTIONS: usize = 16;

/// Nothing but the requests: a server-side apply of each object, 16 at a time, by whoever knows that all are needed.
pub(crate) fn bare(cluster: &RealCluster, table: &mut Table) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, _) = Cluster::from_kubeconfig(&[cluster.kubeconfig()], None, 1).await?;
        for case in ["fresh", "nothing changed"] {
            let (namespaces, rest) = all("bare", Change::Nothing);
            let time = patches(&client, [namespaces, rest]).await?;
            table.theirs(case, "PATCHes, 16 at a time", time);
        }
        Ok(())
    })
}

async fn patches(client: &Cluster, waves: [Vec<Value>; 2]) -> anyhow::Result<Duration> {
    let served = client.served().await?;
    let started = Instant::now();
    for wave in waves {
        let writes = wave.into_iter().map(|object| {
            let served = &served;
            async move { client.write(served, &Write::Apply { object, force: false }).await }
        });
        futures::stream::iter(writes)
            .buffer_unordered(CONNECTIONS)
            .try_for_each(|_| async { Ok(()) })
            .await?;
    }
    Ok(started.elapsed())
}

/// `kubectl apply --server-side` and `kubectl diff --server-side`.
pub(crate) fn kubectl(cluster: &RealCluster, table: &mut Table) -> anyhow::Result<()> {
    let run = |verb: &str, objects: &Objects| {
        let manifests = objects.manifests.display().to_string();
        cluster.kubectl(&[verb, "--server-side", "--filename", &manifests])
    };
    let diff = |objects: &Objects| -> anyhow::Result<Duration> {
        let mut command = run("diff", objects);
        let started = Instant::now();
        let output = command.output().context("failed to run kubectl")?;
        // 1 says that there are differences.
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::ensure!(matches!(output.status.code(), Some(0 | 1)), "kubectl diff failed: {said}");
        Ok(started.elapsed())
    };
    let fresh = Objects::write(cluster.folder(), "kubectl", Change::Nothing)?;
    let apply = "kubectl apply --server-side";
    table.theirs("fresh", apply, timed(&mut run("apply", &fresh))?);
    table.theirs("nothing changed", apply, timed(&mut run("apply", &fresh))?);
    table.theirs("nothing changed", "kubectl diff --server-side", diff(&fresh)?);
    let changed = Objects::write(cluster.folder(), "kubectl", Change::OnePercent)?;
    table.theirs("1 % changed", "kubectl diff --server-side", diff(&changed)?);
    table.theirs("1 % changed", apply, timed(&mut run("apply", &changed))?);
    Ok(())
}

/// `helm install` and `helm upgrade`.
pub(crate) fn helm(root: &Path, cluster: &RealCluster, table: &mut Table) -> anyhow::Result<()> {
    let helm = std::env::var_os("SCANTLING_TEST_HELM")
        .map_or_else(|| root.join(".cache/tools/helm/helm"), PathBuf::from);
    if !helm.is_file() {
        table.note("helm: left out, it is not installed (cargo xtask test --install)".to_owned());
        return Ok(());
    }
    let run = |verb: &str, objects: &Objects| {
        let mut command = Command::new(&helm);
        command.args([verb, "helm"]).arg(&objects.chart).arg("--kubeconfig").arg(cluster.kubeconfig());
        timed(&mut command)
    };
    let fresh = Objects::write(cluster.folder(), "helm", Change::Nothing)?;
    table.theirs("fresh", "helm install", run("install", &fresh)?);
    table.theirs("nothing changed", "helm upgrade", run("upgrade", &fresh)?);
    let changed = Objects::write(cluster.folder(), "helm", Change::OnePercent)?;
    table.theirs("1 % changed", "helm upgrade", run("upgrade", &changed)?);
    Ok(())
}
