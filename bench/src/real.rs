//! Figures from a real API server: two thousand objects, brought by us and by what people use otherwise, in one run on one
//! server.

mod objects;
mod operator;
mod peers;
mod table;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use scantling_real_tests::{RealCluster, Request};

use objects::{Change, Objects};
use table::Table;

/// Measures what a cluster is needed for.
pub(crate) fn measure(root: &Path, binary: &Path) -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::up(0)? else {
        println!("a real API server: left out, see above");
        return Ok(());
    };
    println!("{} objects on a real API server, Kubernetes {}", objects::COUNT, version(&cluster)?);
    let mut table = Table::default();
    // Everything is fresh for everybody: each has namespaces of its own.
    let ours = Objects::write(cluster.folder(), "ours", Change::Nothing)?;
    scantling(&cluster, binary, &ours, &mut table)?;
    peers::bare(&cluster, &mut table)?;
    peers::kubectl(&cluster, &mut table)?;
    peers::helm(root, &cluster, &mut table)?;
    drop(cluster);
    table.ratios();
    operator::measure(root, binary, &mut table)?;
    table.print();
    Ok(())
}

/// Measures the operator only.
pub(crate) fn measure_operator(root: &Path, binary: &Path) -> anyhow::Result<()> {
    let mut table = Table::default();
    operator::measure(root, binary, &mut table)?;
    table.print();
    Ok(())
}

/// Our own command, as a person runs it.
fn scantling(cluster: &RealCluster, binary: &Path, fresh: &Objects, table: &mut Table) -> anyhow::Result<()> {
    let command = |verb: &str, objects: &Objects| {
        let mut command = Command::new(binary);
        command.arg(verb).arg(&objects.release).arg("--kubeconfig").arg(cluster.kubeconfig());
        if verb == "upgrade" {
            command.arg("--yes");
        }
        command
    };
    table.ours("fresh", "scantling upgrade", timed(&mut command("upgrade", fresh))?);
    let (time, requests) = counted(cluster, &mut command("plan", fresh))?;
    table.ours("nothing changed", "scantling plan", time);
    table.note(format!("scantling plan, nothing changed: {}", shown(&requests)));
    let (time, requests) = counted(cluster, &mut command("upgrade", fresh))?;
    table.ours("nothing changed", "scantling upgrade", time);
    table.note(format!("scantling upgrade, nothing changed: {}", shown(&requests)));
    let changed = Objects::write(cluster.folder(), "ours", Change::OnePercent)?;
    table.ours("1 % changed", "scantling plan", timed(&mut command("plan", &changed))?);
    let (time, requests) = counted(cluster, &mut command("upgrade", &changed))?;
    table.ours("1 % changed", "scantling upgrade", time);
    table.note(format!("scantling upgrade, 1 % changed: {}", shown(&requests)));
    Ok(())
}

/// How long a command takes, whose failure is an error.
fn timed(command: &mut Command) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("failed to run {command:?}"))?;
    let time = started.elapsed();
    anyhow::ensure!(
        output.status.success(),
        "{command:?} failed: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(time)
}

/// The same, with what it asked of the API server.
fn counted(cluster: &RealCluster, command: &mut Command) -> anyhow::Result<(Duration, Vec<Request>)> {
    let before = cluster.requests()?.len();
    let time = timed(command)?;
    Ok((time, cluster.requests()?.split_off(before)))
}

/// Requests by verb; what is written for the run itself is told apart from the release's objects.
fn shown(requests: &[Request]) -> String {
    let count = |is: &dyn Fn(&Request) -> bool| requests.iter().filter(|it| is(it)).count();
    let own = |it: &Request| it.uri.contains("/namespaces/scantling-system");
    format!(
        "{} LISTs, {} GETs, {} writes to objects, {} to our own bookkeeping",
        count(&|it| it.verb == "list"),
        count(&|it| it.verb == "get"),
        count(&|it| it.is_write() && !own(it)),
        count(&|it| it.is_write() && own(it)),
    )
}

fn version(cluster: &RealCluster) -> anyhow::Result<String> {
    let version: serde_json::Value = serde_json::from_str(&cluster.run(&["get", "--raw", "/version"])?)?;
    Ok(version["gitVersion"].as_str().unwrap_or("?").to_owned())
}
